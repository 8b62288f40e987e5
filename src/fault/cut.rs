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
        let mut directions = vec![(from, to)];
        directions.extend(both_ways.then_some((to, from)));
        let mut held_before = 0;
        for (from, to) in &directions {
            let (src, dst) = (cluster.id(*from), cluster.id(*to));
            cluster.net().cut(src, dst);
            held_before += cluster.net().effect(src, dst).held;
            cluster.note_link(*from, *to);
        }
        Begun::Active(Box::new(move |cluster| {
            let mut held = 0;
            for (from, to) in &directions {
                let (src, dst) = (cluster.id(*from), cluster.id(*to));
                held += cluster.net().effect(src, dst).held;
                cluster.net().mend(src, dst);
                cluster.note_link(*from, *to);
            }
            held - held_before
        }))
    },
};
