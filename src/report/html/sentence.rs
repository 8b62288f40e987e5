//! An event of the story as a sentence: who did what, and what it meant for the lock.
//!
//! Only the kinds that tell of the lock have sentences of their own; the rest is said in the words
//! of the text timeline.

use std::collections::BTreeMap;

use crate::{
    checker::index::{Incarnation, Row},
    history::{Cause, Commit, Event, EventKind, OpKind, Outcome, Reply, RowResult},
};

use super::scene::Scene;

/// What the event says. `holders` is the holding of each incarnation.
pub(super) fn sentence(
    scene: &Scene<'_>,
    holders: &BTreeMap<usize, usize>,
    event: &Event,
) -> String {
    let told = match &event.kind {
        EventKind::Commit(commit) => committed(scene, holders, event.seq, commit),
        EventKind::Apply(_) => {
            scene.index.rows.iter().find(|row| row.seq == event.seq).map(|row| applied(scene, row))
        }
        EventKind::Return { op, outcome: Outcome::Ok(Reply::Acquired { token, .. }) } => {
            let holding = scene.index.op(*op).and_then(|op| scene.index.ops[op].holding);
            holding.map(|holding| {
                let lock = scene.index.locks[scene.index.holdings[holding].lock].name;
                let who = scene.index.describe_holding(holding);
                format!("{who} is told that it holds {lock}, with token {token}")
            })
        }
        EventKind::LossNoticed { holding } => {
            Some(format!("{} notices that its lock is lost ({holding})", event.node))
        }
        _ => None,
    };
    told.unwrap_or_else(|| scene.words(event))
}

fn committed(
    scene: &Scene<'_>,
    holders: &BTreeMap<usize, usize>,
    seq: u64,
    commit: &Commit,
) -> Option<String> {
    let index = &scene.index;
    let who = |at: usize| match holders.get(&at) {
        Some(holding) => index.describe_holding(*holding),
        None => format!("{} (rank {})", index.incarnations[at].key, rank(&index.incarnations[at])),
    };
    let mut told = Vec::new();
    for (at, incarnation) in index.incarnations.iter().enumerate() {
        let owner = index.owner_at(incarnation.lock, seq);
        let lock = index.locks[incarnation.lock].name;
        if incarnation.created == seq {
            let place = match owner {
                Some(owner) if owner == at => "and owns it at once".to_owned(),
                Some(owner) => format!("behind {}", who(owner)),
                None => "which nobody owns".to_owned(),
            };
            told.push(format!("{} enters the queue of {lock}, {place}", who(at)));
        }
        if incarnation.ended.is_some_and(|end| end.seq == seq) {
            let why = match commit.cause {
                Cause::Expiry(_) => "its lease ran out",
                Cause::Revoke(_) => "its lease was revoked",
                Cause::Delete | Cause::Txn => "its key was deleted",
                Cause::Put | Cause::Restore => "its key was replaced",
            };
            let next = match owner {
                Some(owner) => format!("{} owns it now", who(owner)),
                None => "nobody owns it now".to_owned(),
            };
            told.push(format!("{} loses its place in {lock}: {why}; {next}", who(at)));
        }
    }
    (!told.is_empty()).then(|| told.join("; "))
}

fn rank(incarnation: &Incarnation<'_>) -> i64 {
    incarnation.create_revision
}

fn applied(scene: &Scene<'_>, row: &Row<'_>) -> String {
    let result = match row.row.result {
        RowResult::Admitted => "admits",
        RowResult::Refused => "refuses",
        RowResult::Replayed => "answers again",
        RowResult::Rejected => "rejects",
    };
    let what = match (row.row.kind, row.row.value.as_deref()) {
        (OpKind::Read, _) => format!("the read of {}", row.row.key),
        (OpKind::Write, value) => {
            format!("the write of {:?} to {}", value.unwrap_or_default(), row.row.key)
        }
    };
    let by = match (row.holding, row.op) {
        (Some(holding), _) => scene.index.describe_holding(holding),
        (None, Some(op)) => scene.index.ops[op].node.to_string(),
        (None, None) => "nobody known".to_owned(),
    };
    let token = row.row.token.map_or_else(|| "no token".to_owned(), |t| format!("token {t}"));
    format!("the storage {result} {what} by {by}, {token}")
}
