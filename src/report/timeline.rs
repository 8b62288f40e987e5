//! A history as text: one line an event, with true time, node and words.
//!
//! Columns: a mark (`>` for the events that show a violation), `seq`, seconds of true time, the node,
//! what happened. Boundary events and renewals are left out; so is, around a violation, what has
//! nothing to do with it.

use std::{collections::BTreeSet, fmt::Write};

use crate::{
    history::{
        ApplyRow, Cause, Commit, Event, EventKind, FaultAction, Function, History, KeyChange,
        LeaseChange, OpKind, Outcome, Reply,
    },
    plan::Plan,
};

/// What a timeline shows.
#[derive(Debug, Clone)]
pub struct TimelineOptions {
    /// The events that show a violation: they are marked, and only their surroundings are shown.
    pub evidence: Vec<u64>,
    /// The most lines.
    pub lines_max: usize,
}

impl Default for TimelineOptions {
    fn default() -> Self {
        TimelineOptions { evidence: Vec::new(), lines_max: 2000 }
    }
}

/// Around the evidence, so much is shown before and after, in nanoseconds.
const MARGIN_NS: u64 = 1_500_000_000;

/// The timeline of a history, and of the plan that was executed in it.
pub fn timeline(history: &History, plan: &Plan, options: &TimelineOptions) -> String {
    let evidence: BTreeSet<u64> = options.evidence.iter().copied().collect();
    let window = window(history, &evidence);
    let mut text = String::new();
    let mut lines = 0;
    let mut left_out = 0;
    for event in &history.events {
        let marked = evidence.contains(&event.seq);
        let inside = marked || (window.0..=window.1).contains(&event.at_ns);
        let Some(words) = words(event, plan).filter(|_| inside) else { continue };
        if lines >= options.lines_max && !marked {
            left_out += 1;
            continue;
        }
        lines += 1;
        let mark = if marked { '>' } else { ' ' };
        let seconds = event.at_ns as f64 / 1e9;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{mark} {:>6} {seconds:>9.3} {:<9} {words}", event.seq, event.node);
    }
    if left_out > 0 {
        let _ = writeln!(text, "  … {left_out} more events left out");
    }
    text
}

fn window(history: &History, evidence: &BTreeSet<u64>) -> (u64, u64) {
    let times = || {
        let marked = history.events.iter().filter(|event| evidence.contains(&event.seq));
        marked.map(|event| event.at_ns)
    };
    match (times().min(), times().max()) {
        (Some(from), Some(to)) => (from.saturating_sub(MARGIN_NS), to + MARGIN_NS / 3),
        _ => (0, u64::MAX),
    }
}

/// The event in words; none if it is left out.
fn words(event: &Event, plan: &Plan) -> Option<String> {
    match &event.kind {
        EventKind::Phase(phase) => Some(format!("---- {phase:?} ----")),
        EventKind::Invoke { op, holding, f } => {
            let holding = holding.map(|holding| format!("{holding} ")).unwrap_or_default();
            Some(format!("op {} {holding}{}", op.0, function(f)))
        }
        EventKind::Return { op, outcome } => Some(format!("op {} {}", op.0, result(outcome))),
        EventKind::LossNoticed { holding } => {
            Some(format!("{holding} sees that its session is over"))
        }
        EventKind::Held { holding, held, local_ns, deadline_ns } => {
            let left = (*deadline_ns as f64 - *local_ns as f64) / 1e9;
            let word = if *held { "held" } else { "lost" };
            Some(format!("{holding} asks its session: {word}, {left:.3} s left on its own clock"))
        }
        EventKind::Commit(commit) => Some(self::commit(commit)),
        EventKind::Lease(lease) => match lease.change {
            LeaseChange::Granted { ttl_s } => {
                Some(format!("lease {:x} granted for {ttl_s} s", lease.lease))
            }
            LeaseChange::Expired => Some(format!("lease {:x} expired", lease.lease)),
            LeaseChange::Revoked => Some(format!("lease {:x} revoked", lease.lease)),
            LeaseChange::Renewed => None,
        },
        EventKind::Storage(_) => None,
        EventKind::Apply(row) => Some(apply(row)),
        EventKind::Fault { index, action } => {
            let fault = plan.faults.get(*index as usize);
            let what = fault.map_or_else(|| "?".to_owned(), ToString::to_string);
            Some(match action {
                FaultAction::Begin => format!("fault {index} begins: {what}"),
                FaultAction::End => format!("fault {index} ends: {what}"),
                FaultAction::Effect(effect) => format!("fault {index} had effect: {effect}"),
                FaultAction::Skipped(why) => format!("fault {index} skipped ({why}): {what}"),
            })
        }
        EventKind::Killed => Some("killed".to_owned()),
        EventKind::Restarted => Some("restarted".to_owned()),
        EventKind::Point { name } => Some(format!("stops at {name}")),
    }
}

fn function(f: &Function) -> String {
    match f {
        Function::OpenSession { ttl_s } => format!("open session, ttl {ttl_s} s"),
        Function::Lock { name } => format!("lock {name}"),
        Function::TryLock { name } => format!("try-lock {name}"),
        Function::Unlock { name } => format!("unlock {name}"),
        Function::CloseSession => "close session".to_owned(),
        Function::Enter { key, .. } => format!("enter (fenced read of {key})"),
        Function::Read { key, .. } => format!("read {key}"),
        Function::Write { key, value, .. } => format!("write {key} = {value:?}"),
        Function::FinalRead { key, .. } => format!("final read of {key}"),
    }
}

fn result(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(Reply::Done) => "ok".to_owned(),
        Outcome::Ok(Reply::Acquired { key, token }) => format!("ok: holds {key}, token {token}"),
        Outcome::Ok(Reply::Session { lease, ttl_s }) => {
            format!("ok: lease {lease:x}, granted {ttl_s} s")
        }
        Outcome::Ok(Reply::Value(Some(value))) => format!("ok: {value:?}"),
        Outcome::Ok(Reply::Value(None)) => "ok: not there".to_owned(),
        Outcome::Fail(why) => format!("fail: {why}"),
        Outcome::Unknown(why) => format!("unknown: {why}"),
    }
}

fn commit(commit: &Commit) -> String {
    let cause = match commit.cause {
        Cause::Put => "put".to_owned(),
        Cause::Delete => "delete".to_owned(),
        Cause::Txn => "txn".to_owned(),
        Cause::Revoke(lease) => format!("revoke of lease {lease:x}"),
        Cause::Expiry(lease) => format!("expiry of lease {lease:x}"),
        Cause::Restore => "restore".to_owned(),
    };
    let mut text = format!("revision {} by {cause}:", commit.revision);
    for change in &commit.events {
        let sign = if change.change == KeyChange::Put { '+' } else { '-' };
        let _ = write!(text, " {sign}{} (created {})", change.key, change.create_revision);
    }
    text
}

fn apply(row: &ApplyRow) -> String {
    let kind = if row.kind == OpKind::Write { "write" } else { "read" };
    let token = row.token.map_or_else(|| "no token".to_owned(), |token| format!("token {token}"));
    let op = row.tag.map(|tag| format!(" of op {tag}")).unwrap_or_default();
    let result = format!("{:?}", row.result).to_lowercase();
    format!("{kind} {}{op} with {token}: {result}", row.key)
}
