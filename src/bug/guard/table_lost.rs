//! The data and the mark survive a crash, and the table of requests does not: a resend is done twice.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{Memory, StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "table-lost",
    help: "a restart of the storage forgets which requests it has done",
    source: "definition D7: the table is as durable as the data",
    needs: Needs::Fault,
    profile: "restart",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(TableLost, site);
    },
};

struct TableLost(Site);

impl StorePolicy for TableLost {
    fn recovered(&self, memory: &mut Memory) {
        self.0.hit();
        memory.table.clear();
    }
}
