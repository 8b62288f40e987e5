//! The old holder can still write each key that the new one has not touched.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        store::{StorePolicy, plain_store},
    },
    storage::Request,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "mark-per-key",
    help: "each key has a mark of its own, the domain has none",
    source: "etcd contrib/lock/storage/storage.go keeps a version a key",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(MarkPerKey, site);
    },
};

struct MarkPerKey(Site);

impl StorePolicy for MarkPerKey {
    fn mark_name(&self, request: &Request) -> String {
        self.0.hit();
        format!("{} {}", request.domain, request.key)
    }
}
