//! Grant validity, no premature token, retired (D6).
//!
//! Three rules about the lock recipe: a grant is true at some moment of the acquire, nobody uses
//! the token of a tenure before that tenure, and an incarnation whose unlock was invoked is never
//! handed out again. That a release is true: [`release_validity`](super::release_validity).

use std::collections::BTreeMap;

use super::{
    Checker, Finding, Violation,
    assumption::Assumption,
    index::{Holding, Index, Op},
};
use crate::history::Function;

const NAME: &str = "grant-validity";

/// Judges every acquire that answered ok, and every operation under a token.
#[derive(Debug)]
pub struct GrantValidity;

impl Checker for GrantValidity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "who is told that it holds the lock owned it during the call, and uses no token before"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::OneLineage]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let acquires = index.holdings.iter().filter(|holding| holding.ok.is_some());
        let judged = acquires.count() as u64;
        let mut violations = Vec::new();
        grants(index, &mut violations);
        retired(index, &mut violations);
        for op in &index.ops {
            violations.extend(match op.f {
                Function::Enter { .. } | Function::Read { .. } | Function::Write { .. } => {
                    premature(index, op)
                }
                _ => None,
            });
        }
        // The earliest is the cause of what follows it.
        let first = violations.into_iter().min_by_key(|violation| violation.events.last().copied());
        Finding::of(NAME, judged, first, "no acquire answered ok")
    }
}

fn grants(index: &Index<'_>, violations: &mut Vec<Violation>) {
    for (at, holding) in index.holdings.iter().enumerate() {
        let Some(ok) = holding.ok else { continue };
        let invoke = index.ops[holding.acquire].invoke;
        let owned = |incarnation| index.owned_between(holding.lock, incarnation, invoke, ok);
        if holding.incarnation.is_some_and(owned) {
            continue;
        }
        let mut events = vec![invoke, ok];
        let why = match holding.incarnation.map(|i| &index.incarnations[i]) {
            None => "its key was never created",
            Some(incarnation) => {
                events.push(incarnation.created);
                let ended = incarnation.ended.filter(|ended| ended.seq < ok);
                events.extend(ended.map(|ended| ended.seq));
                match (ended, incarnation.owner_since) {
                    _ if incarnation.lock != holding.lock => "its key is of another lock's queue",
                    (Some(_), None) => "its queue key was gone before it became owner",
                    (Some(_), Some(_)) => "its tenure had ended before the call",
                    (None, _) => "others were before it in the queue",
                }
            }
        };
        let who = index.describe_holding(at);
        let message = format!("{who} was granted the lock without owning it: {why}");
        violations.push(Violation::new(NAME, "grant", message, events));
    }
}

fn premature(index: &Index<'_>, op: &Op<'_>) -> Option<Violation> {
    let holding = op.holding?;
    let incarnation = &index.incarnations[index.holdings[holding].incarnation?];
    if incarnation.owner_since.is_some_and(|since| since < op.invoke) {
        return None;
    }
    let mut events = vec![incarnation.created, op.invoke];
    events.extend(incarnation.owner_since);
    let who = index.describe_holding(holding);
    let message = format!("{who} used its token at the storage before it owned the lock");
    Some(Violation::new(NAME, "premature-token", message, events))
}

/// For each incarnation the first release that was invoked, against every later grant of it.
fn retired(index: &Index<'_>, violations: &mut Vec<Violation>) {
    let identity = |incarnation: usize| {
        let incarnation = &index.incarnations[incarnation];
        (incarnation.create_revision, incarnation.key)
    };
    let mut released: BTreeMap<(i64, &str), u64> = BTreeMap::new();
    for op in index.ops.iter().filter(|op| matches!(op.f, Function::Unlock { .. })) {
        if let Some(incarnation) = incarnation_of(index, op) {
            released.entry(identity(incarnation)).or_insert(op.invoke);
        }
    }
    for (at, Holding { ok, incarnation, .. }) in index.holdings.iter().enumerate() {
        let (Some(ok), Some(incarnation)) = (*ok, *incarnation) else { continue };
        let release = released.get(&identity(incarnation)).copied();
        let Some(release) = release.filter(|release| *release < ok) else { continue };
        let who = index.describe_holding(at);
        let message = format!("{who} was granted an incarnation whose unlock was already invoked");
        violations.push(Violation::new(NAME, "retired", message, vec![release, ok]));
    }
}

fn incarnation_of(index: &Index<'_>, op: &Op<'_>) -> Option<usize> {
    index.holdings[op.holding?].incarnation
}
