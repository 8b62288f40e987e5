//! Built in by a quirk of the simulated member.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "revoke-not-atomic",
    help: "etcd deletes the keys of a lease in several revisions",
    source: Quirk::RevokeNotAtomic.source(),
    needs: Needs::Latency,
    profile: "gc",
    caught_by: "lease-atomicity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::RevokeNotAtomic);
    },
};
