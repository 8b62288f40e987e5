//! The queues of the locks, from etcd's commit log (D1).
//!
//! Follows each key `name/<hex>` through the commits: its incarnations, and who is owner after each
//! commit. Owner is the live incarnation of least create revision. A store that repeats revisions
//! is followed all the same; that it is wrong is for the checkers to say.

use std::collections::{BTreeMap, BTreeSet};

use super::{End, Incarnation, Lock, OwnerChange};
use crate::history::{Commit, KeyChange, KeyEvent};

/// The state of all queues while the pass goes on.
#[derive(Debug, Default)]
pub(super) struct Queues<'h> {
    pub locks: Vec<Lock<'h>>,
    pub incarnations: Vec<Incarnation<'h>>,
    names: BTreeMap<&'h str, usize>,
    keys: BTreeMap<&'h str, Key>,
    /// Per lock the live incarnations, by create revision.
    live: Vec<BTreeSet<(i64, usize)>>,
    touched: Vec<usize>,
}

#[derive(Debug)]
struct Key {
    lock: usize,
    incarnations: Vec<usize>,
    /// The greatest create revision that it had.
    highest: i64,
}

impl<'h> Queues<'h> {
    /// The position of the lock of this name, which an operation mentions.
    pub fn named(&mut self, name: &'h str) -> usize {
        let lock = self.lock(name);
        self.locks[lock].named = true;
        lock
    }

    fn lock(&mut self, name: &'h str) -> usize {
        if let Some(lock) = self.names.get(name) {
            return *lock;
        }
        let lock = self.locks.len();
        self.names.insert(name, lock);
        self.live.push(BTreeSet::new());
        self.locks.push(Lock {
            name,
            named: false,
            incarnations: Vec::new(),
            tenures: Vec::new(),
            owners: Vec::new(),
        });
        lock
    }

    /// Takes in one revision; the owner is looked at after all its events.
    pub fn commit(&mut self, seq: u64, commit: &'h Commit) {
        for event in &commit.events {
            let Some(lock) = self.lock_of(&event.key) else { continue };
            let end = End { seq, cause: commit.cause };
            match event.change {
                KeyChange::Put => self.put(lock, event, end),
                KeyChange::Delete => self.end(&event.key, end),
            }
            if !self.touched.contains(&lock) {
                self.touched.push(lock);
            }
        }
        while let Some(lock) = self.touched.pop() {
            self.settle_owner(lock, seq);
        }
    }

    /// The lock in whose queue this key stands: a direct child whose last part is a lease in hex.
    fn lock_of(&mut self, key: &'h str) -> Option<usize> {
        if let Some(known) = self.keys.get(key) {
            return Some(known.lock);
        }
        let (name, lease) = key.rsplit_once('/')?;
        if lease.is_empty() || !lease.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let lock = self.lock(name);
        self.keys.insert(key, Key { lock, incarnations: Vec::new(), highest: i64::MIN });
        Some(lock)
    }

    fn put(&mut self, lock: usize, event: &'h KeyEvent, end: End) {
        let Some(key) = self.keys.get(event.key.as_str()) else { return };
        if let Some(&last) = key.incarnations.last() {
            let last = &self.incarnations[last];
            match last.ended {
                None if last.create_revision == event.create_revision => return,
                // Created anew without a delete: only a faulty store does so.
                None => self.end(&event.key, end),
                Some(_) => {}
            }
        }
        let owner_since = self.come_back(event, end.seq);
        let incarnation = self.incarnations.len();
        self.incarnations.push(Incarnation {
            lock,
            key: &event.key,
            create_revision: event.create_revision,
            created: end.seq,
            owner_since,
            ended: None,
            returned: None,
        });
        self.locks[lock].incarnations.push(incarnation);
        self.live[lock].insert((event.create_revision, incarnation));
        if let Some(key) = self.keys.get_mut(event.key.as_str()) {
            key.incarnations.push(incarnation);
        }
    }

    /// If a key is created that is no new incarnation, since when that was owner: a tenure that
    /// comes back is the same tenure.
    fn come_back(&mut self, event: &'h KeyEvent, seq: u64) -> Option<u64> {
        let key = self.keys.get_mut(event.key.as_str())?;
        let created = event.create_revision;
        if created > key.highest {
            key.highest = created;
            return None;
        }
        let mut lives = key.incarnations.iter().rev();
        let life = lives.find(|life| self.incarnations[**life].create_revision == created)?;
        let life = &mut self.incarnations[*life];
        life.returned.get_or_insert(seq);
        life.owner_since
    }

    fn end(&mut self, key: &str, end: End) {
        let last = self.keys.get(key).and_then(|key| key.incarnations.last());
        let Some(&incarnation) = last else { return };
        let ending = &mut self.incarnations[incarnation];
        if ending.ended.is_none() {
            ending.ended = Some(end);
            self.live[ending.lock].remove(&(ending.create_revision, incarnation));
        }
    }

    fn settle_owner(&mut self, lock: usize, seq: u64) {
        let owner = self.live[lock].first().map(|(_, incarnation)| *incarnation);
        let known = &mut self.locks[lock];
        if known.owners.last().and_then(|change| change.owner) == owner {
            return;
        }
        known.owners.push(OwnerChange { seq, owner });
        let Some(owner) = owner else { return };
        let incarnation = &mut self.incarnations[owner];
        if incarnation.owner_since.is_none() {
            incarnation.owner_since = Some(seq);
            known.tenures.push(owner);
        }
    }

    /// The last incarnation of a key that was created before this event.
    pub fn last_before(&self, key: &str, seq: u64) -> Option<usize> {
        let incarnations = &self.keys.get(key)?.incarnations;
        let after = incarnations.partition_point(|i| self.incarnations[*i].created < seq);
        after.checked_sub(1).map(|last| incarnations[last])
    }
}
