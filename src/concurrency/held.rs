//! A holding as a value: what its owner carries to where the work is done.
//!
//! Go's `Mutex` has no such thing. It gives what a holder needs beside the work: the token for the
//! storage, how long the session may still be relied on, and the unlock, which uses the value up.
//! Like the handle that made it, it believes; only the storage can know (see the page of the
//! module).

use std::{future::Future, sync::Arc, time::Duration};

use super::{
    error::LockError,
    loss::{self, Loss},
    mutex::release,
    place::Place,
    session::Session,
    token::FencingToken,
};
use crate::{
    etcd::{Compare, CompareOp, ResponseHeader},
    time::Instant,
};

/// A lock that is held, or was believed to be.
///
/// **Dropping it does not unlock.** An unlock is a request that can fail and take as long as the
/// session lives, and a drop can neither wait nor tell: a holder that relies on it would begin
/// again behind its own key, or let others in before its last write was out. What is dropped stays
/// locked until [`Held::unlock`], an unlock through a [`Mutex`](super::Mutex) of the session, or
/// the end of the session; a session whose last handle is dropped ends with its TTL.
#[derive(Debug)]
#[must_use = "dropping it does not unlock: the lock stays until `unlock` or the session's end"]
pub struct Held {
    session: Session,
    place: Arc<Place>,
    token: FencingToken,
    header: ResponseHeader,
}

impl Held {
    pub(super) fn new(
        session: &Session,
        place: &Arc<Place>,
        token: FencingToken,
        header: ResponseHeader,
    ) -> Self {
        Held { session: session.clone(), place: place.clone(), token, header }
    }

    /// What the storage wants to see with each request, reads included: the create revision of the
    /// queue key.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The header of etcd's answer that showed the key to be the first one; `Header` in Go. Its
    /// revision is not the token: it is higher for one who had to wait or came again.
    pub fn header(&self) -> &ResponseHeader {
        &self.header
    }

    /// The session's key in the queue.
    pub fn key(&self) -> &str {
        &self.place.key
    }

    /// The session on whose lease the holding hangs.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the lock is held as far as the client can know: not unlocked through any handle of
    /// the session, not found to be gone ([`Held::lost`]), and the session is live on its own
    /// clock. Ask right before what must only happen under the lock, and send the token all the
    /// same.
    pub fn is_live(&self) -> bool {
        !self.place.is_retired(self.token.get()) && self.session.is_live()
    }

    /// When, on the own clock, the session ends unless another renewal is acknowledged.
    pub fn deadline(&self) -> Instant {
        self.session.deadline()
    }

    /// How long the holding may still be relied on if no further renewal is acknowledged; zero once
    /// it is over.
    pub fn remaining(&self) -> Duration {
        if self.is_live() { self.session.remaining() } else { Duration::ZERO }
    }

    /// Waits until no more than `margin` remains of the session: the time to stop, for work whose
    /// stopping takes that long. See [`Session::expires_within`].
    pub fn expires_within(&self, margin: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.session.expires_within(margin)
    }

    /// Waits until the holding is over, and tells why: the session is, or the queue key with this
    /// token is gone. The key is watched while this is polled, over lost connections and
    /// compactions; so an operator's delete or revoke is known within one delivery, and after that
    /// [`Held::is_live`] says so too. Without a waiting call a delete is not noticed at all, and a
    /// revoke at the next renewal.
    ///
    /// Does not keep the session alive. For a warning before the deadline see
    /// [`Held::expires_within`].
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + use<> {
        let (shared, place) = (self.session.shared().clone(), self.place.clone());
        let revision = self.token.get();
        async move { loss::lost(&shared, &place, revision).await }
    }

    /// The comparison for a transaction of one's own in etcd that must only happen under this
    /// holding; `IsOwner` in Go.
    pub fn is_owner(&self) -> Compare {
        Compare::create_revision(self.key(), CompareOp::Equal, self.token.get())
    }

    /// Gives the lock back, for all handles of the session. As [`Mutex::unlock`], cancel safety
    /// included.
    ///
    /// # Errors
    /// [`LockError::Released`], without a request, if it was given back through another handle or
    /// is known to be lost; the last indefinite error if the session is over before an answer came.
    ///
    /// [`Mutex::unlock`]: super::Mutex::unlock
    pub async fn unlock(self) -> Result<(), LockError> {
        release(&self.session, &self.place, self.token).await
    }
}
