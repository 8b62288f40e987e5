//! A new holder that has only read is not known to the fence yet, so the old one can still write.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        store::{StorePolicy, plain_store},
    },
    history::OpKind,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "no-mark-on-reads",
    help: "only writes raise the mark, a new holder's first read does not",
    source: "derived: the usual account of fencing speaks of writes only",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(NoMarkOnReads, site);
    },
};

struct NoMarkOnReads(Site);

impl StorePolicy for NoMarkOnReads {
    fn raises_mark(&self, op: OpKind) -> bool {
        self.0.hit();
        op == OpKind::Write
    }
}
