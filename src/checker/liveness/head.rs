//! What stands at the head of a queue, and how long it may.

use std::collections::BTreeMap;

use super::{ANSWER_NS, Bounds, at, killed};
use crate::{
    checker::index::{Holding, Index, Op},
    history::{EventKind, Function, KeyChange, LeaseChange, NodeName, Outcome, Reply},
};

/// A head that nobody works under.
pub(super) struct Head {
    /// Of what kind: the rule that is broken when it stays.
    pub rule: &'static str,
    /// Until when it may stay, in true time.
    pub due_ns: u64,
    /// In words.
    pub what: String,
    /// The events that show it.
    pub events: Vec<u64>,
}

/// A lease as the member and the clients know it.
#[derive(Debug, Default)]
struct Lease {
    /// `seq` and true time of the grant and of each renewal.
    processed: Vec<(u64, u64)>,
    /// Whether a client has a session with it.
    known: bool,
}

/// What there is to know about heads.
pub(super) struct Heads<'i, 'h> {
    index: &'i Index<'h>,
    bounds: &'i Bounds<'i>,
    /// (incarnation, holding), sorted.
    holdings: Vec<(usize, usize)>,
    /// Per client its unlocks and closings of sessions, in their order.
    releases: BTreeMap<NodeName, Vec<usize>>,
    leases: BTreeMap<i64, Lease>,
    /// Per key the leases that it hung on, each from an event on.
    hung: BTreeMap<&'h str, Vec<(u64, i64)>>,
}

impl<'i, 'h> Heads<'i, 'h> {
    pub(super) fn new(index: &'i Index<'h>, bounds: &'i Bounds<'i>) -> Self {
        let mut leases: BTreeMap<i64, Lease> = BTreeMap::new();
        let mut hung: BTreeMap<&str, Vec<(u64, i64)>> = BTreeMap::new();
        for event in &index.beside {
            match &event.kind {
                EventKind::Lease(lease) => match lease.change {
                    LeaseChange::Granted { .. } | LeaseChange::Renewed => {
                        let known = leases.entry(lease.lease).or_default();
                        known.processed.push((event.seq, event.at_ns));
                    }
                    _ => {}
                },
                EventKind::Return {
                    outcome: Outcome::Ok(Reply::Session { lease, .. }), ..
                } => {
                    leases.entry(*lease).or_default().known = true;
                }
                EventKind::Commit(commit) => {
                    let puts = commit.events.iter().filter(|c| c.change == KeyChange::Put);
                    for put in puts {
                        let of_key = hung.entry(put.key.as_str()).or_default();
                        if of_key.last().is_none_or(|(_, lease)| *lease != put.lease) {
                            of_key.push((event.seq, put.lease));
                        }
                    }
                }
                _ => {}
            }
        }
        let holdings = index.holdings.iter().enumerate();
        let mut holdings: Vec<(usize, usize)> =
            holdings.filter_map(|(at, holding)| Some((holding.incarnation?, at))).collect();
        holdings.sort_unstable();
        let mut releases: BTreeMap<NodeName, Vec<usize>> = BTreeMap::new();
        for (at, op) in index.ops.iter().enumerate() {
            if matches!(op.f, Function::Unlock { .. } | Function::CloseSession) {
                releases.entry(op.node).or_default().push(at);
            }
        }
        Heads { index, bounds, holdings, releases, leases, hung }
    }

    /// What stood before a waiter at the end of a stretch of true time in which the owner was
    /// `owner`; none if somebody worked under it, or will be told of it.
    pub(super) fn at_end(
        &self,
        waiter: usize,
        owner: Option<usize>,
        (from_ns, to_ns): (u64, u64),
    ) -> Option<Head> {
        // Whether a waiter is told that it is first does not depend on those before it.
        let owner = owner.filter(|_| owner != self.index.holdings[waiter].incarnation)?;
        let idle_ns = self.idle_since(owner, to_ns)?.max(from_ns);
        let incarnation = &self.index.incarnations[owner];
        let key = incarnation.key;
        let head = |rule, due_ns, what: String, event: Option<u64>| {
            let events = event.into_iter().chain([incarnation.created]).collect();
            Some(Head { rule, due_ns, what, events })
        };
        let late_ns = idle_ns.max(self.bounds.dead_by_ns) + ANSWER_NS;
        let lease = self.lease_of(key, to_ns);
        if lease == 0 {
            let what = format!("{key}, a key without a lease");
            // It would stay for ever: there is nothing to wait for.
            let due_ns = idle_ns.max(self.bounds.healed_ns) + ANSWER_NS;
            return head("key-without-lease", due_ns, what, None);
        }
        let Some(known) = self.leases.get(&lease).filter(|lease| lease.known) else {
            let what = format!("{key}, a key that no client's session has made");
            return head("foreign-key", late_ns, what, None);
        };
        let before = known.processed.partition_point(|(_, at_ns)| *at_ns <= to_ns);
        let last = before.checked_sub(1).map(|last| known.processed[last]);
        if let Some((seq, _)) = last.filter(|(_, at_ns)| *at_ns > idle_ns) {
            let what = format!("{key}, a ghost: its session lives, and nobody holds or waits");
            let due_ns = idle_ns.max(self.bounds.arrived_ns) + ANSWER_NS;
            return head("ghost", due_ns, what, Some(seq));
        }
        let base = [last, self.bounds.promoted].into_iter().flatten().max_by_key(|(_, ns)| *ns);
        let (seq, base_ns) = base?;
        let due_ns = self.bounds.dead_by_ns.max(base_ns + self.bounds.dead_ns);
        let what = format!("{key}, dead: its lease {lease:x} is not renewed, and not expired");
        head("dead-not-expired", due_ns, what, Some(seq))
    }

    /// When, within a stretch of true time, somebody began to work under its owner or to wait with
    /// it.
    pub(super) fn taken_up(
        &self,
        owner: Option<usize>,
        (from_ns, to_ns): (u64, u64),
    ) -> impl Iterator<Item = u64> {
        let holdings = owner.into_iter().flat_map(|owner| self.holdings_of(owner));
        let begun = holdings.map(|holding| at(self.index, self.index.ops[holding.acquire].invoke));
        begun.filter(move |begun_ns| (from_ns..to_ns).contains(begun_ns))
    }

    /// The holdings of an incarnation, in the order of their acquires.
    fn holdings_of(&self, incarnation: usize) -> impl Iterator<Item = &'i Holding<'h>> {
        let from = self.holdings.partition_point(|(of, _)| *of < incarnation);
        let own = self.holdings[from..].iter().take_while(move |(of, _)| *of == incarnation);
        own.map(|(_, holding)| &self.index.holdings[*holding])
    }

    /// From when on, at the end of a stretch, nobody worked under an incarnation or waited with it;
    /// none if somebody still did.
    fn idle_since(&self, incarnation: usize, to_ns: u64) -> Option<u64> {
        let index = self.index;
        let mut idle_ns = 0;
        for holding in self.holdings_of(incarnation) {
            let acquire = &index.ops[holding.acquire];
            if at(index, acquire.invoke) >= to_ns {
                continue;
            }
            idle_ns = idle_ns.max(self.over(acquire)?);
            if let Some(belief) = holding.belief {
                idle_ns = idle_ns.max(Some(at(index, belief.to)).filter(|ns| *ns <= to_ns)?);
            }
            let releases = self.releases.get(&holding.node).map(Vec::as_slice).unwrap_or_default();
            let later = releases.partition_point(|op| *op <= holding.acquire);
            let later = releases[later..].iter().map(|op| &index.ops[*op]);
            for op in later.take_while(|op| at(index, op.invoke) <= to_ns) {
                let over_ns = self.over(op)?;
                // What this node did much later is of other holdings.
                if over_ns <= to_ns {
                    idle_ns = idle_ns.max(over_ns);
                }
            }
        }
        (idle_ns <= to_ns).then_some(idle_ns)
    }

    /// When a call was over for its client, by its end or its process's; none if it still is open.
    fn over(&self, op: &Op<'_>) -> Option<u64> {
        let end = op.end.map(|(seq, _)| seq);
        let over = end.or_else(|| killed(self.index, op.node, op.invoke))?;
        Some(at(self.index, over))
    }

    fn lease_of(&self, key: &str, to_ns: u64) -> i64 {
        let hung = self.hung.get(key).map_or(&[][..], Vec::as_slice);
        let before = hung.partition_point(|(seq, _)| at(self.index, *seq) <= to_ns);
        before.checked_sub(1).map_or(0, |last| hung[last].1)
    }
}
