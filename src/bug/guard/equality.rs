//! The guard of etcd's own demonstration: a write must carry the very version that is stored with
//! the key, so after the first holder nobody can write.

use std::sync::Arc;

use crate::{
    bug::{KnownBug, Needs},
    storage::{GuardKind, Store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "equality",
    help: "a write must carry the version that the key was written with",
    source: "etcd contrib/lock/storage/storage.go",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.storage = Arc::new(|| Box::new(Store::of_kind(GuardKind::Equal)));
    },
};
