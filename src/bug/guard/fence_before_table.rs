//! The answer to a write that was done is lost, a newer holder enters, and the resend is told
//! "stale".

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "fence-before-table",
    help: "the fence is asked before the table, so a done write that comes again is refused",
    source: "definition D7: a resend is answered before the fence speaks",
    needs: Needs::Fault,
    profile: "resend",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(FenceBeforeTable, site);
    },
};

struct FenceBeforeTable(Site);

impl StorePolicy for FenceBeforeTable {
    fn fences_first(&self) -> bool {
        self.0.hit();
        true
    }
}
