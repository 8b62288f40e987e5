//! The refusal is computed after the write was done.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "refused-but-written",
    help: "a write that is refused is done all the same",
    source: "derived: the check's result is only reported",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(RefusedButWritten, site);
    },
};

struct RefusedButWritten(Site);

impl StorePolicy for RefusedButWritten {
    fn does_refused_write(&self) -> bool {
        self.0.hit();
        true
    }
}
