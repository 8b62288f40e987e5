//! The class of each write (D4 of the semantics).
//!
//! A write is *superseded* if an operation of a higher rank was admitted in its domain before it,
//! and *current* if its incarnation is the owner when it is applied. Superseded and accepted is the
//! violation that fencing is for; neither superseded nor outdated and yet refused is the other one:
//! the rightful owner is locked out.

use std::{collections::BTreeMap, fmt, ops::AddAssign};

use super::{Index, Row};
use crate::history::{Outcome, RowResult};

/// The class of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Superseded, and it had its effect: a violation.
    StaleAccepted,
    /// Superseded and refused: what fencing is for.
    StaleRefused,
    /// The owner's, and it had its effect.
    FreshAccepted,
    /// The owner's, and refused: a violation.
    FreshRefused,
    /// Neither superseded nor the owner's, with effect: allowed, it is ordered before the tenure.
    LateAccepted,
    /// Neither superseded nor the owner's, and refused: allowed.
    LateRefused,
}

impl Class {
    /// All classes, in the order in which they are shown.
    pub const ALL: [Class; 6] = [
        Class::FreshAccepted,
        Class::StaleRefused,
        Class::LateAccepted,
        Class::LateRefused,
        Class::StaleAccepted,
        Class::FreshRefused,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Class::StaleAccepted => "stale-accepted",
            Class::StaleRefused => "stale-refused",
            Class::FreshAccepted => "fresh-accepted",
            Class::FreshRefused => "fresh-refused",
            Class::LateAccepted => "late-accepted",
            Class::LateRefused => "late-refused",
        })
    }
}

/// How many writes there are of each class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes(BTreeMap<Class, u64>);

impl Classes {
    /// The number of writes of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.0.get(&class).copied().unwrap_or(0)
    }

    /// The number of writes of all classes.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn add(&mut self, class: Class) {
        *self.0.entry(class).or_default() += 1;
    }
}

impl AddAssign<&Classes> for Classes {
    fn add_assign(&mut self, other: &Classes) {
        for (class, count) in &other.0 {
            *self.0.entry(*class).or_default() += count;
        }
    }
}

/// A write with its class.
#[derive(Debug, Clone, Copy)]
pub struct ClassedWrite<'i, 'a> {
    /// The write.
    pub write: &'i Row<'a>,
    /// Its class.
    pub class: Class,
    /// The admitted operation of the highest rank before it, if that supersedes it.
    pub superseded_by: Option<&'i Row<'a>>,
}

/// Gives every write of a holding its class, in the order of application. Replayed and rejected
/// rows, and writes without a holding, have none.
pub fn classify<'i, 'a>(index: &'i Index<'a>) -> Vec<ClassedWrite<'i, 'a>> {
    let mut highest: BTreeMap<&str, &Row<'a>> = BTreeMap::new();
    let mut classed = Vec::new();
    for row in &index.rows {
        let before = highest.get(row.row.domain.as_str()).copied();
        if let Some((rank, incarnation)) = row.rank.zip(row.incarnation) {
            let superseded_by = before.filter(|before| before.rank > Some(rank));
            let current = index.is_owner_at(incarnation, row.seq);
            if let Some(class) = class_of(index, row, superseded_by.is_some(), current) {
                classed.push(ClassedWrite { write: row, class, superseded_by });
            }
            let admitted = row.row.result == RowResult::Admitted && row.row.token.is_some();
            if admitted && before.is_none_or(|before| before.rank < Some(rank)) {
                highest.insert(&row.row.domain, row);
            }
        }
    }
    classed
}

fn class_of(index: &Index<'_>, row: &Row<'_>, superseded: bool, current: bool) -> Option<Class> {
    if !row.is_write() {
        return None;
    }
    let effect = match row.row.result {
        RowResult::Admitted | RowResult::Refused => had_effect(index, row),
        RowResult::Replayed | RowResult::Rejected => return None,
    };
    match (superseded, current, effect, row.row.result) {
        (true, _, true, _) => Some(Class::StaleAccepted),
        (true, _, false, RowResult::Refused) => Some(Class::StaleRefused),
        (false, true, true, _) => Some(Class::FreshAccepted),
        (false, true, false, RowResult::Refused) => Some(Class::FreshRefused),
        (false, false, true, _) => Some(Class::LateAccepted),
        (false, false, false, RowResult::Refused) => Some(Class::LateRefused),
        // Admitted without an effect: a compare that failed. The fence did its part.
        (_, _, false, _) => None,
    }
}

/// Acknowledged, or its value was ever read, or the log says that the data changed.
fn had_effect(index: &Index<'_>, row: &Row<'_>) -> bool {
    let acknowledged = || {
        row.row.result == RowResult::Admitted
            && row
                .op
                .and_then(|op| index.ops.get(&op))
                .is_some_and(|op| matches!(op.outcome, Some(Outcome::Ok(_))))
    };
    let value_was_read =
        || row.row.value.as_deref().is_some_and(|value| index.read_values.contains(value));
    // An earlier attempt of the same operation may be the one whose value was read.
    row.row.effect
        || acknowledged()
        || (value_was_read() && !another_attempt_had_effect(index, row))
}

fn another_attempt_had_effect(index: &Index<'_>, row: &Row<'_>) -> bool {
    row.op.is_some()
        && index
            .rows
            .iter()
            .any(|other| other.seq != row.seq && other.op == row.op && other.row.effect)
}

/// How many writes there are of each class.
pub fn classes(index: &Index<'_>) -> Classes {
    let mut classes = Classes::default();
    for write in classify(index) {
        classes.add(write.class);
    }
    classes
}
