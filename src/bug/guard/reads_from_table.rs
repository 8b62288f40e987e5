//! The table of requests is there for writes; a read that comes again must be fenced again.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        store::{StorePolicy, plain_store},
    },
    history::OpKind,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "reads-from-table",
    help: "a read that is sent again gets its old answer, and is not fenced",
    source: "definition D7: reads are never replayed",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(ReadsFromTable, site);
    },
};

struct ReadsFromTable(Site);

impl StorePolicy for ReadsFromTable {
    fn answers_again(&self, _op: OpKind) -> bool {
        self.0.hit();
        true
    }
}
