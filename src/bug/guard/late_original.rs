//! A request that was delayed on its way comes after a later one of the same holder.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "late-original",
    help: "a request below the last number of its token is applied",
    source: "definition D7: lower numbers are superseded",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(LateOriginal, site);
    },
};

struct LateOriginal(Site);

impl StorePolicy for LateOriginal {
    fn keeps_order(&self) -> bool {
        self.0.hit();
        false
    }
}
