//! Built in by a quirk of the simulated member: the waiter is never told that it is first.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "missed-delete",
    help: "a watch that begins at the compacted revision misses its deletions",
    source: Quirk::MissedDelete.source(),
    needs: Needs::Fault,
    profile: "lease",
    caught_by: "liveness",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::MissedDelete);
    },
};
