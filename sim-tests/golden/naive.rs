//! D4 and D5 a second time, as slow as the text: each definition is a loop over the whole history.
//!
//! Shares nothing with the checkers but the history's types and the names of the classes.

use leasehold::{
    checker::Class,
    history::{
        ApplyRow, Boundary, EventKind, Function, History, HoldingId, KeyChange, NodeName, OpId,
        OpKind, Outcome, Reply, RowResult,
    },
};

/// A key and the revision of its creation.
type Incarnation = (String, i64);

/// The classed writes as (`seq`, class, superseded by reads only), and the `seq`s of the falls.
pub fn classify(history: &History) -> (Vec<(u64, Class, bool)>, Vec<u64>) {
    let mut rows: Vec<(u64, &ApplyRow)> = history
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Apply(row) => Some((event.seq, row)),
            _ => None,
        })
        .collect();
    rows.sort_by_key(|(_, row)| row.index);
    let (mut classes, mut falls) = (Vec::new(), Vec::new());
    for &(seq, row) in &rows {
        let Some((lock, incarnation)) = incarnation_of(history, row) else { continue };
        let newer: Vec<&ApplyRow> = rows
            .iter()
            .map(|(_, other)| *other)
            .filter(|other| {
                let rank = incarnation_of(history, other).map(|(_, (_, created))| created);
                other.domain == row.domain
                    && other.index < row.index
                    && other.result == RowResult::Admitted
                    && other.token.is_some()
                    && rank > Some(incarnation.1)
                    && (other.boot == row.boot || survives(history, &rows, other))
            })
            .collect();
        if row.result == RowResult::Admitted && row.token.is_some() && !newer.is_empty() {
            falls.push(seq);
        }
        if row.kind == OpKind::Read {
            continue;
        }
        let effect = effective(history, &rows, row);
        let accepted = match row.result {
            RowResult::Admitted if effect => true,
            RowResult::Refused => effect,
            _ => continue,
        };
        let current = owner_at(history, &lock, seq) == Some(incarnation);
        let class = match (newer.is_empty(), accepted, current) {
            (false, true, _) => Class::StaleAccepted,
            (false, false, _) => Class::StaleRefused,
            (true, true, true) => Class::FreshAccepted,
            (true, false, true) => Class::FreshRefused,
            (true, true, false) => Class::LateAccepted,
            (true, false, false) => Class::LateRefused,
        };
        let reads_only = !newer.is_empty() && newer.iter().all(|n| n.kind == OpKind::Read);
        classes.push((seq, class, reads_only));
    }
    (classes, falls)
}

fn invocation(
    history: &History,
    op: OpId,
) -> Option<(u64, NodeName, Option<HoldingId>, &Function)> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Invoke { op: id, holding, f } if *id == op => {
            Some((event.seq, event.node, *holding, f))
        }
        _ => None,
    })
}

fn outcome(history: &History, op: OpId) -> Option<(u64, &Outcome)> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Return { op: id, outcome } if *id == op => Some((event.seq, outcome)),
        _ => None,
    })
}

/// The lock and the incarnation under which the row's operation was issued.
fn incarnation_of(history: &History, row: &ApplyRow) -> Option<(String, Incarnation)> {
    let (_, _, holding, _) = invocation(history, OpId(row.tag?))?;
    let (acquire, name) = history.events.iter().find_map(|event| match &event.kind {
        EventKind::Invoke { op, holding: of, f: Function::Lock { name } } if *of == holding => {
            Some((*op, name.clone()))
        }
        _ => None,
    })?;
    let (seq, Outcome::Ok(Reply::Acquired { key, .. })) = outcome(history, acquire)? else {
        return None;
    };
    let mut last = None;
    for event in history.events.iter().filter(|event| event.seq < seq) {
        let EventKind::Commit(commit) = &event.kind else { continue };
        for change in commit.events.iter().filter(|change| change.key == *key) {
            if change.change == KeyChange::Put {
                last = Some(change.create_revision);
            }
        }
    }
    Some((name, (key.clone(), last?)))
}

/// The owner after every commit up to an event.
fn owner_at(history: &History, lock: &str, seq: u64) -> Option<Incarnation> {
    let mut queue: Vec<Incarnation> = Vec::new();
    for event in history.events.iter().filter(|event| event.seq <= seq) {
        let EventKind::Commit(commit) = &event.kind else { continue };
        for change in &commit.events {
            let child = change.key.strip_prefix(lock).and_then(|rest| rest.strip_prefix('/'));
            if child.is_none_or(|child| child.contains('/')) {
                continue;
            }
            queue.retain(|(key, _)| *key != change.key);
            if change.change == KeyChange::Put {
                queue.push((change.key.clone(), change.create_revision));
            }
        }
    }
    queue.into_iter().min_by_key(|(_, created)| *created)
}

fn acknowledged(history: &History, row: &ApplyRow) -> bool {
    let outcome = row.tag.and_then(|tag| outcome(history, OpId(tag)));
    matches!(outcome, Some((_, Outcome::Ok(_))))
}

fn admitted_of_same_op(rows: &[(u64, &ApplyRow)], row: &ApplyRow) -> usize {
    let same = |other: &&ApplyRow| row.tag.is_some() && other.tag == row.tag;
    let rows = rows.iter().map(|(_, other)| *other).filter(same);
    rows.filter(|other| other.result == RowResult::Admitted).count()
}

fn read_by_row(other: &ApplyRow, row: &ApplyRow) -> bool {
    let read = other.kind == OpKind::Read && other.result == RowResult::Admitted;
    read && row.value.is_some() && other.value == row.value
}

pub fn effective(history: &History, rows: &[(u64, &ApplyRow)], row: &ApplyRow) -> bool {
    let told = history.events.iter().any(|event| match &event.kind {
        EventKind::Return { outcome: Outcome::Ok(Reply::Value(value)), .. } => *value == row.value,
        _ => false,
    });
    let read = told || rows.iter().any(|(_, other)| read_by_row(other, row));
    let seen = acknowledged(history, row) || row.value.is_some() && read;
    match row.result {
        _ if row.effect => true,
        RowResult::Admitted => seen,
        RowResult::Refused | RowResult::Rejected => seen && admitted_of_same_op(rows, row) == 0,
        RowResult::Replayed => false,
    }
}

pub fn survives(history: &History, rows: &[(u64, &ApplyRow)], row: &ApplyRow) -> bool {
    let answered = history.events.iter().any(|event| {
        let answer = Boundary::Answer { boot: row.boot, request: row.request };
        event.kind == EventKind::Storage(answer)
    });
    let recovered = row.kind == OpKind::Write
        && admitted_of_same_op(rows, row) == 1
        && rows.iter().any(|(_, other)| other.boot > row.boot && read_by_row(other, row));
    let divided = rows.iter().any(|(_, other)| other.tag == row.tag && other.boot != row.boot);
    answered || acknowledged(history, row) && !divided || recovered
}
