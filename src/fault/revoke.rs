//! Forced revoke: somebody ends the lease of whoever owns the lock, as an operator would.

use super::{Begun, Family};
use crate::{cluster::LOCK_NAME, plan::FaultKind};

pub(super) const FORCED_REVOKE: Family = Family {
    name: "forced-revoke",
    help: "the lease of the lock's owner is revoked under it",
    effect: "leases revoked",
    weight: 2,
    length_ms: (0, 0),
    colour: "#be185d",
    draw: |_, _| FaultKind::ForcedRevoke,
    begin: |cluster, _, _| match cluster.member().owner(LOCK_NAME) {
        Some((_, lease)) if lease != 0 && cluster.member().revoke(lease) => {
            Begun::Active(Box::new(|_| 1))
        }
        _ => Begun::Skipped("nobody owned the lock"),
    },
};
