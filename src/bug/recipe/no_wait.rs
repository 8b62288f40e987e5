//! To be in the queue is taken for owning the lock.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "no-wait",
    help: "a client that is in the queue does not wait for its turn",
    source: "derived: the result of the first transaction is not looked at",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "grant-validity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(NoWait, site);
    },
};

struct NoWait(Site);

impl LockPolicy for NoWait {
    fn waits(&self) -> bool {
        self.0.hit();
        false
    }
}
