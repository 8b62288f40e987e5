//! The caller's deadline is not the clean-up's.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "endless-clean-up",
    help: "the clean-up of an acquire that ran out of time has no end of its own",
    source: "https://github.com/etcd-io/etcd/issues/18082",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "call-deadline",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(EndlessCleanUp, site);
    },
};

struct EndlessCleanUp(Site);

impl LockPolicy for EndlessCleanUp {
    fn cleans_up_without_end(&self) -> bool {
        self.0.hit();
        true
    }
}
