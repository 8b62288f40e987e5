//! Fenced linearizability (D8): the storage answers as one that does one request after another.
//!
//! With an apply log the order is known: that it respects real time is an assumption, and here each
//! row must be what the state before it demands, and each operation's outcome what became of its
//! rows. Over a restart of the storage nothing is taken for granted: what the new life must still
//! know is for [`durability`](super::durability). Without an apply log some order is looked for,
//! with a budget of steps ([`search`]).

use super::{
    Checker, Finding, Verdict, Violation,
    assumption::Assumption,
    index::{Index, Op, Row},
    search::{self, Found},
    spec::Spec,
};
use crate::history::{Function, OpKind, Outcome, Reply, RowResult};

const NAME: &str = "linearizability";

/// Judges every row of the apply log, or without one every operation at the storage.
#[derive(Debug)]
pub struct Linearizability;

impl Checker for Linearizability {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "answers and refusals are those of a storage that does one request after another"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::RealTimeOrder]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let missing = "no operation reached the storage";
        if index.rows.is_empty() {
            let calls = search::calls(index);
            let judged = calls.len() as u64;
            return match search::search(&calls, search::STEPS_MAX) {
                Found::Order => Finding::of(NAME, judged, None, missing),
                Found::None { op } => {
                    Finding::of(NAME, judged, Some(without_order(index, op)), missing)
                }
                Found::Unknown(why) => {
                    Finding { checker: NAME, judged, verdict: Verdict::Unknown(why) }
                }
            };
        }
        let violation = rows(index).or_else(|| outcomes(index));
        Finding::of(NAME, index.rows.len() as u64, violation, missing)
    }
}

/// The first row that the state before it does not allow.
fn rows(index: &Index<'_>) -> Option<Violation> {
    let mut spec = Spec::empty();
    let mut boot = index.rows.first()?.boot();
    if boot > 1 {
        spec = Spec::unknown();
    }
    for row in &index.rows {
        if row.boot() != boot {
            boot = row.boot();
            spec = Spec::unknown();
        }
        if let Err(wrong) = spec.step(row) {
            let message = format!("{} {}", describe(index, row), wrong.why);
            let mut events = vec![row.seq];
            events.extend(before(index, row).map(|before| before.seq));
            return Some(Violation::new(NAME, wrong.rule, message, events));
        }
    }
    None
}

/// The last row that made the state what it is for this one: of a read the last write of the key,
/// of another that with the greatest token.
fn before<'i, 'h>(index: &'i Index<'h>, row: &Row<'h>) -> Option<&'i Row<'h>> {
    let mut earlier = index.rows.iter().filter(|other| {
        other.place() < row.place() && other.boot() == row.boot() && other.domain == row.domain
    });
    match row.row.kind {
        OpKind::Read if row.admitted() => {
            earlier.rfind(|other| other.row.effect && other.key == row.key)
        }
        _ => earlier.filter(|other| other.announces()).max_by_key(|other| other.row.token),
    }
}

fn describe(index: &Index<'_>, row: &Row<'_>) -> String {
    let by = row.holding.map_or_else(|| "nobody".to_owned(), |h| index.describe_holding(h));
    let kind = if row.is_write() { "the write of" } else { "the read of" };
    let fate = match row.row.result {
        RowResult::Admitted => "was let in",
        RowResult::Refused => "was refused",
        RowResult::Replayed => "was answered as a resend",
        RowResult::Rejected => "was rejected",
    };
    format!("{kind} {:?} by {by} {fate}", row.row.key)
}

/// The first operation whose outcome is not what became of its rows.
fn outcomes(index: &Index<'_>) -> Option<Violation> {
    let last_boot = index.rows.last()?.boot();
    index.ops.iter().enumerate().find_map(|(at, op)| {
        let (seq, outcome) = op.end?;
        let mut rows = index.rows_of(at).peekable();
        rows.peek()?;
        let (rule, why) = match (outcome, op.f) {
            (Outcome::Ok(Reply::Value(value)), _) => {
                let same = |row: &Row<'_>| row.admitted() && row.row.value == *value;
                if rows.any(|row| same(row) && !row.is_write()) {
                    return None;
                }
                ("answer", "was told what no read of it had found")
            }
            (Outcome::Ok(_), Function::Write { .. }) => {
                let done = [RowResult::Admitted, RowResult::Replayed];
                if rows.any(|row| done.contains(&row.result())) {
                    return None;
                }
                ("answer", "was told that it is done, although it was never let in")
            }
            (Outcome::Fail(_), Function::Write { .. }) => {
                let counts = |row: &Row<'_>| row.boot() == last_boot || row.survives;
                let effect = rows.find(|row| row.row.effect && counts(row))?;
                let why = "was told that it certainly failed, although it had its effect";
                return Some(told(index, op, (effect.seq, seq), "failed-with-effect", why));
            }
            _ => return None,
        };
        let row = index.rows_of(at).last().map_or(op.invoke, |row| row.seq);
        Some(told(index, op, (row, seq), rule, why))
    })
}

fn told(
    index: &Index<'_>,
    op: &Op<'_>,
    (row, end): (u64, u64),
    rule: &'static str,
    why: &str,
) -> Violation {
    let by = op.holding.map_or_else(|| op.node.to_string(), |h| index.describe_holding(h));
    let message = format!("operation {} of {by} {why}", op.id.0);
    Violation::new(NAME, rule, message, vec![op.invoke, row, end])
}

fn without_order(index: &Index<'_>, op: usize) -> Violation {
    let op = &index.ops[op];
    let message = format!(
        "no order of the operations explains what operation {} of {} was told",
        op.id.0, op.node
    );
    let end = op.end.map_or(op.invoke, |(seq, _)| seq);
    Violation::new(NAME, "no-order", message, vec![op.invoke, end])
}
