//! The error of the wait is dropped.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "time-out-is-success",
    help: "an acquire that ran out of time says that it was acquired",
    source: "derived: the result of a timed wait is not looked at",
    needs: Needs::Latency,
    profile: "gc",
    caught_by: "grant-validity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(TimeOutIsSuccess, site);
    },
};

struct TimeOutIsSuccess(Site);

impl LockPolicy for TimeOutIsSuccess {
    fn takes_time_out_for_success(&self) -> bool {
        self.0.hit();
        true
    }
}
