//! Release validity (D6): whoever is told that it gave the lock back did, and for good.
//!
//! The incarnation is absent at some moment between the invocation of the unlock and its ok, and
//! never comes back: from the ok on it is not there.

use super::{
    Checker, Finding, Idle, Violation,
    assumption::Assumption,
    index::{Index, Op},
};
use crate::history::Function;

const NAME: &str = "release-validity";

/// Judges every unlock that answered ok.
#[derive(Debug)]
pub struct ReleaseValidity;

impl Checker for ReleaseValidity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "who is told that it gave the lock back did so, and its queue key does not come back"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::OneLineage]
    }

    fn idle(&self) -> Idle {
        Idle::InARun
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let released = |op: &&Op<'_>| {
            let of = op.holding.and_then(|holding| index.holdings[holding].incarnation);
            matches!(op.f, Function::Unlock { .. }) && op.is_ok() && of.is_some()
        };
        let unlocks = index.ops.iter().filter(released);
        let judged = unlocks.clone().count() as u64;
        // The earliest is the cause of what follows it.
        let violations = unlocks.filter_map(|op| release(index, op));
        let first = violations.min_by_key(|violation| violation.events.last().copied());
        Finding::of(NAME, judged, first, "no unlock answered ok")
    }
}

fn release(index: &Index<'_>, op: &Op<'_>) -> Option<Violation> {
    let (ok, _) = op.end.filter(|_| op.is_ok())?;
    let holding = op.holding?;
    let own = index.holdings[holding].incarnation?;
    let ended = |life: usize| index.incarnations[life].ended.is_some_and(|end| end.seq < ok);
    let created = |life: usize| index.incarnations[life].created;
    let (why, event) = match index.incarnations[own].returned {
        _ if !ended(own) => ("was still there", created(own)),
        None => return None,
        Some(_) => {
            let lives = &index.locks[index.incarnations[own].lock].incarnations;
            let is_there = |life: &usize| index.is_same(*life, own) && !ended(*life);
            ("came back", created(lives.iter().copied().find(is_there)?))
        }
    };
    let who = index.describe_holding(holding);
    let message = format!("the unlock of {who} answered ok, yet its queue key {why}");
    Some(Violation::new(NAME, "release", message, vec![op.invoke, ok, event]))
}
