//! A counter that nobody keeps: in the memory of etcd's leader, so that the next begins anew.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, Seen, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "counter-in-memory",
    help: "the token is a count in a leader's memory, and a new leader begins at 1 again",
    source: "https://github.com/hazelcast/hazelcast/issues/17436",
    needs: Needs::Fault,
    profile: "crash",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(CounterInMemory::new, site);
    },
};

/// The service that counts: it counts what etcd counts, and only since it was started. So it is
/// right as long as nothing dies.
struct CounterInMemory {
    site: Site,
    /// By term, the least revision that anybody was told of by its leader.
    begun: Arc<Mutex<BTreeMap<u64, i64>>>,
}

impl CounterInMemory {
    fn new(site: Site) -> Self {
        CounterInMemory { site, begun: Arc::default() }
    }

    fn begun(&self) -> MutexGuard<'_, BTreeMap<u64, i64>> {
        self.begun.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl LockPolicy for CounterInMemory {
    fn entered(&self, term: u64, revision: i64) {
        // Answers may overtake each other on their way from one leader to several clients.
        let mut begun = self.begun();
        let first = begun.entry(term).or_insert(revision);
        *first = revision.min(*first);
    }

    fn token(&self, seen: &Seen) -> i64 {
        self.site.hit();
        let begun = *self.begun().entry(seen.term).or_insert(seen.header_revision);
        (seen.create_revision - begun + 1).max(1)
    }
}
