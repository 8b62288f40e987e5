//! The course of the nodes: when each of them ran, how fast its clock went, which links were open,
//! what else was done to it. From the events that say so as truth ([`EventKind::Stop`] and its
//! like), so a history without them has no course.

use std::collections::BTreeMap;

use crate::history::{Event, EventKind, FaultAction, NodeName};

/// A mended link delivers what it has held within this time.
const RESENT_NS: u64 = 1_100_000_000;
/// A client has found a restarted server again within this time.
const RECONNECTED_NS: u64 = 3_000_000_000;

/// How a node was from some moment on.
#[derive(Debug, Clone, Copy)]
struct State {
    /// In true time.
    from_ns: u64,
    runs: bool,
    /// The rate of its clock; none if that is not known.
    permille: Option<u32>,
}

/// A stretch of true time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Its first moment.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

/// When each node ran, and what disturbed it.
#[derive(Debug, Default)]
pub(super) struct Course {
    nodes: BTreeMap<NodeName, Vec<State>>,
    /// Links that were not as they should be.
    links: BTreeMap<(NodeName, NodeName), Noise>,
    /// Nodes that did not run, or not at true rate.
    harmed: BTreeMap<NodeName, Noise>,
    /// Faults, whatever they did, on the client that they touched or on no client.
    faults: BTreeMap<NodeName, Noise>,
}

/// Stretches of time in which something was not as it should be.
#[derive(Debug, Default)]
struct Noise {
    /// In the order of their beginnings, once all are known.
    spans: Vec<Span>,
    /// For each the latest end so far.
    latest: Vec<u64>,
}

impl Noise {
    fn settle(&mut self) {
        self.spans.sort_by_key(|span| span.from_ns);
        let mut latest = 0;
        self.latest.extend(self.spans.iter().map(|span| {
            latest = latest.max(span.to_ns);
            latest
        }));
    }

    /// All that reach into this stretch, and perhaps some before.
    fn near(&self, span: Span) -> &[Span] {
        let first = self.latest.partition_point(|latest| *latest <= span.from_ns);
        let after = self.spans.partition_point(|noise| noise.from_ns < span.to_ns);
        self.spans.get(first..after).unwrap_or_default()
    }
}

impl Course {
    /// The course of all nodes, from all events of a history that tell of it.
    pub fn new(events: &[&Event]) -> Course {
        let mut pass = Pass::default();
        for event in events {
            pass.event(event.at_ns, event.node, &event.kind);
        }
        pass.finish()
    }

    fn state(&self, node: NodeName, at_ns: u64) -> Option<State> {
        let states = self.nodes.get(&node)?;
        let after = states.partition_point(|state| state.from_ns <= at_ns);
        after.checked_sub(1).map(|last| states[last])
    }

    /// The rate of a node's clock at a moment, in thousandths; none if it is not known.
    pub fn permille(&self, node: NodeName, at_ns: u64) -> Option<u32> {
        self.state(node, at_ns)?.permille
    }

    /// Whether nothing is known of the node's clock having run at another rate than true time in
    /// this stretch.
    pub fn kept_time(&self, node: NodeName, span: Span) -> bool {
        let states = self.nodes.get(&node).map(Vec::as_slice).unwrap_or_default();
        let began = states.partition_point(|state| state.from_ns <= span.from_ns);
        let states = states[began.saturating_sub(1)..].iter();
        let mut within = states.take_while(|state| state.from_ns < span.to_ns);
        within.all(|state| state.permille.is_none_or(|permille| permille == 1000))
    }

    /// How much of the last `span_ns` on the node's own clock before `end_ns` it ran; none if the
    /// rate of its clock is not known of all that time.
    pub fn ran(&self, node: NodeName, end_ns: u64, span_ns: u64) -> Option<u64> {
        let states = self.nodes.get(&node)?;
        let after = states.partition_point(|state| state.from_ns <= end_ns);
        states[..after].last()?.permille?;
        let (mut to_ns, mut left, mut ran) = (end_ns, span_ns, 0);
        for state in states[..after].iter().rev() {
            let permille = u128::from(state.permille?);
            let length = u128::from(to_ns.saturating_sub(state.from_ns)) * permille / 1000;
            let length = u64::try_from(length).unwrap_or(u64::MAX).min(left);
            ran += if state.runs { length } else { 0 };
            left -= length;
            to_ns = state.from_ns;
            if left == 0 {
                break;
            }
        }
        (left == 0).then_some(ran)
    }

    /// The stretches between two moments in which nothing stood between a client and a server:
    /// both ran at true rate, both directions of their link were open, no fault touched them.
    pub fn quiet(&self, client: NodeName, server: NodeName, span: Span) -> Vec<Span> {
        let concerns = |node: NodeName| node == client || !matches!(node, NodeName::Client(_));
        let ways = [(client, server), (server, client)];
        let links = ways.iter().filter_map(|way| self.links.get(way));
        let harmed = [client, server].into_iter().filter_map(|node| self.harmed.get(&node));
        let faults = self.faults.iter().filter(|(node, _)| concerns(**node));
        let noises = links.chain(harmed).chain(faults.map(|(_, noise)| noise));
        let mut noise: Vec<Span> = noises.flat_map(|noise| noise.near(span)).copied().collect();
        noise.sort_by_key(|span| span.from_ns);
        let (mut quiet, mut from_ns) = (Vec::new(), span.from_ns);
        for noise in noise.into_iter().filter(|noise| noise.to_ns > span.from_ns) {
            let to_ns = noise.from_ns.min(span.to_ns);
            if to_ns > from_ns {
                quiet.push(Span { from_ns, to_ns });
            }
            from_ns = from_ns.max(noise.to_ns);
        }
        if span.to_ns > from_ns {
            quiet.push(Span { from_ns, to_ns: span.to_ns });
        }
        quiet
    }
}

#[derive(Default)]
struct Pass {
    course: Course,
    /// Nodes that are down or stand still, with the time from which on they do, and links that are
    /// shut or slow.
    down: BTreeMap<NodeName, u64>,
    stopped: BTreeMap<NodeName, u64>,
    rated: BTreeMap<NodeName, u64>,
    links: BTreeMap<(NodeName, NodeName), (u64, u64)>,
    faults: BTreeMap<u32, (NodeName, u64)>,
}

impl Pass {
    fn event(&mut self, at_ns: u64, node: NodeName, kind: &EventKind) {
        match kind {
            EventKind::Stop => {
                self.stopped.entry(node).or_insert(at_ns);
                self.change(at_ns, node, |state| state.runs = false);
            }
            EventKind::Go => {
                let from = self.stopped.remove(&node);
                self.harmed(node, from, at_ns);
                self.change(at_ns, node, |state| state.runs = true);
            }
            EventKind::Killed => {
                self.down.entry(node).or_insert(at_ns);
            }
            EventKind::Restarted => {
                let from = self.down.remove(&node);
                self.harmed(node, from, at_ns + RECONNECTED_NS);
            }
            EventKind::Rate { permille } => {
                let from = self.rated.remove(&node);
                self.harmed(node, from, at_ns);
                if *permille != 1000 {
                    self.rated.insert(node, at_ns);
                }
                self.change(at_ns, node, |state| state.permille = Some(*permille));
            }
            EventKind::Link { from, to, open, delay_ms } => {
                if let Some((from_ns, late_ns)) = self.links.remove(&(*from, *to)) {
                    let to_ns = at_ns.saturating_add(late_ns);
                    let way = self.course.links.entry((*from, *to)).or_default();
                    way.spans.push(Span { from_ns, to_ns });
                }
                if !open || *delay_ms > 0 {
                    let late_ns = delay_ms.saturating_mul(1_000_000).saturating_add(RESENT_NS);
                    self.links.insert((*from, *to), (at_ns, late_ns));
                }
            }
            EventKind::Fault { index, action: FaultAction::Begin } => {
                self.faults.entry(*index).or_insert((node, at_ns));
            }
            EventKind::Fault { index, action: FaultAction::End } => {
                if let Some((node, from_ns)) = self.faults.remove(index) {
                    let faults = self.course.faults.entry(node).or_default();
                    faults.spans.push(Span { from_ns, to_ns: at_ns });
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, from_ns: u64, node: NodeName, change: impl FnOnce(&mut State)) {
        let states = self.course.nodes.entry(node).or_default();
        let start = State { from_ns: 0, runs: true, permille: None };
        let mut state = State { from_ns, ..states.last().copied().unwrap_or(start) };
        change(&mut state);
        states.push(state);
    }

    fn harmed(&mut self, node: NodeName, from_ns: Option<u64>, to_ns: u64) {
        if let Some(from_ns) = from_ns {
            let harmed = self.course.harmed.entry(node).or_default();
            harmed.spans.push(Span { from_ns, to_ns });
        }
    }

    /// What did not end goes on for ever.
    fn finish(mut self) -> Course {
        let open = [&self.down, &self.stopped, &self.rated];
        let for_ever = |from_ns| Span { from_ns, to_ns: u64::MAX };
        for (node, from_ns) in open.into_iter().flatten() {
            self.course.harmed.entry(*node).or_default().spans.push(for_ever(*from_ns));
        }
        for (way, (from_ns, _)) in &self.links {
            self.course.links.entry(*way).or_default().spans.push(for_ever(*from_ns));
        }
        for (node, from_ns) in self.faults.values() {
            self.course.faults.entry(*node).or_default().spans.push(for_ever(*from_ns));
        }
        self.course.links.values_mut().for_each(Noise::settle);
        self.course.harmed.values_mut().for_each(Noise::settle);
        self.course.faults.values_mut().for_each(Noise::settle);
        self.course
    }
}
