//! Built in by a quirk of the simulated member.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "renewal-revives",
    help: "a renewal brings back a lease that has run out",
    source: Quirk::RenewalRevives.source(),
    needs: Needs::Fault,
    profile: "gc",
    caught_by: "lease-safety",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::RenewalRevives);
    },
};
