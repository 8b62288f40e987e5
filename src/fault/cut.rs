//! Cuts: nothing gets from one node to another, in one direction or both.

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const CUT: Family = Family {
    name: "cut",
    help: "nothing gets from one node to another (one-way or both ways); messages are held",
    effect: "messages and connection attempts that were held",
    weight: 4,
    length_ms: (300, 8000),
    colour: "#dc2626",
    draw: |stream, shape| {
        let (client, server) = (shape.client(stream), shape.server(stream));
        let both_ways = stream.chance(500);
        let (from, to) = if stream.chance(500) { (client, server) } else { (server, client) };
        FaultKind::Cut { from, to, both_ways }
    },
    begin: |cluster, _, fault| {
        let FaultKind::Cut { from, to, both_ways } = fault.kind else {
            return Begun::Skipped("not a cut");
        };
        let (a, b) = (cluster.id(from), cluster.id(to));
        let mut directions = vec![(a, b)];
        directions.extend(both_ways.then_some((b, a)));
        let mut held_before = 0;
        for (src, dst) in &directions {
            cluster.net().cut(*src, *dst);
            held_before += cluster.net().effect(*src, *dst).held;
        }
        Begun::Active(Box::new(move |cluster| {
            let mut held = 0;
            for (src, dst) in &directions {
                held += cluster.net().effect(*src, *dst).held;
                cluster.net().mend(*src, *dst);
            }
            held - held_before
        }))
    },
};
