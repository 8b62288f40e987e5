//! Pauses at a named code point: the narrow windows are hit on purpose, not by luck.

use super::{Begun, Family};
use crate::{
    cluster::Cluster,
    history::NodeName,
    plan::{Fault, FaultKind},
    point::{Pending, PointSim},
};

/// The points that a drawn plan may name: those that a client passes. The window between a check
/// and the write that relies on it stands here more than once, so that it is drawn more often.
pub const POINTS: [&str; 12] = [
    "client.before_write",
    "client.before_write",
    "client.before_write",
    "client.after_lock",
    "client.after_lock",
    "client.after_enter",
    "queue.after_enqueue",
    "queue.before_wait",
    "queue.after_wait",
    "mutex.before_unlock",
    "session.before_renew",
    "session.after_grant",
];

/// Those that the storage passes, for each request or each sync.
pub(super) const STORAGE_POINTS: [&str; 4] =
    ["storage.before_sync", "storage.after_sync", "storage.before_apply", "storage.before_answer"];

pub(super) const POINT_PAUSE: Family = Family {
    name: "point-pause",
    help: "a node stops at a named code point, such as between the check and the write",
    effect: "timers that came due and messages that arrived while it stood still",
    weight: 8,
    length_ms: (1500, 8000),
    colour: "#ea580c",
    draw: |stream, shape| {
        let (node, points, most) = match stream.chance(80) {
            true => (NodeName::Storage, &STORAGE_POINTS[..], 60),
            false => (shape.client(stream), &POINTS[..], 6),
        };
        let point = (*stream.pick(points)).to_owned();
        FaultKind::PointPause { node, point, occurrence: stream.between(1, most) as u32 }
    },
    begin: |cluster, index, fault| match &fault.kind {
        FaultKind::PointPause { node, point, occurrence } => {
            arm((cluster, *node), (index, fault), point, *occurrence)
        }
        _ => Begun::Skipped("not a pause at a point"),
    },
};

/// Arms a fault, which strikes when the node passes a point for the given time, counted from 1.
pub(super) fn arm(
    (cluster, node): (&Cluster, NodeName),
    (index, fault): (u32, &Fault),
    point: &str,
    occurrence: u32,
) -> Begun {
    let (point, length) = (point.to_owned(), fault.length());
    let pending = Pending { fault: index, point, occurrence, length };
    PointSim::current().wait_for(cluster.id(node), pending);
    Begun::Armed
}
