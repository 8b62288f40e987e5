//! Restart under a client that stands still: what a server does not keep over a restart matters
//! only to somebody who has begun before it and goes on after it. Two faults drawn apart meet like
//! that once in many hundred plans, so this family makes them meet.

use super::{
    Begun, Family, kill,
    point::{POINTS, arm},
};
use crate::{cluster::Cluster, history::NodeName, plan::FaultKind};

pub(super) const RESTART_UNDER: Family = Family {
    name: "restart-under",
    help: "a client stops at a code point; when it goes on, a server has just been started anew",
    effect: "servers started anew under a client that stood still",
    weight: 3,
    length_ms: (1500, 6500),
    colour: "#9f1239",
    draw: |stream, shape| {
        let node = shape.client(stream);
        let point = (*stream.pick(&POINTS)).to_owned();
        let occurrence = stream.between(1, 6) as u32;
        let server = if stream.chance(700) { NodeName::Storage } else { shape.etcd() };
        FaultKind::RestartUnder { node, point, occurrence, server }
    },
    begin: |cluster, index, fault| match &fault.kind {
        FaultKind::RestartUnder { node, point, occurrence, .. } => {
            arm((cluster, *node), (index, fault), point, *occurrence)
        }
        _ => Begun::Skipped("not a restart under a client"),
    },
};

/// Starts a server anew: it loses what it did not keep. Whether it could be done.
pub(super) fn restart(cluster: &Cluster, server: NodeName) -> bool {
    if kill::obstacle(cluster, server).is_some() {
        return false;
    }
    cluster.kill(server);
    cluster.restart(server);
    true
}
