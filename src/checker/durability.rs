//! Durability (D8): after a restart the storage is where a prefix of its apply order had brought
//! it, and that prefix contains everything that was answered.
//!
//! Answers of any kind count, reads and refusals too: each was computed from a state, and none may
//! leave before that state is durable. The new life is judged by what it says: its rows must be
//! those of a storage that begins with the state after such a prefix, its data, its mark and its
//! last requests. What no state at all could explain is a matter of
//! [`linearizability`](super::linearizability), and is not blamed on the restart.

use super::{
    Checker, Finding, Idle, Violation,
    assumption::Assumption,
    index::{Index, Row},
    spec::{Spec, Wrong},
};
use crate::history::RowResult;

const NAME: &str = "durability";

/// Judges every restart of the storage after which it was asked something.
#[derive(Debug)]
pub struct Durability;

impl Checker for Durability {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "after a restart the storage knows everything that it had answered, marks and requests too"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::RealTimeOrder]
    }

    fn idle(&self) -> Idle {
        Idle::InASuite
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let (judged, violation) = walk(index);
        Finding::of(NAME, judged, violation, "the storage was not asked anything after a restart")
    }
}

fn walk(index: &Index<'_>) -> (u64, Option<Violation>) {
    // A record that does not begin with the storage's first life knows no state to begin with.
    if index.rows.first().is_none_or(|row| row.boot() != 1) {
        return (0, None);
    }
    let mut judged = 0;
    // What the state may be after the rows so far, each without repetition.
    let mut states = vec![Spec::empty()];
    for life in index.rows.chunk_by(|one, other| one.boot() == other.boot()) {
        let first = life[0].boot() == 1;
        judged += u64::from(!first);
        let last_answered = life.iter().rposition(answered);
        let mut recoverable = match last_answered {
            None => states.clone(),
            Some(_) => Vec::new(),
        };
        let mut unprejudiced = Spec::unknown();
        for (at, row) in life.iter().enumerate() {
            if first {
                states.iter_mut().for_each(|state| state.follow(row));
            } else {
                if unprejudiced.step(row).is_err() {
                    return (judged, None);
                }
                match keep(&mut states, row) {
                    Ok(()) => {}
                    Err(wrong) => return (judged, Some(blame(index, row, &wrong))),
                }
            }
            if last_answered.is_none_or(|last| at >= last) {
                add(&mut recoverable, &states);
            }
        }
        states = recoverable;
    }
    (judged, None)
}

/// Whether something was told from the state that this row was applied to.
fn answered(row: &Row<'_>) -> bool {
    let told = row.answer.is_some() || row.survives;
    told && row.result() != RowResult::Rejected
}

/// Keeps the states that allow the row, after it; if there is none, why the last one does not.
fn keep<'h>(states: &mut Vec<Spec<'h>>, row: &Row<'h>) -> Result<(), Wrong> {
    let mut last = None;
    let mut kept = Vec::with_capacity(states.len());
    for mut state in states.drain(..) {
        match state.step(row) {
            Ok(()) => kept.push(state),
            Err(wrong) => last = Some(wrong),
        }
    }
    kept.dedup();
    *states = kept;
    match last {
        Some(wrong) if states.is_empty() => Err(wrong),
        _ => Ok(()),
    }
}

fn add<'h>(recoverable: &mut Vec<Spec<'h>>, states: &[Spec<'h>]) {
    for state in states {
        if recoverable.last() != Some(state) {
            recoverable.push(state.clone());
        }
    }
}

fn blame(index: &Index<'_>, row: &Row<'_>, wrong: &Wrong) -> Violation {
    let (rule, what) = match wrong.rule {
        "read" => ("lost-data", "its data"),
        "applied-twice" | "out-of-order" | "resend-refused" | "never-applied" => {
            ("lost-requests", "its last requests")
        }
        _ => ("lost-mark", "its mark"),
    };
    // The last answer of the life before: it must have been durable.
    let before =
        index.rows.iter().rev().find(|other| {
            other.boot() < row.boot() && answered(other) && other.domain == row.domain
        });
    let kind = if row.is_write() { "write" } else { "read" };
    let message = format!(
        "after its restart the storage had not {what}: a {kind} of {:?} was {} {}",
        row.row.key,
        match row.row.result {
            RowResult::Admitted => "let in",
            RowResult::Refused => "refused",
            RowResult::Replayed => "answered as a resend",
            RowResult::Rejected => "rejected",
        },
        wrong.why
    );
    let events = before.map(|before| before.seq).into_iter().chain([row.seq]).collect();
    Violation::new(NAME, rule, message, events)
}
