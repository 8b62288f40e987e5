//! The lock: a queue of keys in etcd, one per session, in the order of their creation.
//!
//! After etcd's `client/v3/concurrency/mutex.go`; one transaction to lock an uncontended lock, one
//! to unlock. The unit of ownership is the session: a second handle of the same session and name
//! re-enters, with the same token, and an unlock through either frees both (glusterd2 #1426).
//!
//! Dropping a handle does not unlock: the key stays until `unlock` or the end of the lease. Neither
//! does dropping a [`Held`]; it says why.

use std::{
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use super::{
    error::LockError,
    held::Held,
    place::{Entry, Place, Tidy},
    session::Session,
    token::FencingToken,
    turn::{self, WaitProfile},
};
use crate::{
    etcd::{Compare, CompareOp, ResponseHeader},
    point::reach,
    time::{Instant, timeout_at},
};

/// A handle on a lock. Waits in the queue `name/…` with its session's key.
#[derive(Debug)]
pub struct Mutex {
    session: Session,
    place: Arc<Place>,
    profile: WaitProfile,
    holding: StdMutex<Option<Holding>>,
}

/// The incarnation that a handle acquired.
#[derive(Debug, Clone)]
struct Holding {
    token: FencingToken,
    header: ResponseHeader,
}

impl Mutex {
    /// A handle on the lock of this name for this session. No request is sent.
    ///
    /// Names must not be nested: the queue of `a` contains that of `a/b`.
    pub fn new(session: &Session, name: &str) -> Self {
        Mutex::with_profile(session, name, WaitProfile::Strict)
    }

    /// The same, with a say in what a waiter does whose own key is gone.
    pub fn with_profile(session: &Session, name: &str, profile: WaitProfile) -> Self {
        let place = session.shared().place(name);
        Mutex { session: session.clone(), place, profile, holding: StdMutex::default() }
    }

    /// Waits for the lock and takes it. While it says "ok" the session is live on its own clock,
    /// and at some revision since the call began the session's key was first in the queue.
    ///
    /// Cancel safe: a dropped call leaves the queue, in the background, unless another call or
    /// holding of the session is on the same key.
    ///
    /// # Errors
    /// [`LockError::SessionExpired`] as soon as the session is over or the own key is gone (etcd
    /// #11456, #19597); [`LockError::Etcd`] if etcd refuses. Lost answers are asked for again.
    pub async fn lock(&self) -> Result<FencingToken, LockError> {
        if self.profile == WaitProfile::GoCompatible {
            return self.lock_in_turn().await;
        }
        let shared = self.session.shared();
        tokio::select! {
            biased;
            () = shared.done() => Err(LockError::SessionExpired),
            outcome = self.lock_in_turn() => outcome,
        }
    }

    /// [`Mutex::lock`], and the holding as a value to carry about.
    ///
    /// # Errors
    /// As `lock`; [`LockError::Released`] if another handle of the session has unlocked it already.
    pub async fn acquire(&self) -> Result<Held, LockError> {
        self.lock().await?;
        self.held().ok_or(LockError::Released)
    }

    /// [`Mutex::lock`] until this instant on the own clock. What is left in the queue then is taken
    /// away in the background (etcd #18082).
    ///
    /// # Errors
    /// As `lock`, and [`LockError::TimedOut`].
    pub async fn lock_until(&self, deadline: Instant) -> Result<FencingToken, LockError> {
        let limit = deadline.saturating_duration_since(Instant::now());
        match timeout_at(deadline, self.lock()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(LockError::TimedOut(limit)),
        }
    }

    /// [`Mutex::lock_until`] so long from now.
    ///
    /// # Errors
    /// As `lock_until`.
    pub async fn lock_for(&self, limit: Duration) -> Result<FencingToken, LockError> {
        self.lock_until(Instant::now() + limit).await
    }

    /// Takes the lock if no other session is in the queue before.
    ///
    /// Cancel safe as `lock`. A losing attempt deletes the key that it created before it returns;
    /// if the delete is not answered in time, it is settled in the background.
    ///
    /// # Errors
    /// [`LockError::Locked`] if another session owns it; else as `lock`.
    pub async fn try_lock(&self) -> Result<FencingToken, LockError> {
        let shared = self.session.shared();
        tokio::select! {
            biased;
            () = shared.done() => Err(LockError::SessionExpired),
            outcome = self.try_lock_while_live() => outcome,
        }
    }

    /// Gives the lock back, for all handles of the session. From the call on, the holding is over
    /// whatever the outcome: the same incarnation is never acquired again.
    ///
    /// Cancel safe: a delete without a definite answer is sent again, in the background and before
    /// the session locks this name again. Ok means that the key is gone, not that it was still
    /// there.
    ///
    /// # Errors
    /// [`LockError::Released`], without a request, if this handle holds nothing (etcd #14704);
    /// the last indefinite error if the session is over before an answer came.
    pub async fn unlock(&self) -> Result<(), LockError> {
        let holding = self.slot().take().ok_or(LockError::Released)?;
        release(&self.session, &self.place, holding.token).await
    }

    /// The session's key in the queue, there or not.
    pub fn key(&self) -> &str {
        &self.place.key
    }

    /// The session of this handle.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The token of this handle's holding; `None` if it never locked or the holding was given up
    /// through any handle of the session. A lapsed session keeps its token: that is the one a
    /// resource has to refuse.
    pub fn token(&self) -> Option<FencingToken> {
        self.holding().map(|holding| holding.token)
    }

    /// The header of etcd's answer that showed this handle's key to be the first one; `Header` in
    /// Go. `None` as for [`Mutex::token`].
    pub fn header(&self) -> Option<ResponseHeader> {
        self.holding().map(|holding| holding.header)
    }

    /// This handle's holding as a value; `None` as for [`Mutex::token`].
    pub fn held(&self) -> Option<Held> {
        let Holding { token, header } = self.holding()?;
        Some(Held::new(&self.session, &self.place, token, header))
    }

    /// Whether this handle holds the lock as far as the client can know: a token, and a live
    /// session.
    pub fn is_held(&self) -> bool {
        self.token().is_some() && self.session.is_live()
    }

    /// The comparison for a transaction of one's own in etcd that must only happen under this
    /// holding. Go's `IsOwner` compares with revision -1 while nothing is held, which never holds.
    ///
    /// # Errors
    /// [`LockError::Released`] if this handle holds nothing.
    pub fn is_owner(&self) -> Result<Compare, LockError> {
        let token = self.token().ok_or(LockError::Released)?;
        Ok(Compare::create_revision(self.key(), CompareOp::Equal, token.get()))
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Holding>> {
        self.holding.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn holding(&self) -> Option<Holding> {
        self.slot().clone().filter(|holding| !self.place.is_retired(holding.token.get()))
    }

    async fn lock_in_turn(&self) -> Result<FencingToken, LockError> {
        let shared = self.session.shared();
        loop {
            let (entry, found) = {
                let _gate = self.place.gate.lock().await;
                turn::enqueue(shared, &self.place, b"").await?
            };
            let header = turn::await_turn(shared, &self.place, &entry, found, self.profile).await?;
            if let Some(token) = self.acquired(entry, header)? {
                return Ok(token);
            }
        }
    }

    async fn try_lock_while_live(&self) -> Result<FencingToken, LockError> {
        let shared = self.session.shared();
        loop {
            let gate = self.place.gate.lock().await;
            let (entry, found) = turn::enqueue(shared, &self.place, b"").await?;
            if !found.first {
                entry.leave().await;
                return Err(LockError::Locked);
            }
            drop(gate);
            let header = turn::await_turn(shared, &self.place, &entry, found, self.profile).await?;
            if let Some(token) = self.acquired(entry, header)? {
                return Ok(token);
            }
        }
    }

    /// The last look before "ok", without an await in between: the session's own clock, and whether
    /// another handle has given the incarnation up meanwhile (`None`: queue again).
    fn acquired(
        &self,
        entry: Entry,
        header: ResponseHeader,
    ) -> Result<Option<FencingToken>, LockError> {
        self.session.shared().check_live()?;
        if self.place.is_retired(entry.revision) {
            return Ok(None);
        }
        let token = FencingToken::new(entry.revision);
        *self.slot() = Some(Holding { token, header });
        entry.keep();
        tracing::debug!(key = self.key(), token = token.get(), "locked");
        Ok(Some(token))
    }
}

/// Gives up an incarnation, for all handles of the session.
pub(super) async fn release(
    session: &Session,
    place: &Arc<Place>,
    token: FencingToken,
) -> Result<(), LockError> {
    if !place.retire(token.get()) {
        return Err(LockError::Released);
    }
    let shared = session.shared();
    let _tidy = Tidy::new(shared, place);
    reach("mutex.before_unlock").await;
    {
        let _gate = place.gate.lock().await;
        place.resolve(shared).await?;
    }
    reach("mutex.after_unlock").await;
    tracing::debug!(key = place.key, token = token.get(), "unlocked");
    Ok(())
}
