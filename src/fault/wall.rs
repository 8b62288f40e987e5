//! Wall clocks that are off, step and strobe. A monotonic clock does none of that, and nothing
//! that is right may notice.

use std::time::Duration;

use super::{Begun, Family};
use crate::{cluster::Cluster, history::NodeName, plan::FaultKind, time::sim::Wall};

const EFFECT: &str = "readings of the wall clock while it was off";

pub(super) const OFFSET: Family = Family {
    name: "clock-offset",
    help: "a node's wall clock is off by up to an hour; its monotonic clock is not",
    effect: EFFECT,
    weight: 1,
    length_ms: (1000, 12_000),
    colour: "#0891b2",
    draw: |stream, shape| FaultKind::ClockOffset {
        node: shape.client(stream),
        offset_ms: stream.between(0, 7_200_000) as i64 - 3_600_000,
    },
    begin: |cluster, _, fault| {
        let FaultKind::ClockOffset { node, offset_ms } = fault.kind else {
            return Begun::Skipped("not a clock offset");
        };
        let id = cluster.id(node);
        cluster.clocks().step_wall(id, offset_ms);
        let before = cluster.clocks().effect(id).offset;
        Begun::Active(Box::new(move |cluster| {
            cluster.clocks().step_wall(id, -offset_ms);
            cluster.clocks().effect(id).offset - before
        }))
    },
};

pub(super) const STEP: Family = Family {
    name: "clock-step",
    help: "a node's wall clock jumps by up to a minute and is led back evenly, as by NTP",
    effect: EFFECT,
    weight: 1,
    length_ms: (1000, 10_000),
    colour: "#0e7490",
    draw: |stream, shape| FaultKind::ClockStep {
        node: shape.client(stream),
        step_ms: stream.between(0, 120_000) as i64 - 60_000,
    },
    begin: |cluster, _, fault| match fault.kind {
        FaultKind::ClockStep { node, step_ms } => {
            begin(cluster, node, Wall::Slewed { step_ms, within: fault.length() })
        }
        _ => Begun::Skipped("not a clock step"),
    },
};

pub(super) const STROBE: Family = Family {
    name: "clock-strobe",
    help: "a node's wall clock jumps to and fro, by up to ten seconds and many times a second",
    effect: EFFECT,
    weight: 1,
    length_ms: (1000, 10_000),
    colour: "#155e75",
    draw: |stream, shape| FaultKind::ClockStrobe {
        node: shape.client(stream),
        offset_ms: stream.between(0, 20_000) as i64 - 10_000,
        period_ms: stream.between(1, 200),
    },
    begin: |cluster, _, fault| match fault.kind {
        FaultKind::ClockStrobe { node, offset_ms, period_ms } => {
            let period = Duration::from_millis(period_ms);
            begin(cluster, node, Wall::Strobe { offset_ms, period })
        }
        _ => Begun::Skipped("not a clock strobe"),
    },
};

fn begin(cluster: &Cluster, node: NodeName, wall: Wall) -> Begun {
    let id = cluster.id(node);
    let moved = cluster.clocks().add_wall(id, wall);
    let before = cluster.clocks().effect(id).offset;
    Begun::Active(Box::new(move |cluster| {
        cluster.clocks().remove_wall(id, moved);
        cluster.clocks().effect(id).offset - before
    }))
}
