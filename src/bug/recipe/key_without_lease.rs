//! A holder that dies leaves a key that nobody removes.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "key-without-lease",
    help: "the queue key is put without the session's lease",
    source: "https://github.com/etcd-io/etcd/issues/6631",
    needs: Needs::Fault,
    profile: "crash",
    caught_by: "liveness",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(KeyWithoutLease, site);
    },
};

struct KeyWithoutLease(Site);

impl LockPolicy for KeyWithoutLease {
    fn lease_of_key(&self, _lease: i64) -> i64 {
        self.0.hit();
        0
    }
}
