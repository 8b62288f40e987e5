//! Lost update (D8): between the fenced read that a write was computed from and that write, no
//! other write of the key has its effect.
//!
//! Linearizability of a register does not imply it. If the values of a key are counters (each write
//! is its read plus one, as `n` or `n:anything`), the final read must agree with the number of
//! acknowledged and of unknown increments as well; for other values that cross-check is left out.

use std::collections::BTreeMap;

use super::{
    Checker, Finding, Violation,
    assumption::Assumption,
    index::{Index, Op, Row},
};
use crate::history::{Function, Outcome, Reply};

const NAME: &str = "lost-update";

/// Judges every effective read-modify-write.
#[derive(Debug)]
pub struct LostUpdate;

impl Checker for LostUpdate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "no write is overwritten by one that was computed from an older read"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::UniqueValues, Assumption::RealTimeOrder]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let (judged, violation) = overwritten(index);
        let violation = violation.or_else(|| counters(index));
        Finding::of(NAME, judged, violation, "no read-modify-write had its effect")
    }
}

/// The effective writes of each domain and key, in apply order.
type WritesByKey<'i, 'h> = BTreeMap<u32, Vec<&'i Row<'h>>>;

fn overwritten(index: &Index<'_>) -> (u64, Option<Violation>) {
    let mut writes: WritesByKey<'_, '_> = BTreeMap::new();
    let mut judged = 0;
    for write in index.rows.iter().filter(|row| row.is_write() && row.effective) {
        let before = writes.entry(write.key).or_default();
        if let Some(base) = base_of(index, write) {
            judged += 1;
            let between = before.iter().rev().take_while(|other| base.place() < other.place());
            // A write that its own resend repeats is the business of the request table (D7).
            let mut others = between.filter(|other| other.op.is_none() || other.op != write.op);
            if let Some(lost) = others.find(|lost| lost.precedes(write)) {
                return (judged, Some(lost_update(index, base, lost, write)));
            }
        }
        before.push(write);
    }
    (judged, None)
}

/// The row of the read whose answer the write was computed from.
fn base_of<'i, 'h>(index: &'i Index<'h>, write: &Row<'h>) -> Option<&'i Row<'h>> {
    let Function::Write { based_on: Some(base), .. } = index.ops[write.op?].f else { return None };
    let base = index.op(*base)?;
    let answered = read_value(&index.ops[base])?;
    let reads = index.rows_of(base).filter(|read| {
        read.admitted() && !read.is_write() && read.place() < write.place() && read.key == write.key
    });
    // A resent read ran more than once; the client went on with the answer that it reported.
    reads.filter(|read| read.row.value.as_deref() == answered).last()
}

/// What a read told the client; `None` if it told nothing.
fn read_value<'h>(op: &Op<'h>) -> Option<Option<&'h str>> {
    match op.end {
        Some((_, Outcome::Ok(Reply::Value(value)))) => Some(value.as_deref()),
        _ => None,
    }
}

fn lost_update(index: &Index<'_>, base: &Row<'_>, lost: &Row<'_>, write: &Row<'_>) -> Violation {
    let by = |row: &Row<'_>| {
        row.holding.map_or_else(|| "nobody".to_owned(), |h| index.describe_holding(h))
    };
    let message = format!(
        "the write of {:?} to {:?} by {} was overwritten by {:?} of {}, made from an older read",
        lost.row.value.as_deref().unwrap_or_default(),
        lost.row.key,
        by(lost),
        write.row.value.as_deref().unwrap_or_default(),
        by(write),
    );
    Violation::new(NAME, "overwritten", message, vec![base.seq, lost.seq, write.seq])
}

/// A key whose every write is an increment.
#[derive(Debug, Default)]
struct Counter {
    broken: bool,
    ok: i64,
    unknown: i64,
}

fn counters(index: &Index<'_>) -> Option<Violation> {
    let mut counters: BTreeMap<(&str, &str), Counter> = BTreeMap::new();
    for op in &index.ops {
        match op.f {
            Function::Write { domain, key, value, based_on } => {
                let counter = counters.entry((domain, key)).or_default();
                if counter.broken {
                    continue;
                }
                let base = based_on.and_then(|base| read_value(&index.ops[index.op(base)?]));
                let base = base.and_then(|base| base.map_or(Some(0), count));
                counter.broken |= base.is_none() || count(value) != base.map(|base| base + 1);
                match op.end {
                    Some((_, Outcome::Ok(_))) => counter.ok += 1,
                    Some((_, Outcome::Fail(_))) => {}
                    Some((_, Outcome::Unknown(_))) | None => counter.unknown += 1,
                }
            }
            Function::FinalRead { domain, key } => {
                let (Some(counter), Some(value), Some((seq, _))) =
                    (counters.get(&(domain.as_str(), key.as_str())), read_value(op), op.end)
                else {
                    continue;
                };
                let Some(value) = value.map_or(Some(0), count) else { continue };
                let most = counter.ok + counter.unknown;
                if counter.broken || (counter.ok..=most).contains(&value) {
                    continue;
                }
                let message = format!(
                    "{key:?} ended as {value} after {} increments, {} of them acknowledged",
                    most, counter.ok
                );
                return Some(Violation::new(NAME, "counter", message, vec![seq]));
            }
            _ => {}
        }
    }
    None
}

/// The number that a value counts: all of it, or what is before its first colon.
fn count(value: &str) -> Option<i64> {
    value.split(':').next()?.parse().ok()
}
