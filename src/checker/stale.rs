//! No stale write: the classes of D4, and the one line of D5.

use std::collections::BTreeMap;

use super::{Checker, Class, ClassedWrite, Index, Row, Verdict, classify, violation};
use crate::history::RowResult;

pub(super) const NO_STALE_WRITE: Checker = Checker {
    name: "no_stale_write",
    help: "no superseded write takes effect, and no rightful owner is refused (D4, D5)",
    check,
};

fn check(index: &Index<'_>) -> (u64, Result<(), Verdict>) {
    let classed = classify(index);
    let judged = classed.len() as u64;
    let bad = classed
        .iter()
        .find(|write| matches!(write.class, Class::StaleAccepted | Class::FreshRefused));
    let result = match bad {
        Some(write) => Err(explain(index, write)),
        None => ranks_never_fall(index),
    };
    (judged, result)
}

/// `seq` of the commit that gave a row its rank.
fn created(index: &Index<'_>, row: &Row<'_>) -> Option<u64> {
    row.incarnation.map(|incarnation| index.incarnations[incarnation].created)
}

fn explain(index: &Index<'_>, bad: &ClassedWrite<'_, '_>) -> Verdict {
    let write = bad.write;
    let what = format!("{}: the write of {:?}", bad.class, write.row.key);
    let rank = write.rank.unwrap_or_default();
    match bad.superseded_by {
        Some(newer) => {
            let message = format!(
                "{what} under rank {rank} took effect after an operation of rank {} was admitted",
                newer.rank.unwrap_or_default()
            );
            let commits = [created(index, newer), created(index, write)];
            violation(
                message,
                [newer.seq, write.seq].into_iter().chain(commits.into_iter().flatten()),
            )
        }
        None => {
            let message =
                format!("{what} under rank {rank} was refused though its holder owns the lock");
            let owner = write.incarnation.and_then(|incarnation| index.tenure_of(incarnation));
            violation(message, [write.seq].into_iter().chain(owner.map(|tenure| tenure.began)))
        }
    }
}

/// D5: the ranks of admitted operations that carry a token never fall, in the order of application.
fn ranks_never_fall(index: &Index<'_>) -> Result<(), Verdict> {
    let mut highest: BTreeMap<&str, &Row<'_>> = BTreeMap::new();
    for row in &index.rows {
        let admitted = row.row.result == RowResult::Admitted && row.row.token.is_some();
        let Some(rank) = row.rank.filter(|_| admitted) else { continue };
        let before = highest.entry(&row.row.domain).or_insert(row);
        if before.rank > Some(rank) {
            let message = format!(
                "an operation of rank {rank} was admitted after one of rank {}",
                before.rank.unwrap_or_default()
            );
            let commits = [created(index, before), created(index, row)];
            let events = [before.seq, row.seq].into_iter().chain(commits.into_iter().flatten());
            return Err(violation(message, events));
        }
        *before = row;
    }
    Ok(())
}
