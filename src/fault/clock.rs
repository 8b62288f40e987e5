//! Clock faults: the rate of the monotonic clock, the offset of the wall clock.

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const RATE: Family = Family {
    name: "clock-rate",
    help: "a node's monotonic clock, and all its timers, run at 0.5 to 2 times true time",
    effect: "sleeps that ran on the clock while its rate was off",
    weight: 3,
    length_ms: (1000, 12_000),
    colour: "#2563eb",
    draw: |stream, shape| {
        let node = if stream.chance(300) { shape.etcd() } else { shape.client(stream) };
        FaultKind::ClockRate { node, permille: stream.between(500, 2000) as u32 }
    },
    begin: |cluster, _, fault| {
        let FaultKind::ClockRate { node, permille } = fault.kind else {
            return Begun::Skipped("not a clock rate");
        };
        let id = cluster.id(node);
        cluster.clocks().add_rate(id, permille);
        cluster.note_rate(node);
        let before = cluster.clocks().effect(id).rated;
        Begun::Active(Box::new(move |cluster| {
            cluster.clocks().remove_rate(id, permille);
            cluster.note_rate(node);
            cluster.clocks().effect(id).rated - before
        }))
    },
};

pub(super) const OFFSET: Family = Family {
    name: "clock-offset",
    help: "a node's wall clock is off by up to an hour; its monotonic clock is not",
    effect: "readings of the wall clock while it was off",
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
