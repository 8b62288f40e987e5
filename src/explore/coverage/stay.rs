//! How long each client was in which phase: the course of a run, for who wants to disturb the next.
//!
//! The phases are those of the coverage matrix, so what is put into one is counted there.

use std::collections::BTreeMap;

use super::{LockPhase, World};
use crate::history::{EventKind, History, NodeName, Phase};

/// A stretch of time that a client spent in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::explore) struct Stay {
    /// Its beginning, in nanoseconds of true time since the traffic began.
    pub(in crate::explore) from_ns: u64,
    /// Its end.
    pub(in crate::explore) to_ns: u64,
    /// The client.
    pub(in crate::explore) node: NodeName,
    /// The phase.
    pub(in crate::explore) phase: LockPhase,
}

/// When the traffic of a run began, in nanoseconds of true time: the times of a plan count from it.
pub(in crate::explore) fn traffic_began_ns(history: &History) -> u64 {
    let traffic = EventKind::Phase(Phase::Traffic);
    history.events.iter().find(|event| event.kind == traffic).map_or(0, |event| event.at_ns)
}

/// All stays of a history, in the order of their beginnings.
pub(in crate::explore) fn stays(history: &History) -> Vec<Stay> {
    let mut world = World::default();
    let mut open: BTreeMap<NodeName, (LockPhase, u64)> = BTreeMap::new();
    let (mut stays, mut now_ns, traffic_ns) = (Vec::new(), 0, traffic_began_ns(history));
    for event in &history.events {
        now_ns = event.at_ns.saturating_sub(traffic_ns);
        world.see(event.at_ns, event.node, &event.kind);
        // What one node does may change the phase of another: a commit makes the next the owner.
        for node in world.clients.keys() {
            let phase = world.phase(*node);
            if open.get(node).map(|(phase, _)| *phase) == phase {
                continue;
            }
            if let Some((phase, from_ns)) = open.remove(node) {
                stays.push(Stay { from_ns, to_ns: now_ns, node: *node, phase });
            }
            if let Some(phase) = phase {
                open.insert(*node, (phase, now_ns));
            }
        }
    }
    let left = open.into_iter();
    stays.extend(left.map(|(node, (phase, from_ns))| Stay { from_ns, to_ns: now_ns, node, phase }));
    stays.sort_unstable();
    stays
}
