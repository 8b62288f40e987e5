//! What others do to a member: an operator's hands, and renewals that get lost on their way.
//!
//! Nothing here is a wrong etcd: a key may be deleted, the history compacted and a renewal lost by
//! anybody, and a client must live with it.

use std::collections::BTreeMap;

use crate::etcd::model::request::{DeleteRangeRequest, Request};

use super::{Inner, MemberState, Process};

/// The name under which a member's operator has no connection.
const OPERATOR: (u64, u64) = (0, 0);

/// The name of an order to lose renewals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LossId(u64);

/// Which renewals get lost.
#[derive(Debug, Default)]
pub(super) struct LostRenewals {
    next_id: u64,
    /// Of one lease, or of all; and how many so far.
    all: BTreeMap<LossId, (Option<i64>, u64)>,
}

impl LostRenewals {
    /// Whether a renewal of this lease is lost. Each order that fits counts it.
    pub(super) fn meets(&mut self, lease: i64) -> bool {
        let mut lost = false;
        for (of, count) in self.all.values_mut() {
            if of.is_none_or(|of| of == lease) {
                *count += 1;
                lost = true;
            }
        }
        lost
    }
}

/// Whether the member compacts after each change.
#[derive(Debug, Default)]
pub(super) struct Compacting {
    /// How many want it.
    orders: u32,
    /// How many states of keys were forgotten.
    forgotten: u64,
}

impl Inner {
    /// Compacts after a change, if somebody wants that; false if there was nothing to compact.
    pub(super) fn compact_again(&mut self, process: &Process) -> bool {
        if self.compacting.orders == 0 || self.leaderless.is_some() {
            return false;
        }
        let (before, revision) = (self.model.history_len(), self.model.header().revision);
        let answer = self.model.handle(process.clock.now(), OPERATOR, Request::Compact(revision));
        let forgotten = before.saturating_sub(self.model.history_len());
        self.compacting.forgotten += forgotten as u64;
        matches!(answer, Some(Ok(_)))
    }
}

/// What others do.
impl MemberState {
    /// From now on forgets the past states of keys after each change.
    pub fn begin_compacting(&self) {
        self.lock().compacting.orders += 1;
    }

    /// Takes one such order back; gives how many states were forgotten since the last time.
    pub fn end_compacting(&self) -> u64 {
        let compacting = &mut self.lock().compacting;
        compacting.orders = compacting.orders.saturating_sub(1);
        std::mem::take(&mut compacting.forgotten)
    }

    /// Loses all renewals of this lease, or of every lease, from now on; nobody is told, and the
    /// connections stay. It stays over a restart of the member.
    pub fn lose_renewals(&self, lease: Option<i64>) -> LossId {
        let lost = &mut self.lock().lost_renewals;
        lost.next_id += 1;
        let id = LossId(lost.next_id);
        lost.all.insert(id, (lease, 0));
        id
    }

    /// Ends the losses of this order; gives how many renewals it has lost.
    pub fn pass_renewals(&self, id: LossId) -> u64 {
        self.lock().lost_renewals.all.remove(&id).map_or(0, |(_, count)| count)
    }

    /// Deletes a key. False if there is none, or nobody who could do it.
    pub fn delete(&self, key: &str) -> bool {
        let before = self.lock().model.header().revision;
        let key = key.as_bytes().to_vec();
        let request = DeleteRangeRequest { key, range_end: Vec::new(), prev_kv: false };
        self.operate(Request::DeleteRange(request)) && self.lock().model.header().revision > before
    }

    /// Forgets the past states of all keys. Gives how many were forgotten; none if there was
    /// nothing to compact, or nobody who could do it.
    pub fn compact(&self) -> Option<u64> {
        let (before, revision) = {
            let inner = self.lock();
            (inner.model.history_len(), inner.model.header().revision)
        };
        let done = self.operate(Request::Compact(revision));
        done.then(|| before.saturating_sub(self.lock().model.history_len()) as u64)
    }

    /// Does a request of the operator; whether it succeeded.
    fn operate(&self, request: Request) -> bool {
        let mut inner = self.lock();
        let Some(process) = inner.process.upgrade() else { return false };
        if inner.leaderless.is_some() {
            return false;
        }
        let answer = inner.model.handle(process.clock.now(), OPERATOR, request);
        inner.pass_on(&process);
        matches!(answer, Some(Ok(_)))
    }
}
