//! Revocations that fail: a lease has run out, and etcd's proposal to revoke it gets lost, as in a
//! time without a quorum. It is made again later, and until then a dead client's key stays.

use super::{Begun, Family};
use crate::{
    etcd::server::{Harm, RequestFault, RequestKind},
    plan::FaultKind,
};

pub(super) const LOST_REVOCATIONS: Family = Family {
    name: "lost-revocations",
    help: "etcd's revocations of leases that have run out fail; each is tried again 3 s later",
    effect: "revocations that failed",
    weight: 1,
    length_ms: (1000, 8000),
    colour: "#a21caf",
    draw: |_, _| FaultKind::LostRevocations,
    begin: |cluster, _, _| {
        let lost =
            RequestFault { kind: RequestKind::Expiry, harm: Harm::Lost, skip: 0, count: u64::MAX };
        let id = cluster.member().inject(lost);
        Begun::Active(Box::new(move |cluster| cluster.member().withdraw(id)))
    },
};
