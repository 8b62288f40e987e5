//! Random histories, damaged where an assumption can fail: the assumptions must fail exactly where
//! their naive copies do.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::{
    checker::Index,
    history::{
        Boundary, Cause, Event, EventKind, FaultAction, Function, History, NodeName, Outcome,
    },
    seed::{Seed, Stream},
};

use super::{chaos::renumber, naive_assumed, updating};

/// A history of a counter, with the arrivals of its requests and some faults that end.
fn whole_history(seed: Seed) -> History {
    let mut events: Vec<Event> = Vec::new();
    for (at, event) in updating::counting_history(seed).events.into_iter().enumerate() {
        let mut record = |node, kind| events.push(Event { seq: 0, at_ns: event.at_ns, node, kind });
        if let EventKind::Apply(row) = &event.kind {
            let (boot, request) = (row.boot, row.request);
            record(NodeName::Storage, EventKind::Storage(Boundary::Arrival { boot, request }));
        }
        // Of ten events in a row, a fault lasts from the first to the sixth.
        let index = at as u32 / 10;
        let action = match at % 10 {
            0 if (10..80).contains(&at) => Some(FaultAction::Begin),
            5 if (10..80).contains(&at) => Some(FaultAction::End),
            _ => None,
        };
        if let Some(action) = action {
            let begins = action == FaultAction::Begin;
            record(NodeName::Nemesis, EventKind::Fault { index, action });
            let (node, kind) = harm(index, begins);
            record(node, kind);
        }
        events.push(event);
    }
    let mut history = History { events };
    renumber(&mut history);
    history
}

/// What a fault does, or the end of it.
fn harm(index: u32, begins: bool) -> (NodeName, EventKind) {
    let (node, to) = (NodeName::Client(1), NodeName::Etcd(1));
    match (index % 5, begins) {
        (0, _) => (node, EventKind::Rate { permille: if begins { 0 } else { 1000 } }),
        (1, true) => (node, EventKind::Stop),
        (1, false) => (node, EventKind::Go),
        (2, _) => (node, EventKind::Link { from: node, to, open: !begins, delay_ms: 0 }),
        (3, true) => (NodeName::Storage, EventKind::Killed),
        (3, false) => (NodeName::Storage, EventKind::Restarted),
        (_, true) => (node, EventKind::Killed),
        (_, false) => (node, EventKind::Restarted),
    }
}

/// Damages the history in one place.
fn mutate(history: &mut History, stream: &mut Stream) {
    let choice = stream.below(9);
    let fits = |kind: &EventKind| match kind {
        EventKind::Commit(_) => choice <= 1,
        EventKind::Apply(_) => choice == 2 || choice == 3,
        EventKind::Invoke { f: Function::Lock { .. }, .. } => choice == 4,
        EventKind::Invoke { f: Function::Write { .. }, .. } => choice == 5,
        EventKind::Return { .. } => choice == 6,
        EventKind::Invoke { f: Function::FinalRead { .. }, .. } => choice == 7,
        EventKind::Phase(_) | EventKind::Fault { .. } | EventKind::Storage(_) => choice >= 7,
        EventKind::Stop | EventKind::Go | EventKind::Rate { .. } => choice >= 7,
        EventKind::Link { .. } | EventKind::Killed | EventKind::Restarted => choice >= 7,
        _ => false,
    };
    let places = (0..history.events.len()).filter(|at| fits(&history.events[*at].kind));
    let places: Vec<usize> = places.collect();
    if places.is_empty() {
        return;
    }
    let at = *stream.pick(&places);
    let small = stream.below(30);
    let gone = choice == 7;
    match &mut history.events[at].kind {
        EventKind::Commit(commit) if choice == 0 => match stream.below(3) {
            0 => commit.index = small + 1,
            1 => commit.revision = small as i64,
            _ => commit.cause = Cause::Restore,
        },
        EventKind::Apply(row) if choice == 2 => row.index = small + 1,
        EventKind::Apply(row) => row.domain = "d".to_owned(),
        EventKind::Invoke { f: Function::Lock { name }, .. } => "other".clone_into(name),
        EventKind::Invoke { f: Function::Write { value, .. }, .. } => {
            "same".clone_into(value);
        }
        EventKind::Return { outcome, .. } if stream.chance(500) => {
            *outcome = Outcome::Unknown("timed out".to_owned());
        }
        _ if gone => drop(history.events.remove(at)),
        _ => {
            // It comes sooner or later than it did, but no answer before its question.
            let node = history.events[at].node;
            let moved = history.events.remove(at);
            let to = (at + stream.below(31) as usize).saturating_sub(15);
            let to = to.min(history.events.len());
            let own = |at: &usize| history.events[*at].node == node;
            let returns = matches!(moved.kind, EventKind::Return { .. });
            let hindered = (to.min(at)..to.max(at)).any(|at| own(&at)) && returns;
            history.events.insert(if hindered { at } else { to }, moved);
        }
    }
    renumber(history);
}

/// The assumptions fail exactly where their naive copies do, each of them often enough, and none
/// of a history that was not damaged.
#[test]
fn assumptions_and_naive_copies_agree() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..250 {
        let mut history = whole_history(Seed(seed));
        let mut stream = Seed(seed).stream("damage");
        for round in 0..5 {
            let expected = naive_assumed::failed(&history);
            let index = Index::new(&history);
            let found = index.failed_assumptions();
            let names: BTreeSet<&str> = found.iter().map(|(failed, _)| failed.name()).collect();
            assert_eq!(names, expected, "seed {seed}, after {round} mutations: {found:?}");
            assert!(round > 0 || names.is_empty(), "seed {seed}: {found:?}");
            for name in names.into_iter().chain(found.is_empty().then_some("none")) {
                *seen.entry(name).or_default() += 1;
            }
            mutate(&mut history, &mut stream);
        }
    }
    let often = seen.values().filter(|count| **count >= 20).count();
    assert_eq!((seen.len(), often), (7, 7), "{seen:?}");
}
