//! Token order (D6): one token a tenure, rising from tenure to tenure, never ahead of the store.

use std::collections::BTreeMap;

use super::{Checker, Index, Row, Verdict, violation};
use crate::history::{EventKind, KeyChange, RowResult};

pub(super) const TOKEN_ORDER: Checker = Checker {
    name: "token_order",
    help: "create revisions rise; a tenure has one token; later tenures have higher ones (D6)",
    check,
};

fn check(index: &Index<'_>) -> (u64, Result<(), Verdict>) {
    let carrying = index.rows.iter().filter(|row| row.row.token.is_some() && row.rank.is_some());
    let result =
        revisions_rise(index).and_then(|()| one_token_each(index)).and_then(|()| not_ahead(index));
    (carrying.count() as u64, result)
}

/// (1) Create revisions rise with the commits, over all incarnations of a queue.
fn revisions_rise(index: &Index<'_>) -> Result<(), Verdict> {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, life) in index.incarnations.iter().enumerate() {
        let lock = life.key.rsplit_once('/').map_or(life.key, |(lock, _)| lock);
        if let Some(before) = last.insert(lock, at).map(|before| &index.incarnations[before])
            && before.create_revision >= life.create_revision
        {
            let message = format!(
                "create revision {} of {} does not rise above {} of {}",
                life.create_revision, life.key, before.create_revision, before.key
            );
            return Err(violation(message, [before.created, life.created]));
        }
    }
    Ok(())
}

/// (2) and (3): all operations of a tenure carry one token; each tenure's is above the earlier ones'.
fn one_token_each(index: &Index<'_>) -> Result<(), Verdict> {
    // By incarnation, which is the order of tenures, the first row that carried a token.
    let mut tokens: BTreeMap<usize, &Row<'_>> = BTreeMap::new();
    for row in &index.rows {
        let (Some(incarnation), Some(token)) = (row.incarnation, row.row.token) else { continue };
        let first = *tokens.entry(incarnation).or_insert(row);
        if first.row.token != Some(token) {
            let message = format!(
                "one tenure carries two tokens: {} and {token}",
                first.row.token.unwrap_or_default()
            );
            return Err(violation(message, [first.seq, row.seq]));
        }
    }
    let mut before: Option<(usize, &Row<'_>)> = None;
    for (incarnation, row) in tokens {
        if let Some((earlier, other)) = before
            && other.row.token >= row.row.token
        {
            let message = format!(
                "the token {} of a later tenure is not above {} of an earlier one",
                row.row.token.unwrap_or_default(),
                other.row.token.unwrap_or_default()
            );
            let commits = [earlier, incarnation].map(|i| index.incarnations[i].created);
            return Err(violation(message, [other.seq, row.seq].into_iter().chain(commits)));
        }
        before = Some((incarnation, row));
    }
    Ok(())
}

/// (4) No admitted token is above the highest create revision that etcd has committed.
fn not_ahead(index: &Index<'_>) -> Result<(), Verdict> {
    let mut rows = index.rows.iter().peekable();
    let mut highest = 0;
    for event in &index.history.events {
        if let EventKind::Commit(commit) = &event.kind {
            let puts = commit.events.iter().filter(|change| change.change == KeyChange::Put);
            highest = puts.map(|change| change.create_revision).fold(highest, i64::max);
        }
        while let Some(row) = rows.next_if(|row| row.seq <= event.seq) {
            let admitted = row.row.result == RowResult::Admitted;
            if let Some(token) = row.row.token.filter(|token| admitted && *token > highest) {
                let message = format!(
                    "token {token} was admitted; etcd's highest create revision was {highest}"
                );
                return Err(violation(message, [row.seq]));
            }
        }
    }
    Ok(())
}
