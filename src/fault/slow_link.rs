//! Slow links: each message takes up the way for a while, so that a burst queues up.

use std::time::Duration;

use super::{Begun, Family};
use crate::plan::FaultKind;

pub(super) const SLOW_LINK: Family = Family {
    name: "slow-link",
    help: "the way from one node to another carries one message at a time; bursts queue up",
    effect: "messages that took up the slow way",
    weight: 2,
    length_ms: (1000, 6000),
    colour: "#6d28d9",
    draw: |stream, shape| {
        let (client, server) = (shape.client(stream), shape.server(stream));
        let (from, to) = if stream.chance(600) { (client, server) } else { (server, client) };
        FaultKind::SlowLink { from, to, message_ms: stream.between(30, 700) }
    },
    begin: |cluster, _, fault| {
        let FaultKind::SlowLink { from, to, message_ms } = fault.kind else {
            return Begun::Skipped("not a slow link");
        };
        let (src, dst) = (cluster.id(from), cluster.id(to));
        let each = Duration::from_millis(message_ms);
        cluster.net().add_slowness(src, dst, each);
        cluster.note_link(from, to);
        let before = cluster.net().effect(src, dst).slowed;
        Begun::Active(Box::new(move |cluster| {
            cluster.net().remove_slowness(src, dst, each);
            cluster.note_link(from, to);
            cluster.net().effect(src, dst).slowed - before
        }))
    },
};
