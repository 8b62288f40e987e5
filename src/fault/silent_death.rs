//! Silent deaths: a machine is cut off, and then its process dies. A kill alone closes the
//! connections, and every peer knows at once.

use super::{Begun, Family, kill};
use crate::plan::FaultKind;

pub(super) const SILENT_DEATH: Family = Family {
    name: "silent-death",
    help: "a machine is cut off and its process dies; no peer sees its connections end",
    effect: "messages that were held, the ends of connections among them",
    weight: 1,
    length_ms: (500, 8000),
    colour: "#374151",
    draw: |stream, shape| FaultKind::SilentDeath { node: kill::target(stream, shape) },
    begin: |cluster, _, fault| {
        let FaultKind::SilentDeath { node } = fault.kind else {
            return Begun::Skipped("not a silent death");
        };
        if let Some(why) = kill::obstacle(cluster, node) {
            return Begun::Skipped(why);
        }
        let others = cluster.others(node).into_iter();
        let links: Vec<_> = others.flat_map(|other| [(node, other), (other, node)]).collect();
        let mut before = 0;
        for (from, to) in &links {
            let (src, dst) = (cluster.id(*from), cluster.id(*to));
            cluster.net().cut(src, dst);
            cluster.note_link(*from, *to);
            before += cluster.net().effect(src, dst).held;
        }
        cluster.kill(node);
        Begun::Active(Box::new(move |cluster| {
            cluster.restart(node);
            let mut held = 0;
            for (from, to) in &links {
                let (src, dst) = (cluster.id(*from), cluster.id(*to));
                held += cluster.net().effect(src, dst).held;
                cluster.net().mend(src, dst);
                cluster.note_link(*from, *to);
            }
            held - before
        }))
    },
};
