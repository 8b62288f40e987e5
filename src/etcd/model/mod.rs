//! The state of a member, pure and synchronous: time comes in as an argument.
//!
//! [`Model`] answers requests as etcd's apply loop does: one revision for each request that writes,
//! none for one that does not. Everything that changes the store goes through [`Model::commit`],
//! which appends to the history that watches read from and hands out the row of the commit log.

mod lease;
mod mvcc;
mod txn;
mod watch;
pub mod wire;

use std::time::Duration;

use bytes::Bytes;

pub(crate) use lease::{Renewal, TimeToLive};
pub(crate) use watch::{Hub, StreamKey};

use self::{
    lease::Leases,
    mvcc::Store,
    wire::{EventKind, Failure, StoreEvent},
};
use crate::history::{Cause, Commit, KeyChange, KeyEvent, LeaseChange, LeaseEvent};

/// What a request has changed, for the commit log and for the watches.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Rows of the commit log.
    pub(crate) commits: Vec<Commit>,
    /// Changes of leases.
    pub(crate) leases: Vec<LeaseEvent>,
    /// The events of each commit, as watches deliver them.
    pub(crate) events: Vec<(i64, Vec<StoreEvent>)>,
}

/// The state of a member.
#[derive(Debug)]
pub(crate) struct Model {
    store: Store,
    leases: Leases,
    commits: u64,
    ids: IdGenerator,
}

impl Model {
    /// A fresh store, at revision 1.
    pub(crate) fn new(member_id: u64, wall_ms: i64) -> Self {
        Model {
            store: Store::new(),
            leases: Leases::default(),
            commits: 0,
            ids: IdGenerator::new(member_id, wall_ms),
        }
    }

    /// The current revision.
    pub(crate) fn revision(&self) -> i64 {
        self.store.revision()
    }

    /// Ends a write: gives it its revision and its row in the commit log.
    fn commit(
        &mut self,
        events: Vec<StoreEvent>,
        cause: Cause,
        now: Duration,
        effects: &mut Effects,
    ) {
        if events.is_empty() {
            return;
        }
        self.commits += 1;
        let revision = self.store.finish_write(&events);
        let rows = events.iter().map(key_event).collect();
        effects.commits.push(Commit {
            index: self.commits,
            revision,
            cause,
            member_ns: now.as_nanos() as u64,
            events: rows,
        });
        effects.events.push((revision, events));
    }

    /// A member that starts again: leases get their full time to live, as after an election.
    pub(crate) fn restart(&mut self, wall_ms: i64, member_id: u64, now: Duration) {
        self.ids = IdGenerator::new(member_id, wall_ms);
        self.leases.refresh_all(now);
    }

    fn note_lease(lease: i64, change: LeaseChange, now: Duration, effects: &mut Effects) {
        effects.leases.push(LeaseEvent { lease, change, member_ns: now.as_nanos() as u64 });
    }
}

fn key_event(event: &StoreEvent) -> KeyEvent {
    KeyEvent {
        change: match event.kind {
            EventKind::Put => KeyChange::Put,
            EventKind::Delete => KeyChange::Delete,
        },
        key: String::from_utf8_lossy(&event.kv.key).into_owned(),
        create_revision: event.prev_or_own_create_revision(),
        lease: event.prev_or_own_lease(),
    }
}

/// The half-open range that a key and a range end name, as in etcd: an empty end is one key, an end
/// of one zero byte is everything from the key on.
pub(crate) fn contains(key: &Bytes, range_end: &Bytes, candidate: &[u8]) -> bool {
    match range_end.as_ref() {
        [] => candidate == key.as_ref(),
        [0] => candidate >= key.as_ref(),
        end => candidate >= key.as_ref() && candidate < end,
    }
}

/// etcd's request ids, from which lease ids are made (etcd pkg/idutil): two bytes of the member id,
/// five of the start time in milliseconds, one counter. Not ordered across members.
#[derive(Debug)]
struct IdGenerator {
    prefix: u64,
    suffix: u64,
}

impl IdGenerator {
    fn new(member_id: u64, wall_ms: i64) -> Self {
        let ms = wall_ms as u64 & 0xff_ffff_ffff;
        IdGenerator { prefix: member_id << 48, suffix: ms << 8 }
    }

    fn next(&mut self) -> i64 {
        self.suffix += 1;
        let id = self.prefix | (self.suffix & 0xffff_ffff_ffff);
        (id & (u64::MAX >> 1)) as i64
    }
}

impl Model {
    /// Each proposal takes an id, as in etcd, so that lease ids are not consecutive.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.ids.next()
    }

    fn require_lease(&self, lease: i64) -> Result<(), Failure> {
        if lease == 0 || self.leases.exists(lease) { Ok(()) } else { Err(Failure::LeaseNotFound) }
    }
}
