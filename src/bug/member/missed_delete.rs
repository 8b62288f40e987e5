//! Built in by a quirk of the simulated member.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "missed-delete",
    help: "a watch from a revision that was compacted misses the deletions in it",
    source: Quirk::MissedDelete.source(),
    needs: Needs::Fault,
    profile: "all",
    caught_by: "liveness",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::MissedDelete);
    },
};
