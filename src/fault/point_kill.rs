//! Death at a named code point: between the append and its sync, between the write and its answer.

use super::{
    Begun, Family, kill,
    point::{POINTS, STORAGE_POINTS, arm},
};
use crate::{history::NodeName, plan::FaultKind};

pub(super) const POINT_KILL: Family = Family {
    name: "point-kill",
    help: "a process dies at a named code point, such as between an append and its sync",
    effect: "processes killed",
    weight: 2,
    length_ms: (100, 4000),
    colour: "#1f2937",
    draw: |stream, shape| {
        let (node, points, most) = match stream.chance(500) {
            true => (NodeName::Storage, &STORAGE_POINTS[..], 60),
            false => (shape.client(stream), &POINTS[..], 6),
        };
        let point = (*stream.pick(points)).to_owned();
        FaultKind::PointKill { node, point, occurrence: stream.between(1, most) as u32 }
    },
    begin: |cluster, index, fault| {
        let FaultKind::PointKill { node, point, occurrence } = &fault.kind else {
            return Begun::Skipped("not a death at a point");
        };
        if *node == NodeName::Storage
            && let Some(why) = kill::obstacle(cluster, *node)
        {
            return Begun::Skipped(why);
        }
        arm((cluster, *node), (index, fault), point, *occurrence)
    },
};
