//! A range is sorted by key unless one asks for more, and keys are lease ids.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        lock::{LockPolicy, plain_lock},
    },
    etcd::SortTarget,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "first-by-key",
    help: "the first of the queue is the one with the least key",
    source: "derived: WithSort(SortByCreateRevision) left out",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "grant-validity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(FirstByKey, site);
    },
};

struct FirstByKey(Site);

impl LockPolicy for FirstByKey {
    fn first_by(&self) -> SortTarget {
        self.0.hit();
        SortTarget::Key
    }
}
