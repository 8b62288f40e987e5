//! Renewals that get lost: those of all leases, or those of the lock's owner, so that its lease
//! runs out under it. Nobody is told: the connections stay, and the answers do not come.

use super::{Begun, Family};
use crate::{
    cluster::{Cluster, LOCK_NAME},
    plan::FaultKind,
};

const EFFECT: &str = "renewals lost";

pub(super) const LOST_RENEWALS: Family = Family {
    name: "lost-renewals",
    help: "renewals of all leases get lost for a while, and nobody is told",
    effect: EFFECT,
    weight: 2,
    length_ms: (500, 6000),
    colour: "#c026d3",
    draw: |_, _| FaultKind::LostRenewals,
    begin: |cluster, _, _| begin(cluster, None),
};

pub(super) const LEASE_RUNS_OUT: Family = Family {
    name: "lease-runs-out",
    help: "the lease of the lock's owner is renewed no more: it runs out under it",
    effect: EFFECT,
    weight: 2,
    length_ms: (3000, 8000),
    colour: "#a21caf",
    draw: |_, _| FaultKind::LeaseRunsOut,
    begin: |cluster, _, _| match cluster.member().owner(LOCK_NAME) {
        Some((_, lease)) if lease != 0 => begin(cluster, Some(lease)),
        _ => Begun::Skipped("nobody owned the lock"),
    },
};

fn begin(cluster: &Cluster, lease: Option<i64>) -> Begun {
    let id = cluster.member().lose_renewals(lease);
    Begun::Active(Box::new(move |cluster| cluster.member().pass_renewals(id)))
}
