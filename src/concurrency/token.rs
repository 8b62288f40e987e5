//! The fencing token: what a holder shows to the resource that the lock protects.
//!
//! It is the create revision of the holder's queue key. Successive tenures of one lock have
//! strictly rising create revisions, so the resource can refuse whoever is older than the newest
//! it has seen. The lease id and the header revision of a reply have no such order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The create revision of the owner's queue key: one per tenure, rising from tenure to tenure.
/// Valid within one revision lineage of etcd (not across a restore that lowers revisions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(pub i64);

impl FencingToken {
    /// The token for a create revision that was read from the owner's own key.
    pub const fn new(create_revision: i64) -> Self {
        FencingToken(create_revision)
    }

    /// The number that goes over the wire.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> i64 {
        token.0
    }
}
