//! D6 and the tenures of D3 a second time: who owns a lock is looked up anew at every event, an incarnation is a key and
//! its create revision, and every acquire is compared with every other.

use std::collections::BTreeSet;

use leasehold::history::{
    ApplyRow, Cause, Event, EventKind, Function, History, HoldingId, KeyChange, NodeName, OpId, Outcome,
    Reply, RowResult,
};

/// A key and its create revision.
type Incarnation<'h> = (&'h str, i64);

/// A broken rule and the event at which it is.
type Broken = BTreeSet<(&'static str, u64)>;

/// An acquire.
struct Acquire<'h> {
    node: NodeName,
    holding: Option<HoldingId>,
    lock: &'h str,
    invoke: u64,
    /// `u64::MAX` if it never returned.
    end: u64,
    /// The owner key and the token that it answered.
    answer: Option<(&'h str, i64)>,
}

fn acquires(history: &History) -> Vec<Acquire<'_>> {
    let asked = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Invoke {
            op,
            holding,
            f: Function::Lock { name } | Function::TryLock { name },
        } => Some((event, *op, *holding, name.as_str())),
        _ => None,
    });
    let whole = asked.map(|(event, op, holding, lock)| {
        let end = returned(history, op);
        let answer = end.and_then(|(_, outcome)| match outcome {
            Outcome::Ok(Reply::Acquired { key, token }) => Some((key.as_str(), *token)),
            _ => None,
        });
        let end = end.map_or(u64::MAX, |(seq, _)| seq);
        Acquire { node: event.node, holding, lock, invoke: event.seq, end, answer }
    });
    whole.collect()
}

fn returned(history: &History, op: OpId) -> Option<(u64, &Outcome)> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Return { op: of, outcome } if *of == op => Some((event.seq, outcome)),
        _ => None,
    })
}

/// The acquire of a holding, as it is known at an event.
fn acquire_of<'a, 'h>(
    acquires: &'a [Acquire<'h>],
    holding: Option<HoldingId>,
    seq: u64,
) -> Option<&'a Acquire<'h>> {
    holding?;
    acquires.iter().find(|acquire| acquire.holding == holding && acquire.invoke < seq)
}

/// The lock in whose queue a key stands.
fn lock_of(key: &str) -> Option<&str> {
    let (lock, lease) = key.rsplit_once('/')?;
    let hex = !lease.is_empty() && lease.chars().all(|digit| digit.is_ascii_hexdigit());
    hex.then_some(lock)
}

/// The live keys of a lock's queue after every commit up to an event.
fn queue<'h>(history: &'h History, lock: &str, upto: u64) -> Vec<Incarnation<'h>> {
    let mut queue: Vec<Incarnation<'h>> = Vec::new();
    for event in history.events.iter().filter(|event| event.seq <= upto) {
        let EventKind::Commit(commit) = &event.kind else { continue };
        for change in commit.events.iter().filter(|change| lock_of(&change.key) == Some(lock)) {
            let life = (change.key.as_str(), change.create_revision);
            let put = change.change == KeyChange::Put;
            if !put || !queue.contains(&life) {
                queue.retain(|(key, _)| *key != change.key);
                queue.extend(put.then_some(life));
            }
        }
    }
    queue
}

/// The owner after every event.
fn owners<'h>(history: &'h History, lock: &str) -> Vec<Option<Incarnation<'h>>> {
    let owner = |event: &Event| {
        queue(history, lock, event.seq).into_iter().min_by_key(|(_, revision)| *revision)
    };
    history.events.iter().map(owner).collect()
}

/// Every creation of a key of a lock's queue, in order.
fn creations<'h>(history: &'h History, lock: &str) -> Vec<(u64, Incarnation<'h>)> {
    let mut creations = Vec::new();
    for event in history.events.iter().filter(|e| matches!(e.kind, EventKind::Commit(_))) {
        let before = match event.seq.checked_sub(1) {
            Some(before) => queue(history, lock, before),
            None => Vec::new(),
        };
        let after = queue(history, lock, event.seq);
        let new = after.into_iter().filter(|life| !before.contains(life));
        creations.extend(new.map(|life| (event.seq, life)));
    }
    creations
}

fn lease(history: &History, node: NodeName, seq: u64) -> Option<i64> {
    history.events.iter().rev().filter(|event| event.seq < seq).find_map(|event| match event.kind {
        EventKind::Return { outcome: Outcome::Ok(Reply::Session { lease, .. }), .. } => {
            (event.node == node).then_some(lease)
        }
        _ => None,
    })
}

/// The incarnation under which an acquire's operations are issued (D2): the last of the handle's
/// key before it returned. One that gave no key has the key of its session, if that lived then.
fn incarnation<'h>(history: &'h History, acquire: &Acquire<'h>) -> Option<Incarnation<'h>> {
    let key = match acquire.answer {
        Some((key, _)) => key.to_owned(),
        None => format!("{}/{:x}", acquire.lock, lease(history, acquire.node, acquire.invoke)?),
    };
    let lock = lock_of(&key)?;
    let creations = creations(history, lock).into_iter();
    let mut of_key = creations.filter(|(seq, life)| life.0 == key && *seq < acquire.end);
    let (created, life) = of_key.next_back()?;
    let lived = created > acquire.invoke || queue(history, lock, acquire.invoke).contains(&life);
    (acquire.answer.is_some() || lived).then_some(life)
}

/// How many acquires answered ok, and what is broken about them and the tokens that they gave.
pub fn grant_validity(history: &History) -> (u64, Broken) {
    let acquires = acquires(history);
    let (mut judged, mut broken) = (0, Broken::new());
    for acquire in acquires.iter().filter(|acquire| acquire.answer.is_some()) {
        judged += 1;
        let own = incarnation(history, acquire);
        let owners = owners(history, acquire.lock);
        let during = acquire.invoke as usize..=acquire.end as usize;
        if own.is_none() || !owners[during].contains(&own) {
            broken.insert(("grant", acquire.end));
        }
        for event in history.events.iter().filter(|event| event.seq < acquire.end) {
            let EventKind::Invoke { holding, f: Function::Unlock { .. }, .. } = &event.kind else {
                continue;
            };
            let given_back = acquire_of(&acquires, *holding, event.seq);
            let given_back = given_back.and_then(|other| incarnation(history, other));
            if given_back.is_some() && given_back == own {
                broken.insert(("retired", acquire.end));
            }
        }
    }
    for event in &history.events {
        let EventKind::Invoke { holding, f, .. } = &event.kind else { continue };
        let at_storage =
            matches!(f, Function::Enter { .. } | Function::Read { .. } | Function::Write { .. });
        let Some(acquire) = acquire_of(&acquires, *holding, event.seq) else { continue };
        let Some(own) = incarnation(history, acquire).filter(|_| at_storage) else { continue };
        let owners = owners(history, lock_of(own.0).unwrap_or_default());
        if !owners[..event.seq as usize].contains(&Some(own)) {
            broken.insert(("premature-token", event.seq));
        }
    }
    (judged, broken)
}

/// How many unlocks of a known incarnation answered ok, and which of them are not true.
pub fn release_validity(history: &History) -> (u64, Broken) {
    let acquires = acquires(history);
    let (mut judged, mut broken) = (0, Broken::new());
    for event in &history.events {
        let EventKind::Invoke { op, holding, f: Function::Unlock { .. } } = &event.kind else {
            continue;
        };
        let Some((ok, Outcome::Ok(_))) = returned(history, *op) else { continue };
        let acquire = acquire_of(&acquires, *holding, event.seq);
        let Some(own) = acquire.and_then(|acquire| incarnation(history, acquire)) else { continue };
        judged += 1;
        let there =
            |seq: u64| queue(history, lock_of(own.0).unwrap_or_default(), seq).contains(&own);
        let for_good = |from: u64| !(from..history.events.len() as u64).any(there);
        if !(event.seq..=ok).any(for_good) {
            broken.insert(("release", ok));
        }
    }
    (judged, broken)
}

/// How many acquires answered ok, and the transactions that took the key of one whose holder still
/// believed (D3); none is judged where no transaction is known as such.
pub fn tenure_kept(history: &History) -> (u64, Broken) {
    let txn = |event: &Event| match &event.kind {
        EventKind::Commit(commit) => commit.cause == Cause::Txn,
        _ => false,
    };
    let (mut judged, mut broken) = (0, Broken::new());
    if !history.events.iter().any(txn) {
        return (judged, broken);
    }
    let acquires = acquires(history);
    for acquire in acquires.iter().filter(|acquire| acquire.answer.is_some()) {
        judged += 1;
        let Some(own) = incarnation(history, acquire) else { continue };
        let there = |seq| queue(history, lock_of(own.0).unwrap_or_default(), seq).contains(&own);
        let after = history.events.iter().filter(|event| event.seq > acquire.end);
        let believed = after.take_while(|event| !ends_belief(event, acquire));
        let taken = believed.filter(|event| txn(event));
        let taken = taken.filter(|event| there(event.seq - 1) && !there(event.seq));
        broken.extend(taken.map(|event| ("taken", event.seq)));
    }
    (judged, broken)
}

fn ends_belief(event: &Event, acquire: &Acquire<'_>) -> bool {
    match &event.kind {
        EventKind::Invoke { holding, f: Function::Unlock { .. }, .. } => {
            *holding == acquire.holding
        }
        EventKind::Invoke { f: Function::CloseSession, .. } | EventKind::Killed => {
            event.node == acquire.node
        }
        EventKind::LossNoticed { holding } => Some(*holding) == acquire.holding,
        _ => false,
    }
}

fn rows(history: &History) -> impl Iterator<Item = (u64, &ApplyRow)> {
    history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Apply(row) => Some((event.seq, row)),
        _ => None,
    })
}

/// The acquire under which a row's operation was issued.
fn acquire_of_row<'a, 'h>(
    history: &History,
    acquires: &'a [Acquire<'h>],
    row: &ApplyRow,
) -> Option<&'a Acquire<'h>> {
    history.events.iter().find_map(|event| match event.kind {
        EventKind::Invoke { op, holding, .. } if Some(op.0) == row.tag => {
            acquire_of(acquires, holding, event.seq)
        }
        _ => None,
    })
}

/// The tokens that went over the wire, each with its incarnation.
fn wire_tokens<'h>(history: &'h History, acquires: &[Acquire<'h>]) -> Vec<(Incarnation<'h>, i64)> {
    let told = acquires
        .iter()
        .filter_map(|acquire| Some((incarnation(history, acquire)?, acquire.answer?.1)));
    let at_storage = rows(history).filter(|(_, row)| row.result != RowResult::Rejected);
    let at_storage = at_storage.filter_map(|(_, row)| {
        let acquire = acquire_of_row(history, acquires, row)?;
        Some((incarnation(history, acquire)?, row.token?))
    });
    told.chain(at_storage).collect()
}

/// How many tenures there were, and which rules of their tokens are broken.
pub fn token_order(history: &History) -> (u64, BTreeSet<&'static str>) {
    let acquires = acquires(history);
    let tokens = wire_tokens(history, &acquires);
    let of = |own: Incarnation<'_>| -> Vec<i64> {
        tokens.iter().filter(|(of, _)| *of == own).map(|(_, token)| *token).collect()
    };
    let (mut judged, mut broken) = (0, BTreeSet::new());
    let locks: BTreeSet<&str> = history.events.iter().filter_map(named).collect();
    for lock in locks {
        let created: Vec<i64> = creations(history, lock).iter().map(|(_, life)| life.1).collect();
        for (at, later) in created.iter().enumerate() {
            if created[..at].iter().any(|earlier| earlier >= later) {
                broken.insert("create-revision");
            }
        }
        let mut tenures: Vec<Incarnation<'_>> = Vec::new();
        for owner in owners(history, lock).into_iter().flatten() {
            if !tenures.contains(&owner) {
                tenures.push(owner);
            }
        }
        judged += tenures.len() as u64;
        for (at, later) in tenures.iter().enumerate() {
            let used = of(*later);
            if used.iter().any(|token| *token != used[0]) {
                broken.insert("one-token");
            }
            let before: Vec<i64> = tenures[..at].iter().flat_map(|old| of(*old)).collect();
            if used.iter().any(|token| before.iter().any(|old| old >= token)) {
                broken.insert("order");
            }
        }
    }
    if rows(history).any(|(seq, row)| beyond_committed(history, &acquires, seq, row)) {
        broken.insert("beyond-committed");
    }
    (judged, broken)
}

fn named(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::Invoke {
            f: Function::Lock { name } | Function::TryLock { name } | Function::Unlock { name },
            ..
        } => Some(name),
        _ => None,
    }
}

/// Whether an admitted token is beyond what was committed in its lock's queue by then, or in any
/// queue if nobody knows whose it is.
fn beyond_committed(history: &History, acquires: &[Acquire<'_>], seq: u64, row: &ApplyRow) -> bool {
    let Some(token) = row.token.filter(|_| row.result == RowResult::Admitted) else { return false };
    let lock = acquire_of_row(history, acquires, row).map(|acquire| acquire.lock);
    !history.events.iter().filter(|event| event.seq < seq).any(|event| match &event.kind {
        EventKind::Commit(commit) => commit.events.iter().any(|change| {
            let of = lock_of(&change.key);
            let counts = of.is_some() && (lock.is_none() || lock == of);
            counts && change.change == KeyChange::Put && change.create_revision >= token
        }),
        _ => false,
    })
}
