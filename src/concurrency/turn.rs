//! Entering the queue and waiting for the turn: what a lock and an election have in common.
//!
//! After `tryAcquire` of etcd's `concurrency/mutex.go` and `waitDeletes` of `key.go`. Both give up
//! as soon as the own key is gone, and both end with a picture of the store in which the own
//! incarnation was there and first.

use std::sync::Arc;

use super::{
    error::LockError,
    place::{Entry, Place, Unanswered},
    queue::{self, Enqueued, View, Wake},
    request::{Pauses, until_definite},
    session::Shared,
};
use crate::point::reach;

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

/// Waits until the incarnation is first in the queue; not at all if it was found to be.
pub(super) async fn await_turn(
    shared: &Shared,
    place: &Place,
    entry: &Entry,
    found: &Enqueued,
) -> Result<(), LockError> {
    if found.first {
        reach("queue.after_enqueue").await;
        return Ok(());
    }
    let revision = entry.revision;
    let txn = queue::look(&place.prefix, &place.key, revision);
    let mut pauses = Pauses::new();
    loop {
        let reply = until_definite(shared, |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await?;
        let view = View::read(&reply.value)?;
        if view.own != Some(revision) {
            tracing::debug!(key = place.key, revision, "own key is gone");
            place.vanish(revision);
            return Err(LockError::SessionExpired);
        }
        if view.predecessor.is_none() {
            return Ok(());
        }
        reach("queue.before_wait").await;
        let wake = queue::wait_for_delete(shared, &place.key, &view).await;
        reach("queue.after_wait").await;
        match wake {
            Wake::Deleted => pauses.reset(),
            Wake::Broken => pauses.pause(shared).await,
        }
    }
}
