//! The lanes: what each node of a history shows of itself.
//!
//! etcd shows who owned each lock (its commit log) and the life of leases; a client what it
//! believed and did; the storage the mark that the judge recomputes and each row by its class.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    checker::index::{Holding, Op},
    history::{EventKind, Function, NodeName, Outcome, Phase},
};

use super::{
    clock, fault, mark, record,
    scene::{Bar, Lane, Scene, Track},
};

/// All lanes, from the run itself down to the storage.
pub(super) fn lanes(scene: &Scene<'_>) -> Vec<Lane> {
    let place = |node: &NodeName| match node {
        NodeName::Nemesis => 0,
        NodeName::Etcd(_) => 1,
        NodeName::Client(0) => 4,
        NodeName::Client(_) => 2,
        NodeName::Storage => 3,
    };
    let mut nodes: Vec<NodeName> = scene.nodes().into_iter().collect();
    nodes.sort_by_key(place);
    let mut lanes: Vec<Lane> = nodes.into_iter().map(|node| lane(scene, node)).collect();
    place_marks(scene, &mut lanes);
    for lane in &mut lanes {
        lane.tracks.retain(|track| !track.is_empty());
    }
    lanes
}

/// The name of a lane. The injector's shows the run itself; the client without a number is the one
/// that reads the final state.
pub(super) fn title(node: NodeName) -> String {
    match node {
        NodeName::Nemesis => "run".to_owned(),
        NodeName::Client(0) => "reader".to_owned(),
        node => node.to_string(),
    }
}

fn lane(scene: &Scene<'_>, node: NodeName) -> Lane {
    let mut faults = Track::new("faults", "faults");
    faults.bars = fault::bands(scene, node);
    let shade = |bar: &Bar| Bar {
        from_ns: bar.from_ns,
        to_ns: bar.to_ns,
        look: "shade".to_owned(),
        colour: bar.colour.clone(),
        ..Bar::default()
    };
    // The injector touches nobody: its bands are no harm to the run's own lane.
    let touched = faults.bars.iter().filter(|bar| bar.from_ns < bar.to_ns);
    let mut shades: Vec<Bar> = match node {
        NodeName::Nemesis => Vec::new(),
        _ => touched.map(shade).collect(),
    };
    shades.extend(absences(scene, node));
    let mut tracks = match node {
        NodeName::Nemesis => vec![phases(scene), left_out(scene)],
        NodeName::Etcd(_) => record::owners(scene, node),
        NodeName::Client(_) => vec![beliefs(scene, node), ops(scene, node)],
        NodeName::Storage => record::marks(scene),
    };
    tracks.push(faults);
    let mut clock = Track::new("clocks", "clock");
    clock.bars = clock::bars(scene, node);
    tracks.push(clock);
    Lane { node, tracks, shades }
}

/// Puts the mark of each event on its track.
fn place_marks(scene: &Scene<'_>, lanes: &mut [Lane]) {
    for event in scene.events() {
        let Some(mark) = mark::mark(scene, event) else { continue };
        let (look, label) = match &event.kind {
            EventKind::Apply(row) => {
                let op = row.tag.and_then(|tag| scene.index.op(crate::history::OpId(tag)));
                let from = op.map(|op| title(scene.index.ops[op].node));
                ("rows", from.map_or_else(|| "from nobody".to_owned(), |n| format!("from {n}")))
            }
            EventKind::Commit(_) => ("marks", "commits".to_owned()),
            EventKind::Lease(_) => ("marks", "leases".to_owned()),
            _ if matches!(event.node, NodeName::Client(_)) => ("ops", "does".to_owned()),
            _ => ("marks", "events".to_owned()),
        };
        let Some(lane) = lanes.iter_mut().find(|lane| lane.node == event.node) else { continue };
        let known = lane.tracks.iter().position(|t| t.look == look && t.label == label);
        let at = known.unwrap_or_else(|| {
            let track = Track::new(look, label);
            // Rows stand in the order of the clients, whoever wrote first; faults stay last.
            let after = |t: &Track| t.look == "faults" || t.look == look && t.label > track.label;
            let at = lane.tracks.iter().position(after).unwrap_or(lane.tracks.len());
            lane.tracks.insert(at, track);
            at
        });
        lane.tracks[at].marks.push(mark);
    }
}

fn phases(scene: &Scene<'_>) -> Track {
    let mut track = Track::new("phases", "phase");
    let events = &scene.index.history.events;
    let begun = events.iter().filter_map(|event| match event.kind {
        EventKind::Phase(phase) => Some((event, phase)),
        _ => None,
    });
    let begun: Vec<_> = begun.collect();
    for (at, (event, phase)) in begun.iter().enumerate() {
        let name = match phase {
            Phase::Setup => "setup",
            Phase::Traffic => "traffic",
            Phase::Heal => "heal",
            Phase::Settle => "settle",
            Phase::FinalReads => "final reads",
        };
        track.bars.push(Bar {
            from_ns: event.at_ns,
            to_ns: begun.get(at + 1).map_or(scene.end_ns, |(next, _)| next.at_ns),
            look: format!("phase p{}", at % 2),
            label: name.to_owned(),
            title: format!("phase {name}"),
            event: Some(event.seq),
            ..Bar::default()
        });
    }
    track
}

/// Where events are not drawn, so that an empty stretch is not taken for a quiet one.
fn left_out(scene: &Scene<'_>) -> Track {
    let mut track = Track::new("omitted", "not drawn");
    let total = scene.index.history.events.len() as u64;
    let mut next = 0;
    for seq in scene.kept.iter().copied().chain([total]) {
        let count = seq.saturating_sub(next);
        if count > 0 {
            track.bars.push(Bar {
                from_ns: scene.at_ns(next),
                to_ns: scene.at_ns(seq),
                look: "left-out".to_owned(),
                label: format!("{count} events left out"),
                title: format!("{count} events are neither drawn nor listed"),
                ..Bar::default()
            });
        }
        next = seq + 1;
    }
    track
}

/// The times in which a node had no process, and those in which its process stood still.
fn absences(scene: &Scene<'_>, node: NodeName) -> Vec<Bar> {
    let mut bars = Vec::new();
    let (mut down, mut still) = (None, None);
    let absence = |look: &str, from_ns, to_ns| Bar {
        from_ns,
        to_ns,
        look: look.to_owned(),
        label: look.to_owned(),
        ..Bar::default()
    };
    for event in scene.index.history.events.iter().filter(|event| event.node == node) {
        let (since, begins, look) = match event.kind {
            EventKind::Killed => (&mut down, true, "down"),
            EventKind::Restarted => (&mut down, false, "down"),
            EventKind::Stop => (&mut still, true, "stopped"),
            EventKind::Go => (&mut still, false, "stopped"),
            _ => continue,
        };
        if begins {
            since.get_or_insert(event.at_ns);
        } else if let Some(from_ns) = since.take() {
            bars.push(absence(look, from_ns, event.at_ns));
        }
    }
    let open = [(down, "down"), (still, "stopped")].into_iter();
    let open = open.filter_map(|(since, look)| Some(absence(look, since?, scene.end_ns)));
    bars.extend(open);
    bars
}

/// From when to when a client believed that it held a lock.
fn beliefs(scene: &Scene<'_>, node: NodeName) -> Track {
    let mut track = Track::new("beliefs", "believes");
    let index = &scene.index;
    let mine = |(_, holding): &(usize, &Holding<'_>)| holding.node == node;
    for (at, holding) in index.holdings.iter().enumerate().filter(mine) {
        let Some(belief) = holding.belief.filter(|b| scene.touches(b.from, b.to)) else { continue };
        let id = holding.id.map_or_else(|| "holds".to_owned(), |id| id.to_string());
        let token = holding.token.map_or_else(String::new, |token| format!(" token {token}"));
        let lock = index.locks[holding.lock].name;
        let key = holding.key.unwrap_or("unknown");
        let (from_ns, to_ns) = (scene.at_ns(belief.from), scene.at_ns(belief.to));
        let until = if belief.to == u64::MAX { "the end of the history" } else { "then" };
        track.bars.push(Bar {
            from_ns,
            to_ns,
            look: format!("belief {}", tint(node)),
            label: format!("{id}{token}"),
            title: format!(
                "{} believes that it holds {lock}\nkey {key}{token}\n{} to {} ({until})",
                index.describe_holding(at),
                super::escape::seconds(from_ns),
                super::escape::seconds(to_ns)
            ),
            event: Some(belief.from),
            ..Bar::default()
        });
    }
    track
}

/// What a client asked, from the call to its return.
fn ops(scene: &Scene<'_>, node: NodeName) -> Track {
    let mut track = Track::new("ops", "does");
    let index = &scene.index;
    let mine: Vec<&Op<'_>> = index.ops.iter().filter(|op| op.node == node).collect();
    let events = index.history.events.iter().filter(|event| event.node == node);
    let killed: BTreeSet<u64> =
        events.filter(|event| event.kind == EventKind::Killed).map(|event| event.seq).collect();
    for (at, op) in mine.iter().enumerate() {
        // A call without a return lasts until the process dies or asks for something else.
        let over = killed.range(op.invoke..).next().copied().unwrap_or(u64::MAX);
        let next = mine.get(at + 1).map_or(u64::MAX, |next| next.invoke);
        let to = op.end.map_or(over.min(next), |(seq, _)| seq);
        if !scene.touches(op.invoke, to) {
            continue;
        }
        let (look, label) = verb(op.f);
        let outcome = match op.end {
            Some((_, Outcome::Ok(_))) => "ok",
            Some((_, Outcome::Fail(_))) => "fail",
            Some((_, Outcome::Unknown(_))) | None => "unsure",
        };
        let said = [Some(op.invoke), op.end.map(|(seq, _)| seq)].into_iter().flatten();
        let said: Vec<String> =
            said.filter_map(|seq| scene.event(seq)).map(|event| scene.words(event)).collect();
        track.bars.push(Bar {
            from_ns: scene.at_ns(op.invoke),
            to_ns: scene.at_ns(to),
            look: format!("op {look} {outcome}"),
            label,
            title: said.join("\n"),
            event: Some(op.invoke),
            ..Bar::default()
        });
    }
    track
}

fn verb(f: &Function) -> (&'static str, String) {
    match f {
        Function::OpenSession { .. } => ("session", "session".to_owned()),
        Function::CloseSession => ("session", "close".to_owned()),
        Function::Lock { name } => ("wait", format!("lock {name}")),
        Function::TryLock { name } => ("wait", format!("try-lock {name}")),
        Function::Unlock { name } => ("session", format!("unlock {name}")),
        Function::Enter { key, .. } => ("reading", format!("enter {key}")),
        Function::Read { key, .. } | Function::FinalRead { key, .. } => {
            ("reading", format!("read {key}"))
        }
        Function::Write { key, .. } => ("writing", format!("write {key}")),
    }
}

/// The class of a client's own tint: six of them, taken in turn.
pub(super) fn tint(node: NodeName) -> String {
    match node {
        NodeName::Client(n @ 1..) => format!("c{}", (n - 1) % 6),
        _ => "c-none".to_owned(),
    }
}

/// The client of each incarnation, where a holding tells.
pub(super) fn holders(scene: &Scene<'_>) -> BTreeMap<usize, usize> {
    let holdings = scene.index.holdings.iter().enumerate();
    holdings.filter_map(|(at, holding)| Some((holding.incarnation?, at))).collect()
}
