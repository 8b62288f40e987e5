//! What is drawn, before it is text: lanes of tracks of bars and marks.
//!
//! A lane is a node, a track a line within it, a bar lasts from one time to another, a mark stands
//! at one. Bars that overlap on a track are stacked. Built by `lane.rs`, written by `draw.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    checker::{Class, Index},
    history::{Event, NodeName},
};

use super::{FaultNote, fault::Span};
use crate::report::{
    window::{self, Scope},
    words,
};

/// The timeline draws, and the table lists, at most so many events: a page must open at once.
pub(super) const EVENTS_MAX: usize = 5_000;

/// What all parts of a page share.
pub(super) struct Scene<'a> {
    pub index: Index<'a>,
    /// The least events of the violation, rising.
    pub evidence: Vec<u64>,
    /// The class of each row of the apply log that has one, by `seq`.
    pub classes: BTreeMap<u64, Class>,
    pub faults: &'a BTreeMap<u32, FaultNote<'a>>,
    families: BTreeMap<u32, &'a str>,
    /// What became of each fault, by its index in the plan.
    pub spans: BTreeMap<u32, Span>,
    /// The `seq`s of the events that are listed, rising.
    pub kept: Vec<u64>,
    /// The end of the history, in nanoseconds.
    pub end_ns: u64,
    /// The first window, in nanoseconds.
    pub window: (u64, u64),
}

impl<'a> Scene<'a> {
    pub fn new(
        index: Index<'a>,
        evidence: &[u64],
        faults: &'a BTreeMap<u32, FaultNote<'a>>,
    ) -> Scene<'a> {
        let events = &index.history.events;
        let known: BTreeSet<u64> =
            evidence.iter().copied().filter(|seq| *seq < events.len() as u64).collect();
        let all: Vec<&Event> = events.iter().collect();
        let near = window::nearest(&all, &known, EVENTS_MAX);
        let kept = all.iter().zip(near).filter(|(_, near)| *near).map(|(e, _)| e.seq).collect();
        let end_ns = events.last().map_or(0, |event| event.at_ns).max(1);
        let window = first_window(&index, &known, end_ns);
        let writes = index.classification().writes.iter();
        let classes = writes.map(|write| (index.rows[write.row].seq, write.class)).collect();
        let spans = super::fault::spans(index.history, faults);
        let families = faults.iter().map(|(index, note)| (*index, note.family)).collect();
        let evidence = known.into_iter().collect();
        Scene { index, evidence, classes, faults, families, spans, kept, end_ns, window }
    }

    /// The event of this place in the order.
    pub fn event(&self, seq: u64) -> Option<&'a Event> {
        self.index.history.events.get(usize::try_from(seq).ok()?)
    }

    /// When an event happened; the end of the history for what did not end in it.
    pub fn at_ns(&self, seq: u64) -> u64 {
        self.event(seq).map_or(self.end_ns, |event| event.at_ns)
    }

    /// What an event says.
    pub fn words(&self, event: &Event) -> String {
        words::describe(event, &self.index, &self.families)
    }

    /// The events of the page, in order.
    pub fn events(&self) -> impl Iterator<Item = &'a Event> {
        self.kept.iter().filter_map(|seq| self.event(*seq))
    }

    /// Whether something that lasts between two events touches one that is on the page.
    pub fn touches(&self, from: u64, to: u64) -> bool {
        let first = self.kept.partition_point(|seq| *seq < from);
        self.kept.get(first).is_some_and(|seq| *seq <= to)
    }

    /// The number of an event in the story, from 1.
    pub fn step(&self, seq: u64) -> Option<usize> {
        self.evidence.binary_search(&seq).ok().map(|at| at + 1)
    }

    /// Every node that the history knows, in the order of the lanes; the injector is first, since
    /// its lane shows the run itself.
    pub fn nodes(&self) -> BTreeSet<NodeName> {
        let events = self.index.history.events.iter().map(|event| event.node);
        let faulted = self.faults.values().flat_map(|note| note.fault.kind.nodes());
        events.chain(faulted).chain([NodeName::Nemesis]).collect()
    }
}

/// From the first acquire that matters to the last event of the evidence, with some room.
fn first_window(index: &Index<'_>, evidence: &BTreeSet<u64>, end_ns: u64) -> (u64, u64) {
    if evidence.is_empty() {
        return (0, end_ns);
    }
    let scope = Scope::new(index, evidence);
    let at = |seq: u64| {
        let event = usize::try_from(seq).ok().and_then(|seq| index.history.events.get(seq));
        event.map_or(end_ns, |event| event.at_ns)
    };
    let (from, to) = (at(scope.from), at(scope.to));
    let room = ((to.saturating_sub(from)) / 16).max(2_000_000);
    (from.saturating_sub(room), to.saturating_add(room))
}

/// A node's lane.
pub(super) struct Lane {
    pub node: NodeName,
    pub tracks: Vec<Track>,
    /// Backgrounds over the whole height: faults and times without a process.
    pub shades: Vec<Bar>,
}

/// A line of a lane.
pub(super) struct Track {
    /// What it shows, for the margin.
    pub label: String,
    /// Its class in the style sheet.
    pub look: &'static str,
    pub bars: Vec<Bar>,
    pub marks: Vec<Mark>,
}

impl Track {
    pub fn new(look: &'static str, label: impl Into<String>) -> Track {
        Track { label: label.into(), look, bars: Vec::new(), marks: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.bars.is_empty() && self.marks.is_empty()
    }

    /// The row of each bar, so that bars of one row do not overlap.
    pub fn stacked(&self) -> Vec<usize> {
        let mut ends: Vec<u64> = Vec::new();
        let mut order: Vec<usize> = (0..self.bars.len()).collect();
        order.sort_by_key(|at| self.bars[*at].from_ns);
        let mut rows = vec![0; self.bars.len()];
        for at in order {
            let bar = &self.bars[at];
            let free = ends.iter().position(|end| *end <= bar.from_ns);
            rows[at] = free.unwrap_or(ends.len());
            match free {
                Some(row) => ends[row] = bar.to_ns,
                None => ends.push(bar.to_ns),
            }
        }
        rows
    }
}

/// Something that lasts.
#[derive(Default)]
pub(super) struct Bar {
    pub from_ns: u64,
    pub to_ns: u64,
    /// Its classes in the style sheet.
    pub look: String,
    /// What stands in it.
    pub label: String,
    /// What it is, when it is pointed at.
    pub title: String,
    /// The colour of its fault family.
    pub colour: Option<String>,
    /// Its name in the page.
    pub id: Option<String>,
    /// The event to show in the details.
    pub event: Option<u64>,
}

/// Something that happens at one time.
pub(super) struct Mark {
    pub seq: u64,
    pub at_ns: u64,
    /// Its shape, a class in the style sheet.
    pub look: &'static str,
    pub title: String,
}
