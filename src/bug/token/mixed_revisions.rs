//! A header's revision and a create revision are both revisions, and are not comparable.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, Seen, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "mixed-revisions",
    help: "the first token of a session is the header's revision, later ones the key's",
    source: "derived: header.revision read where create_revision is meant",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(MixedRevisions, site);
    },
};

struct MixedRevisions(Site);

impl LockPolicy for MixedRevisions {
    fn token(&self, seen: &Seen) -> i64 {
        self.0.hit();
        if seen.holdings == 1 { seen.header_revision } else { seen.create_revision }
    }
}
