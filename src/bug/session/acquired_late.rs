//! The wait was over in time, but the process stood still before it could say so.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "acquired-late",
    help: "an acquire does not ask its session again before it succeeds",
    source: "definition D9: an acquire past the deadline is an expired session",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "session-honesty",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(AcquiredLate, site);
    },
};

struct AcquiredLate(Site);

impl LockPolicy for AcquiredLate {
    fn asks_session_last(&self) -> bool {
        self.0.hit();
        false
    }
}
