//! Built in by a quirk of the simulated member.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "revision-regress",
    help: "a restart of etcd after a compaction hands out revisions again",
    source: Quirk::RevisionRegress.source(),
    needs: Needs::Fault,
    profile: "crash",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::RevisionRegress);
    },
};
