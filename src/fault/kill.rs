//! Kill and restart of a process: a client's, or the etcd member's, which keeps its store and its
//! leases.

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const KILL: Family = Family {
    name: "kill",
    help: "a client's or etcd's process dies and starts anew when the fault ends",
    effect: "processes killed",
    weight: 2,
    length_ms: (100, 5000),
    colour: "#111827",
    draw: |stream, shape| {
        let node = if stream.chance(250) { shape.etcd() } else { shape.client(stream) };
        FaultKind::Kill { node }
    },
    begin: |cluster, _, fault| match fault.kind {
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
