//! Neighbours in a queue often have neighbouring create revisions.

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "one-below",
    help: "a token just below the mark still passes",
    source: "derived: an off-by-one in the comparison",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(OneBelow, site);
    },
};

struct OneBelow(Site);

impl StorePolicy for OneBelow {
    fn is_stale(&self, token: i64, mark: i64, _before: i64) -> bool {
        self.0.hit();
        token < mark - 1
    }
}
