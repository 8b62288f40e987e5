//! What became of each fault: from when to when it acted, on whom, with what effect.
//!
//! The times are those of the history, not of the plan: a pause at a code point begins when the
//! point is passed. Without a plan (a saved history) only what the events tell is known.

use std::collections::BTreeMap;

use crate::history::{EventKind, FaultAction, History, NodeName};

use super::{
    FaultNote, escape,
    scene::{Bar, Scene},
};

/// The colour of a fault whose family is not known.
const COLOUR_UNKNOWN: &str = "#6b7280";

/// A fault in a run.
#[derive(Debug, Default)]
pub(super) struct Span {
    /// `seq` of its begin, or of its being skipped.
    pub begin: u64,
    /// `seq` of its end, if it ended.
    pub end: Option<u64>,
    /// How often it changed something.
    pub effect: Option<u64>,
    /// Why it was not applied.
    pub skipped: Option<String>,
    /// The nodes that it touches; none if it touches whoever owns the lock.
    pub nodes: Vec<NodeName>,
}

/// The faults of a history, by their index in the plan.
pub(super) fn spans(
    history: &History,
    notes: &BTreeMap<u32, FaultNote<'_>>,
) -> BTreeMap<u32, Span> {
    let mut spans: BTreeMap<u32, Span> = BTreeMap::new();
    for event in &history.events {
        let EventKind::Fault { index, action } = &event.kind else { continue };
        let span = spans.entry(*index).or_insert_with(|| Span {
            begin: event.seq,
            nodes: match notes.get(index) {
                Some(note) => note.fault.kind.nodes(),
                None => vec![event.node],
            },
            ..Span::default()
        });
        match action {
            FaultAction::Begin => span.begin = event.seq,
            FaultAction::End => span.end = Some(event.seq),
            FaultAction::Effect(count) => span.effect = Some(*count),
            FaultAction::Skipped(why) => span.skipped = Some(why.clone()),
        }
    }
    spans
}

/// What became of it, in words.
pub(super) fn outcome(span: Option<&Span>) -> String {
    match span {
        None => "not begun in this run".to_owned(),
        Some(Span { skipped: Some(why), .. }) => format!("not applied: {why}"),
        Some(Span { effect: Some(0), .. }) => "had no effect".to_owned(),
        Some(Span { effect: Some(1), .. }) => "had 1 effect".to_owned(),
        Some(Span { effect: Some(count), .. }) => format!("had {count} effects"),
        Some(_) => "applied".to_owned(),
    }
}

/// The name of its family, and its colour.
pub(super) fn family<'a>(scene: &Scene<'a>, index: u32) -> (&'a str, &'a str) {
    let note = scene.faults.get(&index);
    note.map_or(("fault", COLOUR_UNKNOWN), |note| (note.family, note.colour))
}

/// The bands of the faults that touch a node; those that touch no node of their own belong to the
/// injector. Only the first band of a fault has its name: a cut is in two lanes.
pub(super) fn bands(scene: &Scene<'_>, node: NodeName) -> Vec<Bar> {
    let mine = |span: &Span| match span.nodes.as_slice() {
        [] => node == NodeName::Nemesis,
        nodes => nodes.contains(&node),
    };
    let mut bands = Vec::new();
    for (index, span) in scene.spans.iter().filter(|(_, span)| mine(span)) {
        let (family, colour) = family(scene, *index);
        let first = span.nodes.iter().min().is_none_or(|first| *first == node);
        let from_ns = scene.at_ns(span.begin);
        let skipped = span.skipped.is_some();
        let to_ns = if skipped { from_ns } else { scene.at_ns(span.end.unwrap_or(u64::MAX)) };
        let sentence = match scene.faults.get(index) {
            Some(note) => note.fault.to_string(),
            None => format!("fault {index}"),
        };
        let times = match to_ns - from_ns {
            0 => format!("at {}", escape::seconds(from_ns)),
            _ => format!("{} to {}", escape::seconds(from_ns), escape::seconds(to_ns)),
        };
        bands.push(Bar {
            from_ns,
            to_ns,
            look: match (skipped, to_ns - from_ns) {
                (true, _) => "fault skipped".to_owned(),
                (false, 0) => "fault instant".to_owned(),
                (false, _) => "fault".to_owned(),
            },
            label: format!("F{index} {family}"),
            title: format!("F{index} {sentence}\n{times}; {}", outcome(Some(span))),
            colour: Some(colour.to_owned()),
            id: first.then(|| format!("fault-{index}")),
            event: Some(span.begin),
        });
    }
    bands
}
