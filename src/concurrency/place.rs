//! The place of one session in the queue of one lock: what the session knows of its own key.
//!
//! All handles of a session share the key, so they share this record. It keeps three promises:
//! an incarnation whose unlock was invoked is never returned by an acquire again; a delete of
//! unknown outcome is settled before the next enqueue; and the last call that leaves an incarnation
//! without having acquired it takes the key away, if this session created it. A call with another
//! call or a holding beside it on the same key leaves the key alone.
//!
//! Every delete names the create revision, so that a late duplicate hits nothing newer. Leaves out
//! another process with the same (adopted) lease: the two share a key and know nothing of it.

use std::sync::{Arc, Mutex as StdMutex, MutexGuard};

use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::{
    error::LockError,
    key::{owner_key, queue_prefix},
    queue,
    request::until_definite,
    session::Shared,
};
use crate::time::sleep;

/// One session's place in one queue.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) prefix: String,
    pub(super) key: String,
    /// Held while a request that creates or deletes the own key is under way. Waiting for the
    /// turn happens outside.
    pub(super) gate: AsyncMutex<()>,
    state: StdMutex<PlaceState>,
}

/// Pure bookkeeping; revisions are create revisions of the own key and rise from incarnation to
/// incarnation, so one number stands for "this one and all before".
#[derive(Debug, Default)]
struct PlaceState {
    /// The greatest that was ever seen.
    known: i64,
    /// Up to here they may not be acquired any more.
    retired: i64,
    /// Its delete was invoked and has no definite answer yet.
    unresolved: Option<i64>,
    current: Option<Current>,
    /// Enqueue requests that nobody waits for any more; one may still create a key.
    strays: u32,
    /// So many of them were looked after.
    swept: u32,
}

/// The incarnation that calls of this session wait on or hold.
#[derive(Debug)]
struct Current {
    create_revision: i64,
    users: u32,
    /// Created by a request of this session, not met.
    created: bool,
}

/// The incarnation met in the queue may not be acquired any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Retired;

impl PlaceState {
    /// A call enters the incarnation that etcd answered.
    fn join(&mut self, revision: i64, created: bool, lost: u32) -> Result<(), Retired> {
        if revision <= self.retired {
            return Err(Retired);
        }
        let ours = created || (revision > self.known && (lost > 0 || self.stray()));
        self.known = self.known.max(revision);
        self.strays += lost;
        match &mut self.current {
            Some(current) if current.create_revision == revision => {
                current.users += 1;
                current.created |= ours;
            }
            current => {
                *current = Some(Current { create_revision: revision, users: 1, created: ours });
            }
        }
        Ok(())
    }

    /// A call that did not acquire leaves; true if the key is to be deleted.
    fn leave(&mut self, revision: i64) -> bool {
        let Some(current) = &mut self.current else { return false };
        if current.create_revision != revision {
            return false;
        }
        current.users -= 1;
        if current.users > 0 {
            return false;
        }
        if current.created {
            return self.retire(revision);
        }
        self.current = None;
        false
    }

    /// The incarnation is given up; false if it was before.
    fn retire(&mut self, revision: i64) -> bool {
        if !self.vanish(revision) {
            return false;
        }
        self.unresolved = Some(revision);
        true
    }

    /// The incarnation was seen to be gone; false if that, or its end, was known before.
    fn vanish(&mut self, revision: i64) -> bool {
        if revision <= self.retired {
            return false;
        }
        self.retired = revision;
        self.known = self.known.max(revision);
        if self.current.as_ref().is_some_and(|current| current.create_revision == revision) {
            self.current = None;
        }
        true
    }

    fn stray(&self) -> bool {
        self.swept < self.strays
    }
}

impl Place {
    pub(super) fn new(name: &str, lease: i64) -> Self {
        Place {
            prefix: queue_prefix(name),
            key: owner_key(name, lease),
            gate: AsyncMutex::new(()),
            state: StdMutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, PlaceState> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn is_retired(&self, revision: i64) -> bool {
        revision <= self.state().retired
    }

    /// Gives the incarnation up; the delete is then due. False if it was given up before.
    pub(super) fn retire(&self, revision: i64) -> bool {
        self.state().retire(revision)
    }

    /// Takes note that the incarnation is gone.
    pub(super) fn vanish(&self, revision: i64) {
        self.state().vanish(revision);
    }

    /// Whether something is left to do that no call waits for.
    pub(super) fn is_untidy(&self) -> bool {
        let state = self.state();
        state.unresolved.is_some() || (state.stray() && state.current.is_none())
    }

    /// Settles a delete of unknown outcome. The gate is held.
    pub(super) async fn resolve(&self, shared: &Shared) -> Result<(), LockError> {
        loop {
            let Some(revision) = self.state().unresolved else { return Ok(()) };
            let txn = queue::delete_incarnation(&self.key, revision);
            until_definite(shared, |mut client| {
                let txn = txn.clone();
                async move { client.txn(txn).await }
            })
            .await?;
            tracing::debug!(key = self.key, revision, "queue key is gone");
            let mut state = self.state();
            if state.unresolved == Some(revision) {
                state.unresolved = None;
            }
        }
    }

    /// Takes away a key that a forgotten enqueue created. The gate is held.
    async fn sweep(&self, shared: &Shared) -> Result<(), LockError> {
        let found = until_definite(shared, |client| queue::own_revision(client, &self.key)).await?;
        let (_, Some(revision)) = found.value else { return Ok(()) };
        if self.state().retire(revision) {
            self.resolve(shared).await?;
        }
        Ok(())
    }
}

/// A call's share in an incarnation. Dropped without [`Entry::keep`], the call has left.
pub(super) struct Entry {
    shared: Arc<Shared>,
    place: Arc<Place>,
    pub(super) revision: i64,
    kept: bool,
}

impl Entry {
    /// The call acquired; the share lasts until the incarnation is retired.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    /// Leaves with the delete, if one is due, done before this returns. The gate is held.
    pub(super) async fn leave(mut self) {
        self.kept = true;
        if !self.place.state().leave(self.revision) {
            return;
        }
        let tidy = Tidy::new(&self.shared, &self.place);
        let limit = self.shared.options().request_timeout;
        // What this attempt does not settle is left to `tidy`.
        let _ = crate::time::timeout(limit, self.place.resolve(&self.shared)).await;
        drop(tidy);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.kept && self.place.state().leave(self.revision) {
            self.shared.neglect(&self.place);
        }
    }
}

/// Hands the place over to the background if it is untidy when this is dropped.
pub(super) struct Tidy<'a> {
    shared: &'a Shared,
    place: &'a Arc<Place>,
}

impl<'a> Tidy<'a> {
    pub(super) fn new(shared: &'a Shared, place: &'a Arc<Place>) -> Self {
        Tidy { shared, place }
    }
}

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        if self.place.is_untidy() {
            self.shared.neglect(self.place);
        }
    }
}

/// An enqueue that is under way. Dropped without an answer, its key may appear any time.
pub(super) struct Unanswered<'a> {
    shared: &'a Arc<Shared>,
    place: &'a Arc<Place>,
    answered: bool,
}

impl<'a> Unanswered<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, place: &'a Arc<Place>) -> Self {
        Unanswered { shared, place, answered: false }
    }

    /// The answer came, after `lost` attempts without one.
    pub(super) fn answered(
        mut self,
        revision: i64,
        created: bool,
        lost: u32,
    ) -> Result<Entry, Retired> {
        self.answered = true;
        let mut state = self.place.state();
        match state.join(revision, created, lost) {
            Ok(()) => Ok(Entry {
                shared: self.shared.clone(),
                place: self.place.clone(),
                revision,
                kept: false,
            }),
            Err(retired) => {
                // Its key is there although a delete was settled: settle it again.
                state.unresolved = Some(revision);
                Err(retired)
            }
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.place.state().strays += 1;
            self.shared.neglect(self.place);
        }
    }
}

/// Puts neglected places in order until the session is over. A task of its own, because a call
/// that was cancelled cannot wait.
pub(super) async fn tend_neglected(
    shared: Arc<Shared>,
    mut neglected: mpsc::UnboundedReceiver<Arc<Place>>,
) {
    loop {
        tokio::select! {
            biased;
            () = shared.done() => return,
            place = neglected.recv() => {
                let Some(place) = place else { return };
                tokio::spawn(tend(shared.clone(), place));
            }
        }
    }
}

async fn tend(shared: Arc<Shared>, place: Arc<Place>) {
    let outcome = tokio::select! {
        biased;
        () = shared.done() => return,
        outcome = tidy_up(&shared, &place) => outcome,
    };
    if let Err(error) = outcome {
        tracing::debug!(key = place.key, %error, "queue key is left to its lease");
    }
}

async fn tidy_up(shared: &Shared, place: &Place) -> Result<(), LockError> {
    let strays = place.state().strays;
    // Once now, for what is there already, and once more for a request that was still on its way.
    for round in 0..2 {
        let gate = place.gate.lock().await;
        place.resolve(shared).await?;
        {
            let state = place.state();
            if !state.stray() || state.current.is_some() {
                return Ok(());
            }
        }
        place.sweep(shared).await?;
        if round == 1 {
            let mut state = place.state();
            state.swept = state.swept.max(strays);
            return Ok(());
        }
        drop(gate);
        sleep(shared.options().request_timeout).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last call to leave a key that this session created takes it along, not the first.
    #[test]
    fn last_one_out_deletes() {
        let mut state = PlaceState::default();
        assert_eq!(state.join(5, true, 0), Ok(()));
        assert_eq!(state.join(5, false, 0), Ok(()));
        assert!(!state.leave(5));
        assert!(state.leave(5));
        assert_eq!(state.unresolved, Some(5));
        assert_eq!(state.join(5, false, 0), Err(Retired));
    }

    /// A key that this session did not create stays, whoever leaves.
    #[test]
    fn met_key_is_left_alone() {
        let mut state = PlaceState::default();
        assert_eq!(state.join(5, false, 0), Ok(()));
        assert!(!state.leave(5));
        assert_eq!(state.unresolved, None);
    }

    /// A met key turns out to be this session's own work: the last to leave takes it along.
    #[test]
    fn key_met_before_the_creators_answer_is_ours() {
        let mut state = PlaceState::default();
        assert_eq!(state.join(5, false, 0), Ok(()));
        assert_eq!(state.join(5, true, 0), Ok(()));
        assert!(!state.leave(5));
        assert!(state.leave(5));
    }

    /// After a lost attempt the answer says "met", but the key is the lost attempt's work.
    #[test]
    fn key_of_a_lost_attempt_is_ours() {
        let mut state = PlaceState::default();
        assert_eq!(state.join(5, false, 1), Ok(()));
        assert!(state.leave(5));
        assert!(state.stray());
    }

    /// A holding beside it keeps the key when a re-entrant call gives up; unlock ends it for all.
    #[test]
    fn unlock_retires_for_all_handles() {
        let mut state = PlaceState::default();
        assert_eq!(state.join(5, true, 0), Ok(()));
        assert_eq!(state.join(5, false, 0), Ok(()));
        assert!(!state.leave(5));
        assert!(state.retire(5));
        assert!(!state.retire(5));
        assert!(!state.leave(5));
    }

    /// Giving up an old incarnation does not touch the new one.
    #[test]
    fn retiring_the_old_spares_the_new() {
        let mut state = PlaceState::default();
        assert_eq!(state.join(5, true, 0), Ok(()));
        assert_eq!(state.join(9, true, 0), Ok(()));
        assert!(state.retire(5));
        assert_eq!(state.join(9, false, 0), Ok(()));
        assert!(!state.leave(9));
        assert!(state.leave(9));
    }
}
