//! Entering the queue and waiting for the turn: what a lock and an election have in common.
//!
//! After `tryAcquire` of etcd's `concurrency/mutex.go` and `waitDeletes` of `key.go`. Both end with
//! a picture of the store in which the own incarnation was there and first. Unless asked to do as
//! Go does, both give up as soon as the own key is gone.

use std::sync::Arc;

use super::{
    error::LockError,
    place::{Entry, Place, Unanswered},
    queue::{self, Enqueued, View, Wake},
    request::{Pauses, until_definite},
    session::Shared,
};
use crate::{etcd::ResponseHeader, point::reach};

/// What a waiter does whose own key is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitProfile {
    /// It gives up within one delivery of a watch, and as soon as its session is over. It can then
    /// make a new session and queue again.
    #[default]
    Strict,
    /// As etcd's `mutex.go` (etcd #19597): it watches only its predecessor, so it stays blocked
    /// until that one leaves, and only then finds out. Neither is it woken by the end of its
    /// session. For a program that is ported from Go and relies on this timing; what it is told at
    /// the end is as strict as ever.
    GoCompatible,
}

/// Enters the queue with this value, or finds the session's key in it as it is. The gate is held.
pub(super) async fn enqueue(
    shared: &Arc<Shared>,
    place: &Arc<Place>,
    value: &[u8],
) -> Result<(Entry, Enqueued), LockError> {
    loop {
        place.resolve(shared).await?;
        reach("queue.before_enqueue").await;
        shared.check_live()?;
        let txn = queue::enqueue(&place.prefix, &place.key, value, shared.lease());
        let unanswered = Unanswered::new(shared, place);
        let answered = until_definite(shared, |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await?;
        let reply = Enqueued::read(&answered.value, &place.key)?;
        let created = reply.met.is_none();
        let joined = unanswered.answered(reply.revision, created, answered.lost);
        tracing::debug!(key = place.key, ?reply, lost = answered.lost, "in the queue");
        if let Ok(entry) = joined {
            return Ok((entry, reply));
        }
    }
}

/// Waits until the incarnation is first in the queue; not at all if it was found to be. Gives the
/// header of the answer that showed it.
pub(super) async fn await_turn(
    shared: &Shared,
    place: &Place,
    entry: &Entry,
    found: Enqueued,
    profile: WaitProfile,
) -> Result<ResponseHeader, LockError> {
    if found.first {
        reach("queue.after_enqueue").await;
        return Ok(found.header);
    }
    let revision = entry.revision;
    let own = (profile == WaitProfile::Strict).then_some(place.key.as_str());
    let txn = queue::look(&place.prefix, &place.key, revision);
    let mut pauses = Pauses::new();
    loop {
        let reply = until_definite(shared, |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await?;
        let view = View::read(&reply.value)?;
        // Go looks for its own key only when nobody is before it any more.
        let looks = own.is_some() || view.predecessor.is_none();
        if looks && view.own != Some(revision) {
            return Err(expelled(place, revision));
        }
        if view.predecessor.is_none() {
            return Ok(view.header);
        }
        reach("queue.before_wait").await;
        let wake = queue::wait_for_delete(shared, own, &view).await;
        reach("queue.after_wait").await;
        match wake {
            Wake::Deleted => pauses.reset(),
            // No second look: the watch began when the key was there.
            Wake::Expelled => return Err(expelled(place, revision)),
            Wake::Broken if own.is_some() => pauses.pause(shared).await,
            // The session may be over, and the wait goes on: the pause must not be cut short.
            Wake::Broken => pauses.pause_fully().await,
        }
    }
}

/// Takes note that the own key is gone.
fn expelled(place: &Place, revision: i64) -> LockError {
    tracing::debug!(key = place.key, revision, "own key is gone");
    place.vanish(revision);
    LockError::SessionExpired
}
