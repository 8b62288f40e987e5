//! One lost renewal is the end of the lease.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "no-retry",
    help: "a lost renewal is not sent again before the lease is over",
    source: "https://github.com/etcd-io/etcd/issues/7357",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "session-survival",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(NoRetry, site);
    },
};

struct NoRetry(Site);

impl LockPolicy for NoRetry {
    fn retries_after(&self) -> u32 {
        self.0.hit();
        24
    }
}
