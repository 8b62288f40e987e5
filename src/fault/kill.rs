//! Kill and restart of a process: a client's; the etcd member's, which keeps its store and its
//! leases; the storage's, whose machine loses its power, and with it what was not synced.

use super::{Begun, Family, PlanShape};
use crate::{cluster::Cluster, history::NodeName, plan::FaultKind, seed::Stream};

pub(super) const KILL: Family = Family {
    name: "kill",
    help: "a process dies and starts anew at the end; the storage's disk loses what was not synced",
    effect: "processes killed",
    weight: 3,
    length_ms: (100, 5000),
    colour: "#111827",
    draw: |stream, shape| FaultKind::Kill { node: target(stream, shape) },
    begin: |cluster, _, fault| {
        let FaultKind::Kill { node } = fault.kind else {
            return Begun::Skipped("not a kill");
        };
        if let Some(why) = obstacle(cluster, node) {
            return Begun::Skipped(why);
        }
        cluster.kill(node);
        Begun::Active(Box::new(move |cluster| {
            cluster.restart(node);
            1
        }))
    },
};

/// Whose process dies.
pub(super) fn target(stream: &mut Stream, shape: &PlanShape) -> NodeName {
    match stream.below(8) {
        0 | 1 => shape.etcd(),
        2..=5 => NodeName::Storage,
        _ => shape.client(stream),
    }
}

/// Why the process cannot be killed now.
pub(super) fn obstacle(cluster: &Cluster, node: NodeName) -> Option<&'static str> {
    if node == NodeName::Storage && !cluster.host().is_kept() {
        return Some("the storage cannot be kept on a disk");
    }
    cluster.is_down(node).then_some("its target was down")
}
