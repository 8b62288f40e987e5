//! One event in words, for a line of the timeline.

use std::collections::BTreeMap;

use crate::{
    checker::Index,
    history::{
        ApplyRow, Boundary, Cause, Commit, Event, EventKind, FaultAction, Function, KeyChange,
        LeaseChange, OpId, OpKind, Outcome, Phase, Reply, RowResult,
    },
};

/// What the event says, without its time and node.
pub(super) fn describe(event: &Event, index: &Index<'_>, families: &BTreeMap<u32, &str>) -> String {
    match &event.kind {
        EventKind::Phase(phase) => format!("phase {}", phase_name(*phase)),
        EventKind::Invoke { holding, f, .. } => {
            let under = holding.map_or_else(String::new, |h| format!("  under {h}"));
            format!("{} asked{under}", function(f))
        }
        EventKind::Return { op, outcome } => match index.op(*op) {
            Some(op) => returned(index, op, outcome),
            None => format!("operation {} {}", op.0, ending(outcome)),
        },
        EventKind::LossNoticed { holding } => format!("notices that {holding} is lost"),
        EventKind::Held { holding, held, local_ns, deadline_ns } => {
            let held = if *held { "is held" } else { "is not held" };
            let left_ms = (i128::from(*deadline_ns) - i128::from(*local_ns)) / 1_000_000;
            format!("says {holding} {held}, {left_ms} ms before its deadline")
        }
        EventKind::Commit(commit) => committed(commit),
        EventKind::Lease(lease) => match lease.change {
            LeaseChange::Granted { ttl_s } => format!("lease {:x} granted, {ttl_s} s", lease.lease),
            LeaseChange::Renewed => format!("lease {:x} renewed", lease.lease),
            LeaseChange::Expired => format!("lease {:x} expired", lease.lease),
            LeaseChange::Revoked => format!("lease {:x} revoked", lease.lease),
            LeaseChange::Promoted { extend_ms } => {
                format!("leads: all leases start anew, {extend_ms} ms longer")
            }
        },
        EventKind::Storage(Boundary::Arrival { request, .. }) => {
            format!("request {request} arrives")
        }
        EventKind::Storage(Boundary::Answer { request, .. }) => {
            format!("request {request} is answered")
        }
        EventKind::Apply(row) => applied(row, index),
        EventKind::Fault { index, action } => {
            let family = families.get(index).map_or_else(String::new, |name| format!(" {name}"));
            format!("fault {index}{family} {}", fault_action(action))
        }
        EventKind::Killed => "killed".to_owned(),
        EventKind::Restarted => "restarted".to_owned(),
        EventKind::Point { name } => format!("stops at {name}"),
        EventKind::Stop => "stands still".to_owned(),
        EventKind::Go => "goes on".to_owned(),
        EventKind::Link { from, to, open, delay_ms } => match (open, delay_ms) {
            (false, _) => format!("nothing gets from {from} to {to}"),
            (true, 0) => format!("the link from {from} to {to} is open"),
            (true, ms) => format!("from {from} to {to} it takes {ms} ms longer"),
        },
        EventKind::Rate { permille: 0 } => "its clock stands still".to_owned(),
        EventKind::Rate { permille } => format!("its clock runs at {permille}/1000"),
        EventKind::Deadline { op, deadline_ns, ended_ns, .. } => {
            let late_ms = (i128::from(*ended_ns) - i128::from(*deadline_ns)) / 1_000_000;
            let what = index.op(*op).map_or_else(String::new, |op| function(index.ops[op].f));
            match late_ms {
                late if late > 0 => format!("{what} ended {late} ms after its deadline"),
                early => format!("{what} ended {} ms before its deadline", -early),
            }
        }
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Setup => "setup",
        Phase::Traffic => "traffic",
        Phase::Heal => "heal",
        Phase::Settle => "settle",
        Phase::FinalReads => "final reads",
    }
}

fn function(f: &Function) -> String {
    match f {
        Function::OpenSession { ttl_s } => format!("session of {ttl_s} s"),
        Function::Lock { name } => format!("lock {name}"),
        Function::TryLock { name } => format!("try-lock {name}"),
        Function::Unlock { name } => format!("unlock {name}"),
        Function::CloseSession => "close of the session".to_owned(),
        Function::Enter { key, .. } => format!("enter {key}"),
        Function::Read { key, .. } => format!("read {key}"),
        Function::Write { key, value, .. } => format!("write {key} = {value}"),
        Function::FinalRead { key, .. } => format!("final read {key}"),
    }
}

fn returned(index: &Index<'_>, op: usize, outcome: &Outcome) -> String {
    let op = &index.ops[op];
    let under = op.holding.and_then(|holding| index.holdings[holding].id);
    let under = under.map_or_else(String::new, |holding| format!("  under {holding}"));
    format!("{} {}{under}", function(op.f), ending(outcome))
}

fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(Reply::Done) => "ok".to_owned(),
        Outcome::Ok(Reply::Acquired { key, token }) => format!("ok  key {key} token {token}"),
        Outcome::Ok(Reply::Session { lease, ttl_s }) => format!("ok  lease {lease:x}, {ttl_s} s"),
        Outcome::Ok(Reply::Value(Some(value))) => format!("ok  {value}"),
        Outcome::Ok(Reply::Value(None)) => "ok  not found".to_owned(),
        Outcome::Fail(why) => format!("failed: {why}"),
        Outcome::Unknown(why) => format!("unknown: {why}"),
    }
}

fn committed(commit: &Commit) -> String {
    let cause = match commit.cause {
        Cause::Put => "put".to_owned(),
        Cause::Delete => "delete".to_owned(),
        Cause::Txn => "txn".to_owned(),
        Cause::Revoke(lease) => format!("revoke of lease {lease:x}"),
        Cause::Expiry(lease) => format!("expiry of lease {lease:x}"),
        Cause::Restore => "restore".to_owned(),
    };
    let mut text = format!("commit rev {} {cause}:", commit.revision);
    for event in &commit.events {
        let sign = match event.change {
            KeyChange::Put => '+',
            KeyChange::Delete => '-',
        };
        text.push_str(&format!(" {sign} {}", event.key));
    }
    text
}

fn applied(row: &ApplyRow, index: &Index<'_>) -> String {
    let what = match (row.kind, row.value.as_deref()) {
        (OpKind::Read, _) => format!("read {}", row.key),
        (OpKind::Write, value) => format!("write {} = {}", row.key, value.unwrap_or("nothing")),
    };
    let result = match row.result {
        RowResult::Admitted => "admitted",
        RowResult::Refused => "refused",
        RowResult::Replayed => "answered again",
        RowResult::Rejected => "rejected",
    };
    let token = row.token.map_or_else(|| "no token".to_owned(), |token| format!("token {token}"));
    let op = row.tag.and_then(|tag| index.op(OpId(tag)));
    let by = op.map_or_else(String::new, |op| format!("  of {}", index.ops[op].node));
    format!("{what} {result}  {token}{by}")
}

fn fault_action(action: &FaultAction) -> String {
    match action {
        FaultAction::Begin => "begins".to_owned(),
        FaultAction::End => "ends".to_owned(),
        FaultAction::Effect(count) => format!("had {count} effects"),
        FaultAction::Skipped(why) => format!("skipped: {why}"),
    }
}
