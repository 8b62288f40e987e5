//! Built in by a quirk of the simulated member: a dead client's key stays in the queue.

use crate::{
    bug::{KnownBug, Needs},
    etcd::quirk::Quirk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "stuck-expiry",
    help: "a lease whose revocation failed once is never revoked again",
    source: Quirk::StuckExpiry.source(),
    needs: Needs::Fault,
    profile: "crash",
    caught_by: "liveness",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.quirks.insert(Quirk::StuckExpiry);
    },
};
