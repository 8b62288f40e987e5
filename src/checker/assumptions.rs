//! What every other verdict rests on (D11). If one fails, the run is unknown, and it is named.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Index, Verdict};
use crate::history::{EventKind, FaultAction, Function, Phase};

pub(super) const ASSUMPTIONS: Checker = Checker {
    name: "assumptions",
    help: "the history is complete, values are unique, revisions rise, everything healed (D11)",
    check,
};

const ALL: [fn(&Index<'_>) -> Result<(), String>; 6] =
    [complete, values_are_unique, revisions_rise, one_domain_a_lock, log_respects_time, healed];

fn check(index: &Index<'_>) -> (u64, Result<(), Verdict>) {
    let failed = ALL.iter().find_map(|assumption| assumption(index).err());
    (ALL.len() as u64, failed.map_or(Ok(()), |what| Err(Verdict::Unknown(what))))
}

/// Every phase was entered and the final reads answered.
fn complete(index: &Index<'_>) -> Result<(), String> {
    let entered: BTreeSet<Phase> = index
        .history
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Phase(phase) => Some(phase),
            _ => None,
        })
        .collect();
    let phases = [Phase::Setup, Phase::Traffic, Phase::Heal, Phase::Settle, Phase::FinalReads];
    if let Some(missing) = phases.iter().find(|phase| !entered.contains(phase)) {
        return Err(format!("the history is not complete: phase {missing:?} is missing"));
    }
    let is_final = |f: &Function| matches!(f, Function::FinalRead { .. });
    let read = index.ops.values().any(|op| is_final(op.f) && op.is_ok());
    if read {
        Ok(())
    } else {
        Err("the history is not complete: clients did not settle, or no final read answered".into())
    }
}

/// No two write operations offer one value for one key.
fn values_are_unique(index: &Index<'_>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for op in index.ops.values() {
        if let Function::Write { domain, key, value, .. } = op.f
            && !seen.insert((domain, key, value))
        {
            return Err(format!("the value {value:?} was written to {key:?} by two operations"));
        }
    }
    Ok(())
}

/// Commits are numbered without gaps, and their revisions rise.
fn revisions_rise(index: &Index<'_>) -> Result<(), String> {
    let mut last = (0, 0);
    for event in &index.history.events {
        let EventKind::Commit(commit) = &event.kind else { continue };
        if commit.index != last.0 + 1 || commit.revision <= last.1 {
            return Err(format!(
                "more than one lineage: commit {} of revision {} follows commit {} of revision {}",
                commit.index, commit.revision, last.0, last.1
            ));
        }
        last = (commit.index, commit.revision);
    }
    Ok(())
}

/// All that is done under one lock is in one domain, and no two locks share one.
fn one_domain_a_lock(index: &Index<'_>) -> Result<(), String> {
    let mut domains: BTreeMap<&str, &str> = BTreeMap::new();
    for row in &index.rows {
        let Some(incarnation) = row.incarnation else { continue };
        let key = index.incarnations[incarnation].key;
        let lock = key.rsplit_once('/').map_or(key, |(lock, _)| lock);
        let known = domains.entry(&row.row.domain).or_insert(lock);
        if *known != lock {
            return Err(format!(
                "the locks {known:?} and {lock:?} share the domain {:?}",
                row.row.domain
            ));
        }
    }
    Ok(())
}

/// A row is applied after its request arrived and after the operation was invoked.
fn log_respects_time(index: &Index<'_>) -> Result<(), String> {
    for row in &index.rows {
        let invoked = row.op.and_then(|op| index.ops.get(&op)).map(|op| op.invoke);
        let before = row.arrival.max(invoked).unwrap_or(0);
        if before > row.seq || row.answer.is_some_and(|answer| answer < row.seq) {
            return Err(format!("the apply log's row {} is out of order", row.row.index));
        }
    }
    Ok(())
}

/// Every fault that began ended, and none began after the heal.
fn healed(index: &Index<'_>) -> Result<(), String> {
    let mut open = BTreeSet::new();
    let mut healed = false;
    for event in &index.history.events {
        match &event.kind {
            EventKind::Phase(Phase::Settle) => healed = true,
            EventKind::Fault { index, action: FaultAction::Begin } if healed => {
                return Err(format!("fault {index} began after the heal"));
            }
            EventKind::Fault { index, action: FaultAction::Begin } => {
                open.insert(*index);
            }
            EventKind::Fault { index, action: FaultAction::End } => {
                open.remove(index);
            }
            _ => {}
        }
    }
    match open.first() {
        Some(index) => Err(format!("fault {index} was never healed")),
        None => Ok(()),
    }
}
