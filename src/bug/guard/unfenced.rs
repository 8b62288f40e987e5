//! No fence at all: whoever writes last has written.

use std::sync::Arc;

use crate::{
    bug::{KnownBug, Needs},
    storage::{GuardKind, Store},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "unfenced",
    help: "the storage accepts every write, whatever its token",
    source: "https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html",
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "no-stale-write",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.storage = Arc::new(|| Box::new(Store::of_kind(GuardKind::Unfenced)));
    },
};
