//! Leadership of the one member: what a change of the leader does to leases and renewals.
//!
//! `Promote` and `Demote` in `server/lease/lessor.go`. Only a leader counts the time of leases: a
//! demoted member ends none, and a promoted one starts every lease anew. A member of a larger
//! cluster would do the same, which is why the two are apart. Holding requests back while nobody
//! leads is for the shell; the model is not asked then.

use std::time::Duration;

use crate::{
    etcd::quirk::{EARLY, Quirk, Quirks},
    history::Cause,
};

use super::{
    Model, Store,
    range::Range,
    response::{Event, EventType},
};

/// When a revocation that did not come about is tried again (`defaultExpiredleaseRetryInterval`).
const REVOKE_RETRY: Duration = Duration::from_secs(3);

impl Model {
    /// Sets what is decided before the first start: the shortest TTL and the quirks.
    pub(crate) fn configure(&mut self, ttl_min_s: i64, quirks: Quirks) {
        self.lessor.set_ttl_min(ttl_min_s);
        self.quirks = quirks;
    }

    /// The quirks and their effects so far.
    pub(crate) fn quirks_mut(&mut self) -> &mut Quirks {
        &mut self.quirks
    }

    /// Nobody leads any more: no lease ends until [`Model::promote`].
    pub(crate) fn demote(&mut self) {
        self.lessor.demote();
    }

    /// The member leads, in a new term. Every lease starts anew, and so a renewal that waited for
    /// the revocation of its lease finds the lease alive after all: etcd asks the new leader again
    /// (`LeaseRenew` in `v3_server.go`).
    pub(crate) fn promote(&mut self, now: Duration, extend: Duration) {
        self.raft_term += 1;
        self.lessor.promote(now, extend);
        self.ask_again(now);
    }

    /// The leases to be revoked now, the longest dead first.
    pub(crate) fn run_out(&self, now: Duration) -> Vec<i64> {
        let early = if self.quirks.has(Quirk::EarlyExpiry) { EARLY } else { Duration::ZERO };
        self.lessor.run_out(now + early, now)
    }

    /// A proposal to revoke a lease that has run out got lost; it is made again later.
    pub(crate) fn postpone(&mut self, now: Duration, id: i64) {
        if self.quirks.has(Quirk::StuckExpiry) {
            self.quirks.count(Quirk::StuckExpiry, 1);
            self.lessor.postpone(id, Duration::MAX);
        } else {
            self.lessor.postpone(id, now + REVOKE_RETRY);
        }
    }

    /// Counts a lease that is about to end before its time.
    pub(super) fn note_early(&mut self, now: Duration, id: i64) {
        if self.lessor.get(id).is_some_and(|lease| lease.expiry > now) {
            self.quirks.count(Quirk::EarlyExpiry, 1);
        }
    }

    /// Forgets the deletions of the compacted revision among the events that a new watcher is due.
    pub(super) fn miss_deletions(&mut self, events: &mut Vec<Event>) {
        if !self.quirks.has(Quirk::MissedDelete) {
            return;
        }
        let (due, compacted) = (events.len(), self.store.compacted());
        let gone = |event: &Event| {
            event.event_type == EventType::Delete && event.kv.mod_revision == compacted
        };
        events.retain(|event| !gone(event));
        self.quirks.count(Quirk::MissedDelete, (due - events.len()) as u64);
    }

    /// The store comes back from its disk after a kill.
    pub(super) fn restore(&mut self, now: Duration) {
        if self.quirks.has(Quirk::RestoredWithoutBump) {
            self.fall_back_to_nothing(now);
        }
        if self.quirks.has(Quirk::RevisionRegress) {
            let taken_back = self.store.forget_compacted_revisions();
            self.quirks.count(Quirk::RevisionRegress, taken_back);
        }
    }

    /// The disk is lost and a backup takes its place, of a time before there was anything. The row
    /// of the commit log is for the judge: etcd itself has no such commit.
    fn fall_back_to_nothing(&mut self, now: Duration) {
        let taken_back = self.store.revision() - Store::default().revision();
        for id in self.lessor.by_expiry().collect::<Vec<_>>() {
            self.lessor.remove(id);
        }
        for key in
            self.store.live(&Range::new(&[0], &[0])).map(|kv| kv.key.clone()).collect::<Vec<_>>()
        {
            self.store.delete(&key);
        }
        self.commit(now, Cause::Restore);
        self.store = Store::default();
        self.quirks.count(Quirk::RestoredWithoutBump, taken_back as u64);
    }
}
