//! What a run has reached (D11): an exploration that reached nothing is no pass.

use std::{collections::BTreeMap, ops::AddAssign};

use super::{Class, Holding, Index, Tenure, classify, control::contended_handovers};
use crate::history::{Cause, EventKind, FaultAction, NodeName};

/// The properties that an exploration with faults must reach, and what they mean.
pub const PROPERTIES: [(&str, &str); 8] = [
    ("overlap", "two holders believed in one lock at once"),
    ("stale-refused", "a superseded write was refused"),
    ("stale-refused-by-read", "a write was refused because of a read only"),
    ("expiry-while-held", "a lease ran out while its holder believed in the lock"),
    ("handover-by-expiry", "a waiter got the lock because a lease ran out"),
    ("keep-alive-lost-to-cut", "a lease ran out because a cut held its renewals"),
    ("pause-before-write", "a holder stood still between its check and its write"),
    ("overlap-by-suspend", "a suspend carried a belief past the end of its lease"),
];

/// How often each property was met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached(BTreeMap<&'static str, u64>);

impl Reached {
    /// How often a property was met.
    pub fn count(&self, property: &str) -> u64 {
        self.0.get(property).copied().unwrap_or(0)
    }

    /// All counts, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, count)| (*name, *count))
    }

    /// The properties of [`PROPERTIES`] that were never met.
    pub fn missing(&self) -> Vec<&'static str> {
        PROPERTIES.iter().map(|(name, _)| *name).filter(|name| self.count(name) == 0).collect()
    }

    fn add(&mut self, property: &'static str, count: u64) {
        *self.0.entry(property).or_default() += count;
    }
}

impl AddAssign<&Reached> for Reached {
    fn add_assign(&mut self, other: &Reached) {
        for (property, count) in &other.0 {
            self.add(property, *count);
        }
    }
}

/// What a fault of the plan is, as far as the checkers need to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultInfo {
    /// The name of its family.
    pub family: &'static str,
    /// The nodes that it touches.
    pub nodes: Vec<NodeName>,
}

/// When a fault acted, by `seq`, and whether it changed something.
struct Span<'f> {
    info: &'f FaultInfo,
    begin: u64,
    end: u64,
    effect: u64,
}

impl Span<'_> {
    fn holds(&self, seq: u64) -> bool {
        self.begin <= seq && seq <= self.end
    }

    fn touches(&self, node: NodeName) -> bool {
        self.info.nodes.contains(&node)
    }
}

/// What the run has reached. `faults` says what the faults of its plan are, by their index.
pub fn reached(index: &Index<'_>, faults: &BTreeMap<u32, FaultInfo>) -> Reached {
    let mut reached = Reached::default();
    let overlaps = overlaps(index);
    reached.add("overlap", overlaps.len() as u64);
    let mut by_read = 0;
    let classed = classify(index);
    for write in classed.iter().filter(|write| write.class == Class::StaleRefused) {
        reached.add("stale-refused", 1);
        by_read += u64::from(write.superseded_by.is_some_and(|newer| !newer.is_write()));
    }
    reached.add("stale-refused-by-read", by_read);
    reached.add("handover-contended", contended_handovers(index));
    count_handovers(index, &mut reached);
    let spans = spans(index, faults);
    for (holding, ended) in lost_while_held(index) {
        reached.add("expiry-while-held", 1);
        let mine = |span: &&Span<'_>| span.holds(ended) && span.touches(holding.node);
        let active: Vec<_> = spans.iter().filter(mine).collect();
        let by_cut = active.iter().any(|s| s.info.family == "cut" && s.effect > 0)
            && active.iter().all(|s| s.info.family == "cut");
        reached.add("keep-alive-lost-to-cut", u64::from(by_cut));
        let carried =
            |span: &&&Span<'_>| span.info.family == "suspend" && holding.is_believed_at(span.end);
        let by_suspend = active.iter().any(|span| carried(&span))
            && overlaps.iter().any(|(older, _)| older.id == holding.id);
        reached.add("overlap-by-suspend", u64::from(by_suspend));
    }
    reached.add("pause-before-write", pauses_before_write(index));
    reached
}

/// Pairs of holdings of different incarnations of one lock that were believed in at once, the
/// older one first.
pub(super) fn overlaps<'i>(index: &'i Index<'_>) -> Vec<(&'i Holding, &'i Holding)> {
    let mut believed: Vec<&Holding> =
        index.holdings.values().filter(|holding| holding.acquired.is_some()).collect();
    believed.sort_by_key(|holding| holding.acquired);
    let mut open: Vec<&Holding> = Vec::new();
    let mut overlaps = Vec::new();
    for holding in believed {
        let acquired = holding.acquired.unwrap_or_default();
        open.retain(|other| other.is_believed_at(acquired));
        let differs = |other: &&&Holding| {
            other.incarnation != holding.incarnation
                && lock(index, other).is_some_and(|name| Some(name) == lock(index, holding))
        };
        overlaps.extend(open.iter().filter(differs).map(|older| (*older, holding)));
        open.push(holding);
    }
    overlaps
}

fn lock<'i>(index: &'i Index<'_>, holding: &Holding) -> Option<&'i str> {
    let key = index.incarnations[holding.incarnation?].key;
    key.rsplit_once('/').map(|(lock, _)| lock)
}

fn count_handovers(index: &Index<'_>, reached: &mut Reached) {
    for pair in index.tenures.values().flat_map(|tenures| tenures.windows(2)) {
        let [Tenure { ended: Some((ended, cause)), .. }, next] = pair else { continue };
        if *ended == next.began {
            let name = match cause {
                Cause::Expiry(_) => "handover-by-expiry",
                Cause::Revoke(_) => "handover-by-revoke",
                Cause::Put | Cause::Delete | Cause::Txn => "handover-by-unlock",
                Cause::Restore => "handover-by-restore",
            };
            reached.add(name, 1);
        }
    }
}

/// Holdings whose tenure ended by expiry while they were believed in, with the `seq` of that end.
fn lost_while_held<'i>(index: &'i Index<'_>) -> impl Iterator<Item = (&'i Holding, u64)> {
    index.holdings.values().filter_map(|holding| {
        let tenure = index.tenure_of(holding.incarnation?)?;
        let (ended, Cause::Expiry(_)) = tenure.ended? else { return None };
        holding.is_believed_at(ended).then_some((holding, ended))
    })
}

fn spans<'f>(index: &Index<'_>, faults: &'f BTreeMap<u32, FaultInfo>) -> Vec<Span<'f>> {
    let mut spans: BTreeMap<u32, Span<'f>> = BTreeMap::new();
    for event in &index.history.events {
        let EventKind::Fault { index, action } = &event.kind else { continue };
        let Some(info) = faults.get(index) else { continue };
        match action {
            FaultAction::Begin => {
                let span = Span { info, begin: event.seq, end: u64::MAX, effect: 0 };
                spans.insert(*index, span);
            }
            FaultAction::Effect(effect) => {
                if let Some(span) = spans.get_mut(index) {
                    span.effect = *effect;
                }
            }
            FaultAction::End => {
                if let Some(span) = spans.get_mut(index) {
                    span.end = event.seq;
                }
            }
            FaultAction::Skipped(_) => {}
        }
    }
    spans.into_values().collect()
}

fn pauses_before_write(index: &Index<'_>) -> u64 {
    let at_point = |event: &&crate::history::Event| match &event.kind {
        EventKind::Point { name } => name == "client.before_write",
        _ => false,
    };
    let believed = |event: &&crate::history::Event| {
        let mine =
            |holding: &&Holding| holding.node == event.node && holding.is_believed_at(event.seq);
        index.holdings.values().find(mine).is_some()
    };
    index.history.events.iter().filter(at_point).filter(believed).count() as u64
}
