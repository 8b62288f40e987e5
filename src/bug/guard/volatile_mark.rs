//! The data survives a crash and the mark does not, so a restart lets an old holder in.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{Memory, StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "volatile-mark",
    help: "a restart of the storage forgets its marks",
    source: "derived: the mark kept in memory beside durable data",
    needs: Needs::Fault,
    profile: "restart",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(VolatileMark, site);
    },
};

struct VolatileMark(Site);

impl StorePolicy for VolatileMark {
    fn recovered(&self, memory: &mut Memory) {
        self.0.hit();
        memory.marks.clear();
    }
}
