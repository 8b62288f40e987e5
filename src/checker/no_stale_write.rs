//! No stale write (D4), and ranks of admitted operations never fall (D5).
//!
//! The fence's two duties: nothing of an earlier tenure takes effect once the storage has admitted
//! an operation of a later one, and the rightful owner is not locked out.

use super::{
    Checker, Finding, Violation,
    assumption::Assumption,
    class::{Class, Classification, superseder},
    index::{Index, Row},
};

const NAME: &str = "no-stale-write";

/// Judges every write with a token's rank; reports broken writes before broken reads.
#[derive(Debug)]
pub struct NoStaleWrite;

impl Checker for NoStaleWrite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "no superseded write takes effect, and no owner's write is refused by the fence"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::OneLineage, Assumption::OneDomainALock, Assumption::RealTimeOrder]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let classification = index.classification();
        let violation = first_violation(index, classification);
        let judged = classification.classes.total();
        Finding::of(NAME, judged, violation, "no write of a holding reached the fence")
    }
}

fn first_violation(index: &Index<'_>, classification: &Classification) -> Option<Violation> {
    let first = |class| {
        let write = classification.writes.iter().find(|write| write.class == class)?;
        Some(&index.rows[write.row])
    };
    if let Some(row) = first(Class::StaleAccepted) {
        return Some(after_newer(index, row, Class::StaleAccepted.name(), "had its effect"));
    }
    if let Some(row) = first(Class::FreshRefused) {
        return Some(fresh_refused(index, row));
    }
    let row = &index.rows[*classification.falls.first()?];
    Some(after_newer(index, row, "rank-fell", "was admitted"))
}

fn after_newer(index: &Index<'_>, row: &Row<'_>, rule: &'static str, fate: &str) -> Violation {
    let newer = superseder(index, row);
    let mut events = vec![row.seq];
    events.extend(newer.map(|newer| newer.seq));
    for row in newer.into_iter().chain([row]) {
        events.extend(row.incarnation.map(|i| index.incarnations[i].created));
    }
    let by = newer.map_or_else(String::new, |newer| describe(index, newer));
    let message = format!("{} {fate} after {by} was admitted", describe(index, row));
    Violation::new(NAME, rule, message, events)
}

fn fresh_refused(index: &Index<'_>, row: &Row<'_>) -> Violation {
    let since = row.incarnation.and_then(|i| index.incarnations[i].owner_since);
    let mut events = vec![row.seq];
    events.extend(since);
    let message = format!(
        "{} was refused although its holder owned the lock and nothing newer had been admitted",
        describe(index, row)
    );
    Violation::new(NAME, Class::FreshRefused.name(), message, events)
}

fn describe(index: &Index<'_>, row: &Row<'_>) -> String {
    let by = row.holding.map_or_else(|| "nobody".to_owned(), |h| index.describe_holding(h));
    let kind = if row.is_write() { "the write" } else { "the read" };
    match (&row.row.value, row.is_write()) {
        (Some(value), true) => format!("{kind} of {value:?} to {:?} by {by}", row.row.key),
        _ => format!("{kind} of {:?} by {by}", row.row.key),
    }
}
