//! Properties that a fault must have brought about: a lost keep-alive, a pause at the point between
//! check and write, an overlap that a suspend made possible.
//!
//! A fault counts only if its recorded effect is above 0. Faults that the injector records on a
//! client's node concern that client; those recorded on the nemesis may concern any.

use std::{cell::OnceCell, collections::BTreeMap};

use super::{Property, Reached};
use crate::{
    checker::index::{Belief, Holding, Index},
    history::{EventKind, FaultAction, LeaseChange, NodeName},
};

/// From when to when a fault lasted.
#[derive(Debug, Clone, Copy)]
struct Span<'a> {
    family: &'a str,
    node: NodeName,
    from: u64,
    to: u64,
    from_ns: u64,
    to_ns: u64,
    effect: u64,
}

/// Counts what the faults brought about.
pub(super) fn count(index: &Index<'_>, families: &BTreeMap<u32, &str>, reached: &mut Reached) {
    let spans = spans(index, families);
    let effective = |span: &&Span<'_>| span.effect > 0;
    let cuts = spans.iter().filter(effective).filter(|span| span.family.starts_with("cut"));
    let gaps = OnceCell::new();
    for cut in cuts {
        let gaps = gaps.get_or_init(|| renewal_gaps(index));
        let lost = gaps.iter().any(|(from, to)| *from < cut.to_ns && cut.from_ns < *to);
        reached.raise(Property::KeepAliveLostToCut, u64::from(lost));
    }
    let suspends: Vec<Span<'_>> =
        spans.iter().filter(effective).filter(|span| span.family == "suspend").copied().collect();
    reached.raise(Property::OverlapBySuspend, carried(index, &suspends));
    reached.raise(Property::PauseBeforeWrite, pauses_before_write(index));
}

fn spans<'a>(index: &Index<'_>, families: &BTreeMap<u32, &'a str>) -> Vec<Span<'a>> {
    let mut spans: BTreeMap<u32, Span<'a>> = BTreeMap::new();
    for event in &index.beside {
        let EventKind::Fault { index: fault, action } = &event.kind else { continue };
        let Some(family) = families.get(fault) else { continue };
        match action {
            FaultAction::Begin => {
                let (from, from_ns) = (event.seq, event.at_ns);
                let node = event.node;
                let span =
                    Span { family, node, from, to: u64::MAX, from_ns, to_ns: u64::MAX, effect: 0 };
                spans.insert(*fault, span);
            }
            FaultAction::End => {
                if let Some(span) = spans.get_mut(fault) {
                    (span.to, span.to_ns) = (event.seq, event.at_ns);
                }
            }
            FaultAction::Effect(effect) => {
                if let Some(span) = spans.get_mut(fault) {
                    span.effect += effect;
                }
            }
            FaultAction::Skipped(_) => {}
        }
    }
    spans.into_values().collect()
}

/// Stretches of true time of more than half a TTL in which a living lease was not renewed.
/// A session renews at a third of the TTL, so at least one keep-alive is missing in each.
fn renewal_gaps(index: &Index<'_>) -> Vec<(u64, u64)> {
    let mut renewed: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    let mut gaps = Vec::new();
    for event in &index.beside {
        let EventKind::Lease(lease) = &event.kind else { continue };
        let ttl_ns = match lease.change {
            LeaseChange::Granted { ttl_s } => u64::try_from(ttl_s).unwrap_or(0) * 1_000_000_000,
            // A promotion is of all leases and names none.
            LeaseChange::Promoted { .. } => continue,
            LeaseChange::Renewed | LeaseChange::Expired | LeaseChange::Revoked => {
                let Some((last_ns, ttl_ns)) = renewed.remove(&lease.lease) else { continue };
                if (event.at_ns - last_ns).saturating_mul(2) > ttl_ns {
                    gaps.push((last_ns, event.at_ns));
                }
                ttl_ns
            }
        };
        renewed.insert(lease.lease, (event.at_ns, ttl_ns));
    }
    gaps
}

/// Holdings whose client went on under them after a suspend, when another had got the lock by then.
fn carried(index: &Index<'_>, suspends: &[Span<'_>]) -> u64 {
    if suspends.is_empty() {
        return 0;
    }
    let believing = |holding: &&Holding<'_>| holding.belief.is_some();
    let count = index.holdings.iter().enumerate().filter(|(_, holding)| believing(holding));
    let count = count.filter(|(at, holding)| {
        let Some(belief) = holding.belief else { return false };
        let hit = |span: &&Span<'_>| {
            let there = span.node == holding.node || span.node == NodeName::Nemesis;
            there && belief.contains(span.from) && belief.contains(span.to)
        };
        let Some(suspend) = suspends.iter().find(hit) else { return false };
        let Some(acted) = first_act(index, *at, suspend.to, belief) else { return false };
        index.holdings.iter().any(|other| {
            let newer = |other: Belief| {
                suspend.from < other.from && other.from < acted && belief.intersects(&other)
            };
            other.lock == holding.lock
                && other.incarnation != holding.incarnation
                && other.belief.is_some_and(newer)
        })
    });
    count.count() as u64
}

/// The first operation at the storage, or "held" of its code, under a holding from an event on.
fn first_act(index: &Index<'_>, holding: usize, from: u64, belief: Belief) -> Option<u64> {
    let ops = index.ops.iter().filter(|op| op.holding == Some(holding) && op.invoke > from);
    let invoked = ops.map(|op| op.invoke).find(|invoke| belief.contains(*invoke));
    let id = index.holdings[holding].id;
    let said = index
        .beside_after(from)
        .filter(|event| match event.kind {
            EventKind::Held { holding, held, .. } => held && Some(holding) == id,
            _ => false,
        })
        .map(|event| event.seq)
        .find(|seq| belief.contains(*seq));
    invoked.into_iter().chain(said).min()
}

fn pauses_before_write(index: &Index<'_>) -> u64 {
    // Per client the begin of each of its beliefs, and the latest end of those that began by then.
    let mut beliefs: BTreeMap<NodeName, Vec<(u64, u64)>> = BTreeMap::new();
    let mut all: Vec<(NodeName, Belief)> =
        index.holdings.iter().filter_map(|holding| Some((holding.node, holding.belief?))).collect();
    all.sort_unstable_by_key(|(_, belief)| belief.from);
    for (node, belief) in all {
        let of_node = beliefs.entry(node).or_default();
        let latest = of_node.last().map_or(belief.to, |(_, to)| belief.to.max(*to));
        of_node.push((belief.from, latest));
    }
    let holding = |node: NodeName, seq: u64| {
        let of_node = beliefs.get(&node).map(Vec::as_slice).unwrap_or_default();
        let begun = of_node.partition_point(|(from, _)| *from <= seq);
        begun.checked_sub(1).is_some_and(|last| seq < of_node[last].1)
    };
    let stops = index.beside.iter().filter(|event| match &event.kind {
        EventKind::Point { name } => name == "client.before_write",
        _ => false,
    });
    stops.filter(|event| holding(event.node, event.seq)).count() as u64
}
