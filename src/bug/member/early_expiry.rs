//! Built in by a quirk of the simulated member.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "early-expiry",
    help: "etcd ends a lease up to 1 s before its time",
    source: Quirk::EarlyExpiry.source(),
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "lease-safety",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::EarlyExpiry);
    },
};
