//! Tenure kept (D3): no transaction takes a holder's queue key away while it believes.
//!
//! A tenure may end under its holder: its lease runs out or is revoked, an outsider deletes the
//! key. A transaction is what recipes leave their queue with, and so one that ends a tenure before
//! its holder has asked for that, closed its session or noticed a loss is another call's of the
//! same recipe: a release that comes twice, or one of a handle that never owned. The fence makes
//! the overlap harmless for the data, which is why nothing else would tell. Judged where the causes
//! of commits are known: a watch of a real etcd does not tell transactions from deletes.

use super::{
    Checker, Finding, Idle, Violation,
    assumption::Assumption,
    index::{Holding, Index},
};
use crate::history::{Cause, EventKind};

const NAME: &str = "tenure-kept";

/// Judges every holding that was granted.
#[derive(Debug)]
pub struct TenureKept;

impl Checker for TenureKept {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "no stray release or clean-up takes the lock from whoever holds it"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::OneLineage]
    }

    fn idle(&self) -> Idle {
        Idle::InASuite
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let told = index.history.events.iter().any(|event| match &event.kind {
            EventKind::Commit(commit) => commit.cause == Cause::Txn,
            _ => false,
        });
        let believers = index.holdings.iter().filter(|holding| told && holding.belief.is_some());
        let judged = believers.count() as u64;
        let violations = (0..index.holdings.len()).filter_map(|holding| taken(index, holding));
        // The earliest is the cause of what follows it.
        let first = violations.min_by_key(|violation| violation.events.last().copied());
        Finding::of(NAME, judged, first, "no grant, or no transaction is known as such")
    }
}

/// The transaction that ends the tenure of a holding which believes.
fn taken(index: &Index<'_>, holding: usize) -> Option<Violation> {
    let Holding { belief, incarnation, ok, .. } = index.holdings[holding];
    let (belief, incarnation) = (belief?, &index.incarnations[incarnation?]);
    let ended = incarnation.ended.filter(|ended| ended.cause == Cause::Txn)?;
    if !(belief.from..belief.to).contains(&ended.seq) {
        return None;
    }
    let who = index.describe_holding(holding);
    let message = format!("a transaction deleted the queue key of {who}, which held the lock");
    let events = [incarnation.created].into_iter().chain(ok).chain([ended.seq]).collect();
    Some(Violation::new(NAME, "taken", message, events))
}
