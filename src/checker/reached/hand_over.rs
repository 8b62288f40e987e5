//! Hand-overs and their cause (D3), and tenures that ended under a believing client.

use super::{Property, Reached};
use crate::{
    checker::index::{End, Incarnation, Index},
    history::Cause,
};

/// Why a tenure that has a successor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandOver {
    /// The owner's own code deleted the key.
    Unlock,
    /// The lease ran out.
    Expiry,
    /// The lease was revoked, by its session or by somebody else.
    Revoke,
    /// The key was deleted although its holder had not asked for it.
    OutsideDelete,
}

impl HandOver {
    fn of(end: End, user: User) -> HandOver {
        let before = |seq: Option<u64>| seq.is_some_and(|seq| seq < end.seq);
        match end.cause {
            Cause::Expiry(_) => HandOver::Expiry,
            Cause::Revoke(_) => HandOver::Revoke,
            // What was never granted (a loser's key, a gone caller's) its own code cleans up.
            _ if before(user.granted) && !before(user.released) => HandOver::OutsideDelete,
            Cause::Put | Cause::Delete | Cause::Txn | Cause::Restore => HandOver::Unlock,
        }
    }

    fn property(self) -> Property {
        match self {
            HandOver::Unlock => Property::HandOverByUnlock,
            HandOver::Expiry => Property::HandOverByExpiry,
            HandOver::Revoke => Property::HandOverByRevoke,
            HandOver::OutsideDelete => Property::HandOverByOutsideDelete,
        }
    }
}

/// When the holdings of an incarnation were first granted, and first given back.
#[derive(Debug, Clone, Copy, Default)]
struct User {
    granted: Option<u64>,
    released: Option<u64>,
}

fn users(index: &Index<'_>) -> Vec<User> {
    let mut users = vec![User::default(); index.incarnations.len()];
    let first = |known: Option<u64>, new: Option<u64>| known.into_iter().chain(new).min();
    for holding in &index.holdings {
        let Some(incarnation) = holding.incarnation else { continue };
        let user = &mut users[incarnation];
        user.granted = first(user.granted, holding.ok);
        user.released = first(user.released, holding.released);
    }
    users
}

/// Counts the hand-overs, and the holdings whose tenure ended unnoticed.
pub(super) fn count(index: &Index<'_>, reached: &mut Reached) {
    let users = users(index);
    for lock in index.locks.iter().filter(|lock| lock.named) {
        for pair in lock.tenures.windows(2) {
            let next: &Incarnation<'_> = &index.incarnations[pair[1]];
            let Some(end) = index.incarnations[pair[0]].ended else { continue };
            reached.raise(HandOver::of(end, users[pair[0]]).property(), 1);
            let waited = next.created < end.seq && next.owner_since == Some(end.seq);
            reached.raise(Property::ContendedHandOver, u64::from(waited));
        }
    }
    for holding in &index.holdings {
        let end = holding.incarnation.and_then(|i| index.incarnations[i].ended);
        let (Some(end), Some(belief)) = (end, holding.belief) else { continue };
        let expired = matches!(end.cause, Cause::Expiry(_)) && belief.contains(end.seq);
        reached.raise(Property::ExpiryWhileHeld, u64::from(expired));
        reached.raise(Property::AcquireAfterTenure, u64::from(end.seq < belief.from));
    }
}
