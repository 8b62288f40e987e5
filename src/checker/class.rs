//! The classes of writes (D4) and the line of admitted ranks (D5).
//!
//! A write is *superseded* if an admitted, token-carrying operation of a newer tenure is before it
//! in its domain's apply order, and *current* if its incarnation is owner when it is applied. Over
//! a crash of the storage only what was answered or recovered is before it.

use std::{
    collections::BTreeMap,
    iter::Sum,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

use super::index::{Index, Row};
use crate::history::RowResult;

/// The class of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Superseded, yet it had its effect: a violation.
    StaleAccepted,
    /// Superseded and refused: what fencing is for.
    StaleRefused,
    /// The owner's, and it had its effect.
    FreshAccepted,
    /// The owner's, not superseded, yet refused: a violation.
    FreshRefused,
    /// Neither superseded nor the owner's, and it had its effect: allowed.
    LateAccepted,
    /// Neither superseded nor the owner's, and refused: allowed.
    LateRefused,
}

impl Class {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Class::StaleAccepted => "stale-accepted",
            Class::StaleRefused => "stale-refused",
            Class::FreshAccepted => "fresh-accepted",
            Class::FreshRefused => "fresh-refused",
            Class::LateAccepted => "late-accepted",
            Class::LateRefused => "late-refused",
        }
    }
}

/// How many writes fell into each class. Sums over runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// Violations of the fence.
    pub stale_accepted: u64,
    /// The fence's work.
    pub stale_refused: u64,
    /// The ordinary case.
    pub fresh_accepted: u64,
    /// Rightful owners that were locked out.
    pub fresh_refused: u64,
    /// Late, before the newer tenure's first operation.
    pub late_accepted: u64,
    /// Late and refused all the same.
    pub late_refused: u64,
    /// Writes of a holding whose incarnation is not in the commit log: without a class.
    pub unranked: u64,
}

impl Classes {
    /// How many writes have a class.
    pub fn total(&self) -> u64 {
        self.rows().iter().map(|(_, count)| count).sum()
    }

    /// Each class with its count, in the order of the definition's table.
    pub fn rows(&self) -> [(Class, u64); 6] {
        [
            (Class::StaleAccepted, self.stale_accepted),
            (Class::StaleRefused, self.stale_refused),
            (Class::FreshAccepted, self.fresh_accepted),
            (Class::FreshRefused, self.fresh_refused),
            (Class::LateAccepted, self.late_accepted),
            (Class::LateRefused, self.late_refused),
        ]
    }

    fn count(&mut self, class: Class) {
        *match class {
            Class::StaleAccepted => &mut self.stale_accepted,
            Class::StaleRefused => &mut self.stale_refused,
            Class::FreshAccepted => &mut self.fresh_accepted,
            Class::FreshRefused => &mut self.fresh_refused,
            Class::LateAccepted => &mut self.late_accepted,
            Class::LateRefused => &mut self.late_refused,
        } += 1;
    }
}

impl AddAssign for Classes {
    fn add_assign(&mut self, other: Classes) {
        self.stale_accepted += other.stale_accepted;
        self.stale_refused += other.stale_refused;
        self.fresh_accepted += other.fresh_accepted;
        self.fresh_refused += other.fresh_refused;
        self.late_accepted += other.late_accepted;
        self.late_refused += other.late_refused;
        self.unranked += other.unranked;
    }
}

impl Add for Classes {
    type Output = Classes;

    fn add(mut self, other: Classes) -> Classes {
        self += other;
        self
    }
}

impl Sum for Classes {
    fn sum<I: Iterator<Item = Classes>>(classes: I) -> Classes {
        classes.fold(Classes::default(), Add::add)
    }
}

/// A write with its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassedWrite {
    /// Position in [`Index::rows`].
    pub row: usize,
    /// Its class.
    pub class: Class,
    /// Whether only reads, and no write, superseded it.
    pub by_read_only: bool,
}

/// The classed apply log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Classification {
    /// The writes that have a class, in apply order.
    pub writes: Vec<ClassedWrite>,
    /// Positions in [`Index::rows`] of admitted rows below an admitted rank before them (D5).
    pub falls: Vec<usize>,
    /// The counts.
    pub classes: Classes,
}

/// The greatest admitted rank of a domain, as the storage can know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    any: Option<i64>,
    write: Option<i64>,
}

impl Marks {
    fn raise(&mut self, row: &Row<'_>) {
        self.any = self.any.max(row.rank);
        if row.is_write() {
            self.write = self.write.max(row.rank);
        }
    }
}

#[derive(Debug, Default)]
struct Domain {
    boot: u32,
    /// Everything admitted that the running storage knows.
    live: Marks,
    /// What of it outlasts a crash.
    durable: Marks,
}

/// Classes every write of a history, in one walk over the apply log.
pub fn classify(index: &Index<'_>) -> Classification {
    let mut domains: BTreeMap<u32, Domain> = BTreeMap::new();
    let mut result = Classification::default();
    for (at, row) in index.rows.iter().enumerate() {
        let domain = domains.entry(row.domain).or_default();
        if domain.boot != row.boot() {
            domain.boot = row.boot();
            domain.live = domain.durable;
        }
        if row.rank.is_some() {
            if let Some(class) = class_of(index, row, domain.live.any > row.rank) {
                let by_read_only = domain.live.any > row.rank && domain.live.write <= row.rank;
                result.writes.push(ClassedWrite { row: at, class, by_read_only });
                result.classes.count(class);
            }
            if row.announces() {
                if domain.live.any > row.rank {
                    result.falls.push(at);
                }
                domain.live.raise(row);
                if row.survives {
                    domain.durable.raise(row);
                }
            }
        } else if row.is_write() && row.holding.is_some() {
            result.classes.unranked += 1;
        }
    }
    result
}

fn class_of(index: &Index<'_>, row: &Row<'_>, superseded: bool) -> Option<Class> {
    let (true, Some(incarnation)) = (row.is_write(), row.incarnation) else { return None };
    let accepted = match row.result() {
        RowResult::Admitted if row.effective => true,
        // Let in without an effect: nothing happened that a class could be about.
        RowResult::Admitted | RowResult::Replayed | RowResult::Rejected => return None,
        RowResult::Refused => row.effective,
    };
    let lock = index.incarnations[incarnation].lock;
    let owner = || index.owner_at(lock, row.seq);
    let current = || owner().is_some_and(|owner| index.is_same(owner, incarnation));
    Some(match (superseded, accepted) {
        (true, true) => Class::StaleAccepted,
        (true, false) => Class::StaleRefused,
        (false, true) if current() => Class::FreshAccepted,
        (false, false) if current() => Class::FreshRefused,
        (false, true) => Class::LateAccepted,
        (false, false) => Class::LateRefused,
    })
}

/// The first row of the domain that supersedes this one.
pub fn superseder<'i, 'h>(index: &'i Index<'h>, row: &Row<'h>) -> Option<&'i Row<'h>> {
    index.rows.iter().find(|newer| {
        newer.announces()
            && newer.rank > row.rank
            && newer.domain == row.domain
            && newer.precedes(row)
    })
}
