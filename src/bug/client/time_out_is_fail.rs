//! No answer is not the answer "no".

use crate::bug::{KnownBug, Needs};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "time-out-is-fail",
    help: "a request that was not answered in time is taken for one that had no effect",
    source: "derived: Err means it did not happen",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.is_definite = |_| true;
    },
};
