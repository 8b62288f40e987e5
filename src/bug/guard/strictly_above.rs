//! The holder's own second request has the token that is the mark already.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "strictly-above",
    help: "a token must be above the mark, so a holder's second request is refused",
    source: "derived: > for >=",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(StrictlyAbove, site);
    },
};

struct StrictlyAbove(Site);

impl StorePolicy for StrictlyAbove {
    fn is_stale(&self, token: i64, mark: i64, _before: i64) -> bool {
        self.0.hit();
        token <= mark
    }
}
