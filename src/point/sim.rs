//! The simulated side: counts passages, and stops the node at the ones that were asked for.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use madsim::{
    plugin::{self, Simulator},
    rand::GlobalRng,
    runtime::Handle,
    task::{NodeId, yield_now},
    time::TimeHandle,
};

/// Told when a node was stopped at a point; it has to resume the node after the pending length.
pub(crate) type Stopped = Arc<dyn Fn(NodeId, &Pending, &'static str) + Send + Sync>;

/// A pause that waits for a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// Index of the fault in the plan.
    pub(crate) fault: u32,
    /// The point.
    pub(crate) point: String,
    /// Which passage from now on, counted from 1.
    pub(crate) occurrence: u32,
    /// How long the node stands still.
    pub(crate) length: Duration,
}

/// The code points of a run.
#[derive(Default)]
pub(crate) struct PointSim {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    pending: BTreeMap<NodeId, Vec<Pending>>,
    stopped: Option<Stopped>,
}

impl Simulator for PointSim {
    fn new(_rand: &GlobalRng, _time: &TimeHandle, _config: &madsim::Config) -> Self {
        PointSim::default()
    }
}

impl PointSim {
    /// The code points of the running simulation.
    pub(crate) fn current() -> Arc<Self> {
        plugin::simulator::<PointSim>()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Calls `stopped` whenever a node is stopped at a point.
    pub(crate) fn on_stop(&self, stopped: Stopped) {
        self.lock().stopped = Some(stopped);
    }

    /// Asks for a pause.
    pub(crate) fn wait_for(&self, node: NodeId, pending: Pending) {
        self.lock().pending.entry(node).or_default().push(pending);
    }

    /// Takes a pause back; true if it was still waiting for its passage.
    pub(crate) fn withdraw(&self, node: NodeId, fault: u32) -> bool {
        let mut inner = self.lock();
        let Some(pending) = inner.pending.get_mut(&node) else { return false };
        let before = pending.len();
        pending.retain(|pending| pending.fault != fault);
        pending.len() < before
    }

    fn pass(&self, node: NodeId, name: &'static str) -> Option<(Pending, Option<Stopped>)> {
        let mut inner = self.lock();
        let waiting = inner.pending.get_mut(&node)?;
        let mut due = None;
        for (index, pending) in waiting.iter_mut().enumerate() {
            if pending.point == name {
                pending.occurrence = pending.occurrence.saturating_sub(1);
                if pending.occurrence == 0 && due.is_none() {
                    due = Some(index);
                }
            }
        }
        let pending = waiting.remove(due?);
        Some((pending, inner.stopped.clone()))
    }
}

/// Passes the code point of this name; the node stops here if the plan says so.
pub async fn reach(name: &'static str) {
    let node = plugin::node();
    let Some((pending, stopped)) = PointSim::current().pass(node, name) else { return };
    // A pause of the own node acts at the next await. Whoever is told here resumes it: a task of
    // this node could not, being stopped with it.
    Handle::current().pause(node);
    if let Some(stopped) = stopped {
        stopped(node, &pending, name);
    }
    yield_now().await;
}
