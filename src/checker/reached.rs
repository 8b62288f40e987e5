//! What happened in a history at all: counts of the properties that a suite must have met, so that
//! a run in which nothing happened is no pass (D11).
//!
//! Faults are told by their family's name, which the caller takes from the plan: here only
//! `suspend` and names that begin with `cut` mean something.

use std::{
    collections::BTreeMap,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

use super::{
    class::{Class, ClassedWrite, Classes},
    index::{Belief, Index},
};
use crate::history::{Function, History, Outcome};

mod fault;
mod hand_over;

pub use hand_over::HandOver;

/// Something that may happen in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// Two clients believed at one moment that they hold the lock.
    Overlap,
    /// The fence refused a superseded write.
    StaleRefusedWrite,
    /// It was superseded by a read only: without a mark on reads it would have been let in.
    StaleRefusedByReadOnly,
    /// A lease ran out while its client believed that it holds the lock.
    ExpiryWhileHeld,
    /// The lock went to another because a lease ran out.
    HandOverByExpiry,
    /// The lock went to another because its owner gave it back.
    HandOverByUnlock,
    /// The lock went to another because a lease was revoked.
    HandOverByRevoke,
    /// The lock went to another because somebody else deleted the owner's key.
    HandOverByOutsideDelete,
    /// The next owner was already waiting in the queue.
    ContendedHandOver,
    /// A cut link kept a client from renewing its lease for more than half its time to live.
    KeepAliveLostToCut,
    /// A client was stopped between its check that it holds the lock and the write.
    PauseBeforeWrite,
    /// A suspended client went on under its lock, its own clock being short of the deadline, while
    /// or after another held it.
    OverlapBySuspend,
    /// A write landed after its tenure's end, before the next tenure's first operation.
    LateAccepted,
    /// A write of unknown outcome had its effect.
    UnknownWithEffect,
    /// A write of unknown outcome had none.
    UnknownWithoutEffect,
    /// The answer of an acquire arrived after the end of its tenure.
    AcquireAfterTenure,
}

impl Property {
    /// Every property.
    pub const ALL: [Property; 16] = [
        Property::Overlap,
        Property::StaleRefusedWrite,
        Property::StaleRefusedByReadOnly,
        Property::ExpiryWhileHeld,
        Property::HandOverByExpiry,
        Property::HandOverByUnlock,
        Property::HandOverByRevoke,
        Property::HandOverByOutsideDelete,
        Property::ContendedHandOver,
        Property::KeepAliveLostToCut,
        Property::PauseBeforeWrite,
        Property::OverlapBySuspend,
        Property::LateAccepted,
        Property::UnknownWithEffect,
        Property::UnknownWithoutEffect,
        Property::AcquireAfterTenure,
    ];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Property::Overlap => "overlap of beliefs",
            Property::StaleRefusedWrite => "stale write refused",
            Property::StaleRefusedByReadOnly => "stale write refused because of a read only",
            Property::ExpiryWhileHeld => "lease expired while held",
            Property::HandOverByExpiry => "hand-over by expiry",
            Property::HandOverByUnlock => "hand-over by unlock",
            Property::HandOverByRevoke => "hand-over by revoke",
            Property::HandOverByOutsideDelete => "hand-over by outside delete",
            Property::ContendedHandOver => "contended hand-over",
            Property::KeepAliveLostToCut => "keep-alive lost to a cut",
            Property::PauseBeforeWrite => "pause between check and write",
            Property::OverlapBySuspend => "overlap carried past the local deadline by a suspend",
            Property::LateAccepted => "late write accepted",
            Property::UnknownWithEffect => "unknown outcome that had its effect",
            Property::UnknownWithoutEffect => "unknown outcome that had none",
            Property::AcquireAfterTenure => "acquire answered after its tenure's end",
        }
    }
}

/// How often each property was met. Sums over runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached(BTreeMap<Property, u64>);

impl Reached {
    /// How often this happened.
    pub fn count(&self, property: Property) -> u64 {
        self.0.get(&property).copied().unwrap_or(0)
    }

    /// Whether this happened at all.
    pub fn contains(&self, property: Property) -> bool {
        self.count(property) > 0
    }

    /// Every property with its count, zeros included.
    pub fn rows(&self) -> impl Iterator<Item = (Property, u64)> + '_ {
        Property::ALL.into_iter().map(|property| (property, self.count(property)))
    }

    fn raise(&mut self, property: Property, count: u64) {
        if count > 0 {
            *self.0.entry(property).or_insert(0) += count;
        }
    }
}

impl AddAssign<&Reached> for Reached {
    fn add_assign(&mut self, other: &Reached) {
        for (property, count) in &other.0 {
            self.raise(*property, *count);
        }
    }
}

impl Add<&Reached> for Reached {
    type Output = Reached;

    fn add(mut self, other: &Reached) -> Reached {
        self += other;
        self
    }
}

/// Whether a run of the control arm (no faults) is as it must be: no overlap, only fresh-accepted
/// writes, and a contended hand-over. The error says what is not so.
pub fn control_arm(classes: &Classes, reached: &Reached) -> Result<(), String> {
    let others = classes.total() - classes.fresh_accepted + classes.unranked;
    if reached.contains(Property::Overlap) {
        return Err(format!("{} overlaps of belief", reached.count(Property::Overlap)));
    }
    if others > 0 {
        return Err(format!("{others} writes are not fresh-accepted: {classes:?}"));
    }
    if classes.fresh_accepted == 0 {
        return Err("no write was accepted".to_owned());
    }
    if !reached.contains(Property::ContendedHandOver) {
        return Err("the lock was never handed to a waiter".to_owned());
    }
    Ok(())
}

/// What happened in a history. `families` names the family of each fault of the plan by its index.
pub fn reached(history: &History, families: &BTreeMap<u32, &str>) -> Reached {
    reached_in(&Index::new(history), families)
}

/// [`reached`] for those who have the index already.
pub(super) fn reached_in(index: &Index<'_>, families: &BTreeMap<u32, &str>) -> Reached {
    let mut reached = Reached::default();
    let classification = index.classification();
    let classes = &classification.classes;
    let by_read_only =
        |write: &&ClassedWrite| write.class == Class::StaleRefused && write.by_read_only;
    reached.raise(Property::Overlap, overlaps(index));
    reached.raise(Property::StaleRefusedWrite, classes.stale_refused);
    reached.raise(
        Property::StaleRefusedByReadOnly,
        classification.writes.iter().filter(by_read_only).count() as u64,
    );
    reached.raise(Property::LateAccepted, classes.late_accepted);
    unknown_outcomes(index, &mut reached);
    hand_over::count(index, &mut reached);
    fault::count(index, families, &mut reached);
    reached
}

/// Pairs of holdings of one lock, of different incarnations, that were believed in at one moment.
fn overlaps(index: &Index<'_>) -> u64 {
    let mut beliefs: Vec<(Belief, usize, Option<usize>)> = index
        .holdings
        .iter()
        .filter_map(|holding| Some((holding.belief?, holding.lock, holding.incarnation)))
        .collect();
    beliefs.sort_unstable_by_key(|(belief, ..)| belief.from);
    let mut ends = beliefs.clone();
    ends.sort_unstable_by_key(|(belief, ..)| belief.to);
    let mut ends = ends.into_iter().peekable();
    // How many are believed in: of each lock, and of each incarnation of it.
    let mut of_lock: BTreeMap<usize, u64> = BTreeMap::new();
    let mut of_incarnation: BTreeMap<(usize, Option<usize>), u64> = BTreeMap::new();
    let mut overlaps = 0;
    for (belief, lock, incarnation) in beliefs {
        while let Some((_, lock, own)) = ends.next_if(|(other, ..)| other.to <= belief.from) {
            of_lock.entry(lock).and_modify(|count| *count -= 1);
            of_incarnation.entry((lock, own)).and_modify(|count| *count -= 1);
        }
        let all = of_lock.entry(lock).or_default();
        let own = of_incarnation.entry((lock, incarnation)).or_default();
        overlaps += *all - *own;
        *all += 1;
        *own += 1;
    }
    overlaps
}

fn unknown_outcomes(index: &Index<'_>, reached: &mut Reached) {
    for (at, op) in index.ops.iter().enumerate() {
        let unknown = matches!(op.end, None | Some((_, Outcome::Unknown(_))));
        if !unknown || !matches!(op.f, Function::Write { .. }) {
            continue;
        }
        let property = match index.rows_of(at).any(|row| row.effective) {
            true => Property::UnknownWithEffect,
            false => Property::UnknownWithoutEffect,
        };
        reached.raise(property, 1);
    }
}
