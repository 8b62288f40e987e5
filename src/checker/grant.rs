//! Grant validity, release validity, no premature token, retired incarnations (D6).

use std::collections::BTreeMap;

use super::{Checker, Holding, Index, Verdict, violation};
use crate::history::Function;

pub(super) const GRANT_VALIDITY: Checker = Checker {
    name: "grant_validity",
    help: "who is told that it holds the lock owns it; who is told that it released it does not; \
           no token is used before it is owned; no released incarnation is granted again (D6)",
    check,
};

fn check(index: &Index<'_>) -> (u64, Result<(), Verdict>) {
    let acquired = index.holdings.values().filter(|holding| holding.acquired.is_some()).count();
    let result = index
        .holdings
        .values()
        .try_for_each(|holding| granted(index, holding))
        .and_then(|()| released(index))
        .and_then(|()| not_premature(index))
        .and_then(|()| not_retired(index));
    (acquired as u64, result)
}

/// At some point between the invocation of an acquire and its ok, its incarnation was the owner.
fn granted(index: &Index<'_>, holding: &Holding) -> Result<(), Verdict> {
    let Some(acquired) = holding.acquired else { return Ok(()) };
    let invoke = index.ops[&holding.acquire].invoke;
    let Some(incarnation) = holding.incarnation else {
        let message =
            format!("{} was told that it holds the lock; its key never existed", holding.id);
        return Err(violation(message, [acquired]));
    };
    let owned = index.tenure_of(incarnation).is_some_and(|tenure| {
        tenure.began < acquired && tenure.ended.is_none_or(|(ended, _)| invoke < ended)
    });
    if owned {
        return Ok(());
    }
    let life = &index.incarnations[incarnation];
    let message =
        format!("{} was told that it holds the lock while {} did not own it", holding.id, life.key);
    let deleted = life.deleted.map(|(deleted, _)| deleted);
    Err(violation(message, [invoke, acquired, life.created].into_iter().chain(deleted)))
}

/// After an unlock that was said to be done, the incarnation is gone.
fn released(index: &Index<'_>) -> Result<(), Verdict> {
    for op in index.ops.values().filter(|op| op.is_ok()) {
        let (Function::Unlock { .. }, Some(returned), Some(holding)) =
            (op.f, op.returned, op.holding)
        else {
            continue;
        };
        let Some(incarnation) = index.holdings.get(&holding).and_then(|h| h.incarnation) else {
            continue;
        };
        let life = &index.incarnations[incarnation];
        if life.deleted.is_none_or(|(deleted, _)| deleted > returned) {
            let message = format!(
                "{holding} was told that it released the lock; {} was still there",
                life.key
            );
            return Err(violation(message, [life.created, op.invoke, returned]));
        }
    }
    Ok(())
}

/// No operation carries a token before the token's incarnation became the owner.
fn not_premature(index: &Index<'_>) -> Result<(), Verdict> {
    for row in index.rows.iter().filter(|row| row.row.token.is_some()) {
        let (Some(incarnation), Some(op)) = (row.incarnation, row.op) else { continue };
        let Some(op) = index.ops.get(&op) else { continue };
        let life = &index.incarnations[incarnation];
        let began = index.tenure_of(incarnation).map(|tenure| tenure.began);
        if began.is_none_or(|began| op.invoke < began) {
            let message = format!("a token of {} was used before it owned the lock", life.key);
            return Err(violation(message, [life.created, op.invoke].into_iter().chain(began)));
        }
    }
    Ok(())
}

/// No acquire returns an incarnation whose unlock was invoked before.
fn not_retired(index: &Index<'_>) -> Result<(), Verdict> {
    let mut retired: BTreeMap<usize, u64> = BTreeMap::new();
    for holding in index.holdings.values() {
        if let (Some(incarnation), Some(unlock)) = (holding.incarnation, holding.unlock_invoked) {
            let first = retired.entry(incarnation).or_insert(unlock);
            *first = unlock.min(*first);
        }
    }
    for holding in index.holdings.values() {
        let (Some(incarnation), Some(acquired)) = (holding.incarnation, holding.acquired) else {
            continue;
        };
        if let Some(unlock) = retired.get(&incarnation).filter(|unlock| **unlock < acquired) {
            let life = &index.incarnations[incarnation];
            let message =
                format!("{} was granted {} after its release had begun", holding.id, life.key);
            return Err(violation(message, [life.created, *unlock, acquired]));
        }
    }
    Ok(())
}
