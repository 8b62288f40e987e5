//! Link delays: a message may be under way for longer than a lease lives.

use std::time::Duration;

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const LINK_DELAY: Family = Family {
    name: "link-delay",
    help: "each message from one node to another takes longer, up to more than a lease lives",
    effect: "messages that were made late",
    weight: 4,
    length_ms: (200, 4000),
    colour: "#7c3aed",
    draw: |stream, shape| {
        let (client, server) = (shape.client(stream), shape.server(stream));
        let (from, to) = if stream.chance(600) { (client, server) } else { (server, client) };
        FaultKind::LinkDelay { from, to, delay_ms: stream.between(20, 5000) }
    },
    begin: |cluster, _, fault| {
        let FaultKind::LinkDelay { from, to, delay_ms } = fault.kind else {
            return Begun::Skipped("not a delay");
        };
        let (src, dst) = (cluster.id(from), cluster.id(to));
        let delay = Duration::from_millis(delay_ms);
        cluster.net().add_delay(src, dst, delay);
        cluster.note_link(from, to);
        let before = cluster.net().effect(src, dst).delayed;
        Begun::Active(Box::new(move |cluster| {
            cluster.net().remove_delay(src, dst, delay);
            cluster.note_link(from, to);
            cluster.net().effect(src, dst).delayed - before
        }))
    },
};
