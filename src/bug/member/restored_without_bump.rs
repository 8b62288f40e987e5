//! Built in by a quirk of the simulated member: no guard can tell its new tokens from old ones.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "restored-without-bump",
    help: "etcd comes back from an old backup, and its revisions begin anew",
    source: Quirk::RestoredWithoutBump.source(),
    needs: Needs::Fault,
    profile: "crash",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::RestoredWithoutBump);
    },
};
