//! Time without a leader: etcd holds requests back, and no lease runs out until it leads again.

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const LEADERLESS: Family = Family {
    name: "leaderless",
    help: "etcd has no leader for a while; then it leads again, and all leases start anew",
    effect: "changes of the leader",
    weight: 1,
    length_ms: (100, 5000),
    colour: "#4d7c0f",
    draw: |_, _| FaultKind::Leaderless,
    begin: |cluster, _, _| match cluster.member().lose_leadership() {
        // A member that was killed meanwhile leads again since its start.
        true => Begun::Active(Box::new(|cluster| {
            cluster.member().win_leadership();
            1
        })),
        false => Begun::Skipped("it had no leader, or was down"),
    },
};
