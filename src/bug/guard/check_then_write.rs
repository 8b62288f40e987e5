//! The check and the write are two steps, and a newer holder's request falls between them.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "check-then-write",
    help: "the fence is asked before the request that was admitted last, not after it",
    source: "derived: SELECT the mark, then UPDATE the row, without one transaction",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(CheckThenWrite, site);
    },
};

struct CheckThenWrite(Site);

impl StorePolicy for CheckThenWrite {
    fn is_stale(&self, token: i64, _mark: i64, before: i64) -> bool {
        self.0.hit();
        token < before
    }
}
