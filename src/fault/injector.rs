//! Executes a plan: begins each fault at its time, ends it, and records both with the effect.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{Begun, family_of, restart_under};
use crate::{
    cluster::Cluster,
    history::{EventKind, FaultAction, NodeName},
    plan::{Fault, FaultKind, Plan},
    point::PointSim,
    time::{Instant, sleep_until},
};

type End = Box<dyn FnOnce(&Cluster) -> u64>;

/// A node was stopped at a point: the fault's index and the point's name.
type Stop = (u32, &'static str);

/// The one who harms, as the plan says.
pub(crate) struct Injector {
    cluster: Cluster,
    faults: Vec<Fault>,
    began: Instant,
    next: usize,
    /// Faults that act, by the time of their end and their index.
    active: BTreeMap<(Duration, u32), End>,
    /// Faults that wait for a code point, with their targets.
    armed: BTreeMap<u32, NodeName>,
    stops: mpsc::UnboundedReceiver<Stop>,
}

impl Injector {
    /// Gets ready; the plan's times count from now.
    pub(crate) fn new(cluster: Cluster, plan: &Plan) -> Self {
        let (told, stops) = mpsc::unbounded_channel();
        PointSim::current().on_stop(Arc::new(move |_, pending, name| {
            // The injector outlives the traffic; a stop after it is over changes nothing.
            let _ = told.send((pending.fault, name));
        }));
        let mut faults = plan.faults.clone();
        faults.sort_by_key(|fault| fault.start_ms);
        Injector {
            cluster,
            faults,
            began: Instant::now(),
            next: 0,
            active: BTreeMap::new(),
            armed: BTreeMap::new(),
            stops,
        }
    }

    /// Executes the plan for this long.
    pub(crate) async fn run(&mut self, length: Duration) {
        loop {
            let start = self.faults.get(self.next).map(Fault::start);
            let end = self.active.keys().next().map(|(end, _)| *end);
            let due = [start, end].into_iter().flatten().fold(length, Duration::min);
            tokio::select! {
                biased;
                Some(stop) = self.stops.recv() => self.stopped(stop),
                () = sleep_until(self.began + due) => {
                    let now = self.began.elapsed();
                    if now >= length {
                        return;
                    }
                    self.end_due(now);
                    self.begin_due(now);
                }
            }
        }
    }

    /// Ends every fault now.
    pub(crate) fn heal(&mut self) {
        while let Ok(stop) = self.stops.try_recv() {
            self.stopped(stop);
        }
        for (index, node) in std::mem::take(&mut self.armed) {
            PointSim::current().withdraw(self.cluster.id(node), index);
            self.record(index, FaultAction::Skipped("its point was not passed".into()));
        }
        for ((_, index), end) in std::mem::take(&mut self.active) {
            self.end(index, end);
        }
    }

    fn begin_due(&mut self, now: Duration) {
        while let Some(fault) = self.faults.get(self.next).filter(|f| f.start() <= now).cloned() {
            let index = self.next as u32;
            self.next += 1;
            match (family_of(&fault.kind).begin)(&self.cluster, index, &fault) {
                Begun::Skipped(why) => self.record(index, FaultAction::Skipped(why.into())),
                Begun::Active(end) => {
                    self.record(index, FaultAction::Begin);
                    self.active.insert((now + fault.length(), index), end);
                }
                Begun::Armed => {
                    if let Some(node) = fault.kind.nodes().first() {
                        self.armed.insert(index, *node);
                    }
                }
            }
        }
    }

    fn end_due(&mut self, now: Duration) {
        while let Some(entry) = self.active.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, index), end) = entry.remove_entry();
            self.end(index, end);
        }
    }

    fn end(&mut self, index: u32, end: End) {
        let effect = end(&self.cluster);
        self.record(index, FaultAction::Effect(effect));
        self.record(index, FaultAction::End);
    }

    /// A node stands at its point: it goes on after the fault's length, or dies there.
    fn stopped(&mut self, (index, name): Stop) {
        let (Some(node), Some(fault)) =
            (self.armed.remove(&index), self.faults.get(index as usize))
        else {
            return;
        };
        let end = self.began.elapsed() + fault.length();
        if matches!(fault.kind, FaultKind::PointKill { .. }) {
            return self.dies(node, index, end);
        }
        self.cluster.record(node, EventKind::Point { name: name.to_owned() });
        self.record(index, FaultAction::Begin);
        self.cluster.count_pause(node);
        let id = self.cluster.id(node);
        let resume: End = match fault.kind {
            FaultKind::RestartUnder { server, .. } => Box::new(move |cluster: &Cluster| {
                let restarted = restart_under::restart(cluster, server);
                cluster.resume(node);
                restarted.into()
            }),
            _ => Box::new(move |cluster: &Cluster| {
                let waiting = cluster.clocks().overdue(id) + cluster.net().unread(id);
                cluster.resume(node);
                waiting
            }),
        };
        self.active.insert((end, index), resume);
    }

    /// A process dies where it stands, and starts anew at the end.
    fn dies(&mut self, node: NodeName, index: u32, end: Duration) {
        if self.cluster.is_down(node) {
            return self.record(index, FaultAction::Skipped("its target was down".into()));
        }
        self.record(index, FaultAction::Begin);
        self.cluster.kill(node);
        let restart = Box::new(move |cluster: &Cluster| {
            cluster.restart(node);
            1
        });
        self.active.insert((end, index), restart);
    }

    fn record(&self, index: u32, action: FaultAction) {
        tracing::debug!(fault = index, ?action, "{}", self.faults[index as usize]);
        // On the client that it touches, so that the judge knows whose loss it explains.
        let nodes = self.faults[index as usize].kind.nodes();
        let client = nodes.into_iter().find(|node| matches!(node, NodeName::Client(_)));
        let node = client.unwrap_or(NodeName::Nemesis);
        self.cluster.record(node, EventKind::Fault { index, action });
    }
}
