//! A mark that was raised by a read is lost in a crash: the read's answer was a promise.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        store::{StorePolicy, plain_store},
    },
    history::OpKind,
    storage::Request,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "reads-not-kept",
    help: "the journal keeps writes only, so marks of reads do not survive",
    source: "derived: a read is not thought to change anything",
    needs: Needs::Fault,
    profile: "restart",
    caught_by: "no-stale-write",
    scenario: "slow-holders",
    build_in: |system, site| {
        system.storage = plain_store(ReadsNotKept, site);
    },
};

struct ReadsNotKept(Site);

impl StorePolicy for ReadsNotKept {
    fn keeps(&self, request: &Request) -> bool {
        self.0.hit();
        request.op == OpKind::Write
    }
}
