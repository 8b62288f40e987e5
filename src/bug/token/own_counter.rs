//! Each client counts for itself, and from 1 again when it starts anew.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, Seen, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "own-counter",
    help: "the token is a counter of the client's own",
    source: "derived: a counter that is not in the store",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(OwnCounter, site);
    },
};

struct OwnCounter(Site);

impl LockPolicy for OwnCounter {
    fn token(&self, seen: &Seen) -> i64 {
        self.0.hit();
        seen.holdings
    }
}
