//! Pauses of a whole node: with its clocks running on (GC), or standing still (VM migration).

use super::{Begun, Family};
use crate::{cluster::Cluster, history::NodeName, plan::FaultKind};

pub(super) const PAUSE: Family = Family {
    name: "pause",
    help: "a node's tasks stop, its clocks go on, messages queue up (GC)",
    effect: "timers that came due and messages that arrived while it stood still",
    weight: 5,
    length_ms: (200, 7000),
    colour: "#d97706",
    draw: |stream, shape| FaultKind::Pause { node: shape.node(stream) },
    begin: |cluster, _, fault| match fault.kind {
        FaultKind::Pause { node } => begin(cluster, node, false),
        _ => Begun::Skipped("not a pause"),
    },
};

pub(super) const SUSPEND: Family = Family {
    name: "suspend",
    help: "as a pause, and the node's monotonic clock stands still too (VM migration)",
    effect: "timers that were moved and messages that arrived while it stood still",
    weight: 3,
    length_ms: (500, 8000),
    colour: "#b45309",
    draw: |stream, shape| {
        let node = if stream.chance(150) { shape.etcd() } else { shape.client(stream) };
        FaultKind::Suspend { node }
    },
    begin: |cluster, _, fault| match fault.kind {
        FaultKind::Suspend { node } => begin(cluster, node, true),
        _ => Begun::Skipped("not a suspend"),
    },
};

fn begin(cluster: &Cluster, node: NodeName, suspend: bool) -> Begun {
    if cluster.is_down(node) {
        return Begun::Skipped("its target was down");
    }
    cluster.pause(node);
    let id = cluster.id(node);
    let moved = if suspend { cluster.clocks().suspend(id) } else { 0 };
    if suspend {
        cluster.note_rate(node);
    }
    Begun::Active(Box::new(move |cluster| {
        let waiting = cluster.clocks().overdue(id) + cluster.net().unread(id);
        if suspend {
            cluster.clocks().wake_up(id);
            cluster.note_rate(node);
        }
        cluster.resume(node);
        moved + waiting
    }))
}
