//! Tokens that went through JSON or a header as text, and are compared as text: "9" is above "10".

use crate::bug::{
    KnownBug, Needs, Site,
    store::{StorePolicy, plain_store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "text-compare",
    help: "tokens are compared as text, so 10 is below 9",
    source: "derived: tokens in strings, sorted as strings",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(TextCompare, site);
    },
};

struct TextCompare(Site);

impl StorePolicy for TextCompare {
    fn is_stale(&self, token: i64, mark: i64, _before: i64) -> bool {
        self.0.hit();
        mark > 0 && token.to_string() < mark.to_string()
    }
}
