//! A watch that ends says nothing about the own key, nor about who is first.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "no-second-look",
    help: "a waiter takes the end of its watch for its turn",
    source: "https://github.com/etcd-io/etcd/issues/11456",
    needs: Needs::Latency,
    profile: "crash",
    caught_by: "grant-validity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(NoSecondLook, site);
    },
};

struct NoSecondLook(Site);

impl LockPolicy for NoSecondLook {
    fn looks_again(&self) -> bool {
        self.0.hit();
        false
    }
}
