//! The assumptions (D11) a second time: each is asked of every pair of events that it is about.

use std::collections::BTreeSet;

use leasehold::history::{
    ApplyRow, Boundary, Cause, Commit, Event, EventKind, FaultAction, Function, History, HoldingId,
    NodeName, OpId, Outcome, Phase,
};

use super::naive_storage;

/// An operation: its invocation, and its end if it had one.
struct Op<'h> {
    id: OpId,
    holding: Option<HoldingId>,
    f: &'h Function,
    invoke: u64,
    end: Option<(u64, &'h Outcome)>,
}

impl Op<'_> {
    fn ok(&self) -> Option<u64> {
        self.end.and_then(|(seq, outcome)| matches!(outcome, Outcome::Ok(_)).then_some(seq))
    }
}

fn ops(history: &History) -> Vec<Op<'_>> {
    let end = |id: OpId| {
        history.events.iter().find_map(|event| match &event.kind {
            EventKind::Return { op, outcome } if *op == id => Some((event.seq, outcome)),
            _ => None,
        })
    };
    let whole = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Invoke { op, holding, f } => {
            let (id, holding, invoke) = (*op, *holding, event.seq);
            Some(Op { id, holding, f, invoke, end: end(id) })
        }
        _ => None,
    });
    whole.collect()
}

fn op_of<'a, 'h>(ops: &'a [Op<'h>], row: &ApplyRow) -> Option<&'a Op<'h>> {
    ops.iter().find(|op| Some(op.id.0) == row.tag)
}

fn complete(history: &History, ops: &[Op<'_>], rows: &[(u64, &ApplyRow)]) -> bool {
    let phases = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Phase(phase) => Some(phase),
        _ => None,
    });
    let all = [Phase::Setup, Phase::Traffic, Phase::Heal, Phase::Settle, Phase::FinalReads];
    let tagged = rows.iter().any(|(_, row)| op_of(ops, row).is_some());
    let answered = ops.iter().all(|op| match op.f {
        Function::FinalRead { .. } => op.ok().is_some(),
        Function::Enter { .. } | Function::Read { .. } | Function::Write { .. } => {
            let applied = rows.iter().any(|(_, row)| row.tag == Some(op.id.0));
            op.ok().is_none() || !tagged || applied
        }
        _ => true,
    });
    let read = ops.iter().all(|op| match op.f {
        Function::Write { domain, key, .. } => ops.iter().any(|other| {
            *other.f == Function::FinalRead { domain: domain.clone(), key: key.clone() }
        }),
        _ => true,
    });
    phases.eq(all) && answered && read
}

fn unique(ops: &[Op<'_>]) -> bool {
    let value = |op: &Op<'_>| match op.f {
        Function::Write { value, .. } => Some(value.clone()),
        _ => None,
    };
    ops.iter().enumerate().all(|(at, op)| {
        value(op).is_none() || ops[..at].iter().all(|earlier| value(earlier) != value(op))
    })
}

fn one_lineage(history: &History) -> bool {
    let commits = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Commit(commit) => Some(commit),
        _ => None,
    });
    let commits: Vec<&Commit> = commits.collect();
    commits.iter().enumerate().all(|(at, later)| {
        let mut earlier = commits[..at].iter();
        let rises = earlier.all(|c| c.index < later.index && c.revision < later.revision);
        rises && later.cause != Cause::Restore
    })
}

/// The lock that a row's operation was issued under.
fn lock_of<'h>(ops: &[Op<'h>], row: &ApplyRow) -> Option<&'h str> {
    let op = op_of(ops, row)?;
    let held = |other: &&Op<'h>| other.invoke < op.invoke && other.holding == op.holding;
    ops.iter().filter(held).find_map(|other| match other.f {
        Function::Lock { name } => op.holding.and(Some(name.as_str())),
        _ => None,
    })
}

fn one_domain(ops: &[Op<'_>], rows: &[(u64, &ApplyRow)]) -> bool {
    rows.iter().all(|(_, one)| {
        rows.iter().all(|(_, other)| {
            let (a, b) = (lock_of(ops, one), lock_of(ops, other));
            one.domain != other.domain || a.is_none() || b.is_none() || a == b
        })
    })
}

fn in_real_time(history: &History, ops: &[Op<'_>], rows: &[(u64, &ApplyRow)]) -> bool {
    let first = |boundary: Boundary| {
        let mut events = history.events.iter();
        let event = events.find(|event| event.kind == EventKind::Storage(boundary));
        event.map(|event| event.seq)
    };
    let in_order = rows.windows(2).all(|pair| {
        let place = |row: &ApplyRow| (row.boot, row.index);
        place(pair[0].1) < place(pair[1].1) && pair[0].0 < pair[1].0
    });
    let within = rows.iter().all(|(seq, row)| {
        let (boot, request) = (row.boot, row.request);
        let arrival = first(Boundary::Arrival { boot, request });
        let answer = first(Boundary::Answer { boot, request });
        let invoke = op_of(ops, row).map(|op| op.invoke);
        arrival.is_none_or(|arrival| arrival < *seq)
            && answer.is_none_or(|answer| *seq < answer)
            && invoke.is_none_or(|invoke| invoke < *seq)
    });
    let answered = ops.iter().all(|op| {
        let applied = rows.iter().find(|(_, row)| row.tag == Some(op.id.0));
        op.ok().is_none_or(|ok| applied.is_none_or(|(seq, _)| *seq < ok))
    });
    in_order && within && answered
}

fn healed(history: &History) -> bool {
    let settles = |event: &&Event| event.kind == EventKind::Phase(Phase::Settle);
    let Some(settled) = history.events.iter().find(settles).map(|event| event.seq) else {
        return false;
    };
    history.events.iter().all(|event| {
        let since = history.events.iter().filter(|later| event.seq < later.seq);
        let mut in_time = since.filter(|later| later.seq < settled);
        !harms(event) || in_time.any(|later| heals(later, event))
    })
}

fn harms(event: &Event) -> bool {
    match event.kind {
        EventKind::Fault { action: FaultAction::Begin, .. } | EventKind::Stop => true,
        EventKind::Rate { permille } => permille == 0,
        EventKind::Link { open, .. } => !open,
        EventKind::Killed => !matches!(event.node, NodeName::Client(_)),
        _ => false,
    }
}

fn heals(later: &Event, harm: &Event) -> bool {
    let of_node = later.node == harm.node;
    match (&later.kind, &harm.kind) {
        (
            EventKind::Fault { index, action: FaultAction::End },
            EventKind::Fault { index: of, .. },
        ) => index == of,
        (EventKind::Rate { permille }, EventKind::Rate { .. }) => of_node && *permille > 0,
        (EventKind::Go, EventKind::Stop) => of_node,
        (EventKind::Link { from, to, open, .. }, EventKind::Link { from: a, to: b, .. }) => {
            *open && (from, to) == (a, b)
        }
        (EventKind::Restarted, EventKind::Killed) => of_node,
        _ => false,
    }
}

/// The names of the assumptions that do not hold.
pub fn failed(history: &History) -> BTreeSet<&'static str> {
    let (ops, rows) = (ops(history), naive_storage::rows(history));
    let held = [
        ("complete history", complete(history, &ops, &rows)),
        ("unique values", unique(&ops)),
        ("one lineage of revisions", one_lineage(history)),
        ("one domain a lock", one_domain(&ops, &rows)),
        ("apply order respects real time", in_real_time(history, &ops, &rows)),
        ("healed", healed(history)),
    ];
    held.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}
