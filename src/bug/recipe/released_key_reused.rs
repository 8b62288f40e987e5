//! A release whose answer was lost may still happen: the key must not serve for another holding.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "released-key-reused",
    help: "a key whose release was asked for is taken for a new place in the queue",
    source: "https://github.com/etcd-io/etcd/issues/15235",
    needs: Needs::Fault,
    profile: "lease",
    caught_by: "grant-validity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(ReleasedKeyReused, site);
    },
};

struct ReleasedKeyReused(Site);

impl LockPolicy for ReleasedKeyReused {
    fn takes_released_key(&self) -> bool {
        self.0.hit();
        true
    }
}
