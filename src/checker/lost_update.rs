//! Lost update (D8): nothing changes a key between a fenced read and the write that rests on it.

use std::collections::BTreeMap;

use super::{Checker, Index, Row, Verdict, violation};
use crate::history::{Function, OpId, Outcome, Reply, RowResult};

pub(super) const LOST_UPDATE: Checker = Checker {
    name: "lost_update",
    help: "no other write lies between a fenced read and the write based on it; the last write \
           stays (D8)",
    check,
};

fn check(index: &Index<'_>) -> (u64, Result<(), Verdict>) {
    let mut last_write: BTreeMap<(&str, &str), &Row<'_>> = BTreeMap::new();
    // The last admitted attempt of each read: a resent read runs again.
    let mut reads: BTreeMap<OpId, &Row<'_>> = BTreeMap::new();
    let mut judged = 0;
    for row in &index.rows {
        if !row.is_write() {
            if let Some(op) = row.op.filter(|_| row.row.result == RowResult::Admitted) {
                reads.insert(op, row);
            }
            continue;
        }
        if !row.row.effect {
            continue;
        }
        let before = last_write.insert((&row.row.domain, &row.row.key), row);
        let Some(read) = base_of(index, row).and_then(|base| reads.get(&base)) else { continue };
        judged += 1;
        if let Some(between) = before.filter(|b| b.seq > read.seq && b.op != row.op) {
            let message = format!(
                "lost update of {:?}: another write came between the read and the write based on it",
                row.row.key
            );
            return (judged, Err(violation(message, [read.seq, between.seq, row.seq])));
        }
    }
    (judged, last_write_stays(index, &last_write))
}

fn base_of(index: &Index<'_>, row: &Row<'_>) -> Option<OpId> {
    match index.ops.get(&row.op?)?.f {
        Function::Write { based_on, .. } => *based_on,
        _ => None,
    }
}

/// The final read of a key answers the value of the last write that had its effect.
fn last_write_stays(
    index: &Index<'_>,
    last_write: &BTreeMap<(&str, &str), &Row<'_>>,
) -> Result<(), Verdict> {
    for op in index.ops.values() {
        let (Function::FinalRead { domain, key }, Some(Outcome::Ok(Reply::Value(value)))) =
            (op.f, op.outcome)
        else {
            continue;
        };
        let last = last_write.get(&(domain.as_str(), key.as_str()));
        if last.and_then(|row| row.row.value.as_ref()) != value.as_ref() {
            let message = format!("the final value of {key:?} is not the one written last");
            return Err(violation(message, op.returned.into_iter().chain(last.map(|row| row.seq))));
        }
    }
    Ok(())
}
