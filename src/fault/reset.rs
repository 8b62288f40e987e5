//! Connection resets: what is under way is lost, and both ends are told at once.

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const RESET: Family = Family {
    name: "reset",
    help: "the connections between two nodes break; what was under way is lost",
    effect: "open directions of connections that broke",
    weight: 2,
    length_ms: (0, 0),
    colour: "#991b1b",
    draw: |stream, shape| {
        let (from, to) = (shape.client(stream), shape.server(stream));
        FaultKind::Reset { from, to }
    },
    begin: |cluster, _, fault| {
        let FaultKind::Reset { from, to } = fault.kind else {
            return Begun::Skipped("not a reset");
        };
        let broken = cluster.net().reset(cluster.id(from), cluster.id(to));
        Begun::Active(Box::new(move |_| broken))
    },
};
