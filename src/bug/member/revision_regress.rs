//! Built in by a quirk of the simulated member: two tenures get the same token, or fall.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "revision-regress",
    help: "etcd hands out revisions again after it died in a compaction",
    source: Quirk::RevisionRegress.source(),
    needs: Needs::Fault,
    profile: "lease",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::RevisionRegress);
    },
};
