//! Kill and restart of a process: a client's; the etcd member's, which keeps its store and its
//! leases; the storage's, whose machine loses its power, and with it what was not synced.

use super::{Begun, Family};
use crate::{history::NodeName, plan::FaultKind};

pub(super) const KILL: Family = Family {
    name: "kill",
    help: "a process dies and starts anew when the fault ends; the storage's disk loses what was \
           not synced",
    effect: "processes killed",
    weight: 2,
    length_ms: (100, 5000),
    colour: "#111827",
    draw: |stream, shape| {
        let node = match stream.below(8) {
            0 | 1 => shape.etcd(),
            2 | 3 => NodeName::Storage,
            _ => shape.client(stream),
        };
        FaultKind::Kill { node }
    },
    begin: |cluster, _, fault| match fault.kind {
        FaultKind::Kill { node: NodeName::Storage } if !cluster.host().is_kept() => {
            Begun::Skipped("the storage cannot be kept on a disk")
        }
        FaultKind::Kill { node } if !cluster.is_down(node) => {
            cluster.kill(node);
            Begun::Active(Box::new(move |cluster| {
                cluster.restart(node);
                1
            }))
        }
        _ => Begun::Skipped("its target was down"),
    },
};
