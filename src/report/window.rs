//! What of a long history is shown: the window around the evidence, and what is nearest to it.
//!
//! Shared by the timeline in text and the page. Order is `seq`; times play no part.

use std::collections::BTreeSet;

use crate::{
    checker::Index,
    history::{Commit, Event, EventKind, LeaseChange, OpId},
};

/// Which of the selected events are within the cap: those nearest to evidence; without evidence
/// the first and the last ones. Evidence is kept whatever the cap.
pub(super) fn nearest(selected: &[&Event], evidence: &BTreeSet<u64>, cap: usize) -> Vec<bool> {
    let anchored = selected.iter().any(|event| evidence.contains(&event.seq));
    let ends = [0, selected.len().saturating_sub(1)];
    let anchor = |at: usize| match anchored {
        true => evidence.contains(&selected[at].seq),
        false => ends.contains(&at),
    };
    let mut distance = vec![usize::MAX; selected.len()];
    let walk = |order: &mut dyn Iterator<Item = usize>, distance: &mut Vec<usize>| {
        let mut last = None;
        for at in order {
            last = if anchor(at) { Some(0) } else { last.map(|steps: usize| steps + 1) };
            distance[at] = distance[at].min(last.unwrap_or(usize::MAX));
        }
    };
    walk(&mut (0..selected.len()), &mut distance);
    walk(&mut (0..selected.len()).rev(), &mut distance);
    let mut nearest: Vec<usize> = (0..selected.len()).collect();
    nearest.sort_by_key(|at| distance[*at]);
    let mut kept = vec![false; selected.len()];
    for (rank, at) in nearest.into_iter().enumerate() {
        kept[at] = rank < cap || anchored && distance[at] == 0;
    }
    kept
}

/// Whether an event tells something to a reader who has not asked for all of them.
pub(super) fn interesting(event: &Event) -> bool {
    match &event.kind {
        EventKind::Storage(_) => false,
        EventKind::Lease(lease) => !matches!(lease.change, LeaseChange::Renewed),
        EventKind::Held { held, .. } => !held,
        // Of a true clock, as every node has it in the beginning, there is nothing to tell.
        EventKind::Rate { permille } => event.at_ns > 0 || *permille != 1000,
        EventKind::Deadline { deadline_ns, ended_ns, .. } => ended_ns > deadline_ns,
        _ => true,
    }
}

/// What belongs to the window around the evidence.
pub(super) struct Scope {
    /// Positions in [`Index::holdings`].
    holdings: BTreeSet<usize>,
    /// Operations of these holdings.
    ops: BTreeSet<OpId>,
    /// The first and the last `seq`.
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Scope {
    pub(super) fn new(index: &Index<'_>, evidence: &BTreeSet<u64>) -> Scope {
        let mut holdings = BTreeSet::new();
        let of_ops = index.ops.iter().filter(|op| {
            let ended = op.end.is_some_and(|(seq, _)| evidence.contains(&seq));
            evidence.contains(&op.invoke) || ended
        });
        holdings.extend(of_ops.filter_map(|op| op.holding));
        let of_rows = index.rows.iter().filter(|row| evidence.contains(&row.seq));
        holdings.extend(of_rows.filter_map(|row| row.holding));
        for (at, holding) in index.holdings.iter().enumerate() {
            let incarnation = holding.incarnation.map(|i| &index.incarnations[i]);
            if incarnation.is_some_and(|i| evidence.contains(&i.created)) {
                holdings.insert(at);
            }
        }
        for event in index.history.events.iter().filter(|e| evidence.contains(&e.seq)) {
            if let EventKind::Held { holding, .. } = event.kind {
                holdings.extend(index.holdings.iter().position(|h| h.id == Some(holding)));
            }
        }
        let begun = holdings.iter().map(|h| index.ops[index.holdings[*h].acquire].invoke);
        let from = begun.chain(evidence.first().copied()).min().unwrap_or(0);
        let to = evidence.last().copied().unwrap_or(u64::MAX);
        let mine = |holding: Option<usize>| holding.is_some_and(|h| holdings.contains(&h));
        let ops = index.ops.iter().filter(|op| mine(op.holding)).map(|op| op.id).collect();
        Scope { ops, from, to, holdings }
    }

    /// Whether the event belongs to it.
    pub(super) fn shows(&self, index: &Index<'_>, event: &Event) -> bool {
        if event.seq < self.from || event.seq > self.to {
            return false;
        }
        match &event.kind {
            EventKind::Invoke { op, .. } | EventKind::Return { op, .. } => self.ops.contains(op),
            EventKind::LossNoticed { holding } | EventKind::Held { holding, .. } => {
                self.holdings.iter().any(|h| index.holdings[*h].id == Some(*holding))
            }
            EventKind::Commit(commit) => on_lock_key(index, commit),
            _ => true,
        }
    }
}

fn on_lock_key(index: &Index<'_>, commit: &Commit) -> bool {
    commit.events.iter().any(|event| {
        let queue = event.key.rsplit_once('/').map(|(name, _)| name);
        index.locks.iter().any(|lock| lock.named && Some(lock.name) == queue)
    })
}
