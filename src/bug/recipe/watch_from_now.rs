//! What is deleted between the look at the queue and the begin of the watch is never seen.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "watch-from-now",
    help: "the watch for the predecessor begins now, not where the queue was read",
    source: "https://github.com/kragniz/python-etcd3/pull/1107",
    needs: Needs::Latency,
    profile: "gc",
    caught_by: "liveness",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(WatchFromNow, site);
    },
};

struct WatchFromNow(Site);

impl LockPolicy for WatchFromNow {
    fn watches_from(&self, _read: i64) -> Option<i64> {
        self.0.hit();
        None
    }
}
