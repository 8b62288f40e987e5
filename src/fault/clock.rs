//! The rate of a monotonic clock. What happens to wall clocks is in `wall.rs`.

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
