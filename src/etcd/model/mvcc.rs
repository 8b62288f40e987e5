//! The store: keys with their versions, and the history that watches and old reads need.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use bytes::Bytes;

use super::{
    Effects, Model, contains,
    wire::{
        DeleteReply, DeleteRequest, EventKind, Failure, KeyValue, PutReply, PutRequest, RangeReply,
        RangeRequest, SortOrder, SortTarget, StoreEvent,
    },
};
use crate::history::Cause;
use std::time::Duration;

/// All keys, now and before.
#[derive(Debug)]
pub(super) struct Store {
    revision: i64,
    compacted: i64,
    live: BTreeMap<Bytes, KeyValue>,
    /// Every event after the compaction, by revision.
    history: VecDeque<(i64, Vec<StoreEvent>)>,
}

impl Store {
    pub(super) fn new() -> Self {
        Store { revision: 1, compacted: 0, live: BTreeMap::new(), history: VecDeque::new() }
    }

    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    pub(super) fn compacted(&self) -> i64 {
        self.compacted
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&KeyValue> {
        self.live.get(key)
    }

    /// The live keys of a range, in order.
    pub(super) fn scan<'s>(
        &'s self,
        key: &'s Bytes,
        range_end: &'s Bytes,
    ) -> impl Iterator<Item = &'s KeyValue> {
        let from = (Bound::Included(key.clone()), Bound::Unbounded);
        self.live
            .range(from)
            .map(|(_, kv)| kv)
            .take_while(move |kv| contains(key, range_end, &kv.key))
    }

    /// The keys of a range as they were at an older revision.
    fn scan_at(&self, key: &Bytes, range_end: &Bytes, revision: i64) -> Vec<KeyValue> {
        // Back from now: each later event is undone by what was there before it.
        let mut then: BTreeMap<Bytes, KeyValue> =
            self.scan(key, range_end).map(|kv| (kv.key.clone(), kv.clone())).collect();
        for (at, events) in self.history.iter().rev() {
            if *at <= revision {
                break;
            }
            for event in events.iter().rev().filter(|e| contains(key, range_end, &e.kv.key)) {
                match &event.prev {
                    Some(prev) => then.insert(event.kv.key.clone(), prev.clone()),
                    None => then.remove(&event.kv.key),
                };
            }
        }
        then.into_values().collect()
    }

    /// Applies events and gives them their revision.
    pub(super) fn finish_write(&mut self, events: &[StoreEvent]) -> i64 {
        self.revision += 1;
        self.history.push_back((self.revision, events.to_vec()));
        self.revision
    }

    /// The revision that a write under way will have.
    pub(super) fn next_revision(&self) -> i64 {
        self.revision + 1
    }

    fn put(&mut self, key: Bytes, value: Bytes, lease: i64) -> StoreEvent {
        let revision = self.next_revision();
        let prev = self.live.get(&key).cloned();
        let kv = KeyValue {
            create_revision: prev.as_ref().map_or(revision, |prev| prev.create_revision),
            version: prev.as_ref().map_or(1, |prev| prev.version + 1),
            mod_revision: revision,
            key: key.clone(),
            value,
            lease,
        };
        self.live.insert(key, kv.clone());
        StoreEvent { kind: EventKind::Put, kv, prev }
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Option<StoreEvent> {
        let prev = self.live.remove(key)?;
        let mod_revision = self.next_revision();
        let kv = KeyValue { key: prev.key.clone(), mod_revision, ..KeyValue::default() };
        Some(StoreEvent { kind: EventKind::Delete, kv, prev: Some(prev) })
    }

    /// The events of all revisions from this one on.
    pub(super) fn events_from(&self, revision: i64) -> impl Iterator<Item = (i64, &[StoreEvent])> {
        let start = self.history.partition_point(|(at, _)| *at < revision);
        self.history.range(start..).map(|(at, events)| (*at, events.as_slice()))
    }

    /// Forgets what lies before a revision.
    fn compact(&mut self, revision: i64) -> Result<(), Failure> {
        if revision > self.revision {
            return Err(Failure::FutureRevision);
        }
        if revision <= self.compacted && self.compacted > 0 {
            return Err(Failure::Compacted);
        }
        self.compacted = revision;
        // Events of the compacted revision stay: watching from it works.
        while self.history.front().is_some_and(|(at, _)| *at < revision) {
            self.history.pop_front();
        }
        Ok(())
    }
}

impl Model {
    /// Answers a range. `in_write` says that a transaction has written before it.
    pub(crate) fn range(&self, request: &RangeRequest) -> Result<RangeReply, Failure> {
        if request.key.is_empty() {
            return Err(Failure::EmptyKey);
        }
        let store = &self.store;
        if request.revision > store.revision {
            return Err(Failure::FutureRevision);
        }
        if request.revision > 0 && request.revision < store.compacted {
            return Err(Failure::Compacted);
        }
        let current = request.revision <= 0 || request.revision == store.revision;
        let mut kvs: Vec<KeyValue> = if current {
            // The common question for the first or last of a queue needs no copy of the others.
            store.scan(&request.key, &request.range_end).cloned().collect()
        } else {
            store.scan_at(&request.key, &request.range_end, request.revision)
        };
        let count = kvs.len() as i64;
        if request.count_only {
            return Ok(RangeReply { revision: store.revision, count, ..RangeReply::default() });
        }
        kvs.retain(|kv| within(request, kv));
        sort(&mut kvs, request);
        let limit = usize::try_from(request.limit).unwrap_or(0);
        let more = limit > 0 && kvs.len() > limit;
        if more {
            kvs.truncate(limit);
        }
        if request.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
        }
        Ok(RangeReply { revision: store.revision, kvs, more, count })
    }

    /// A put on its own.
    pub(crate) fn put(
        &mut self,
        request: &PutRequest,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<PutReply, Failure> {
        self.next_id();
        self.check_put(request)?;
        let mut events = Vec::with_capacity(1);
        let mut reply = self.apply_put(request, &mut events);
        self.commit(events, Cause::Put, now, effects);
        reply.revision = self.revision();
        Ok(reply)
    }

    pub(super) fn check_put(&self, request: &PutRequest) -> Result<(), Failure> {
        if request.key.is_empty() {
            return Err(Failure::EmptyKey);
        }
        if request.ignore_value && !request.value.is_empty() {
            return Err(Failure::ValueProvided);
        }
        if request.ignore_lease && request.lease != 0 {
            return Err(Failure::LeaseProvided);
        }
        let ignores = request.ignore_value || request.ignore_lease;
        if ignores && self.store.get(&request.key).is_none() {
            return Err(Failure::KeyNotFound);
        }
        self.require_lease(request.lease)
    }

    /// Puts a key that has been checked.
    pub(super) fn apply_put(
        &mut self,
        request: &PutRequest,
        events: &mut Vec<StoreEvent>,
    ) -> PutReply {
        let old = self.store.get(&request.key);
        let (old_value, old_lease) = old.map(|kv| (kv.value.clone(), kv.lease)).unwrap_or_default();
        let value = if request.ignore_value { old_value } else { request.value.clone() };
        let lease = if request.ignore_lease { old_lease } else { request.lease };
        // A key belongs to one lease, the latest; a put without one detaches it.
        self.leases.detach(old_lease, &request.key);
        self.leases.attach(lease, &request.key);
        let event = self.store.put(request.key.clone(), value, lease);
        let prev_kv = event.prev.clone().filter(|_| request.prev_kv);
        events.push(event);
        PutReply { revision: self.store.next_revision(), prev_kv }
    }

    /// A deletion on its own.
    pub(crate) fn delete_range(
        &mut self,
        request: &DeleteRequest,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<DeleteReply, Failure> {
        self.next_id();
        if request.key.is_empty() {
            return Err(Failure::EmptyKey);
        }
        let mut events = Vec::new();
        let mut reply = self.apply_delete(request, &mut events);
        self.commit(events, Cause::Delete, now, effects);
        reply.revision = self.revision();
        Ok(reply)
    }

    pub(super) fn apply_delete(
        &mut self,
        request: &DeleteRequest,
        events: &mut Vec<StoreEvent>,
    ) -> DeleteReply {
        let keys: Vec<Bytes> =
            self.store.scan(&request.key, &request.range_end).map(|kv| kv.key.clone()).collect();
        let first = events.len();
        for key in &keys {
            events.extend(self.delete_key(key));
        }
        let prev = events[first..].iter().filter_map(|event| event.prev.clone());
        let prev_kvs = if request.prev_kv { prev.collect() } else { Vec::new() };
        let revision = self.store.next_revision();
        DeleteReply { revision, deleted: keys.len() as i64, prev_kvs }
    }

    pub(super) fn delete_key(&mut self, key: &Bytes) -> Option<StoreEvent> {
        let event = self.store.delete(key)?;
        let lease = event.prev.as_ref().map_or(0, |prev| prev.lease);
        self.leases.detach(lease, key);
        Some(event)
    }

    /// Forgets the history before a revision.
    pub(crate) fn compact(&mut self, revision: i64) -> Result<i64, Failure> {
        self.next_id();
        self.store.compact(revision)?;
        Ok(self.revision())
    }
}

fn within(request: &RangeRequest, kv: &KeyValue) -> bool {
    let bounds =
        |value: i64, min: i64, max: i64| (min == 0 || value >= min) && (max == 0 || value <= max);
    bounds(kv.mod_revision, request.min_mod_revision, request.max_mod_revision)
        && bounds(kv.create_revision, request.min_create_revision, request.max_create_revision)
}

fn sort(kvs: &mut [KeyValue], request: &RangeRequest) {
    // A target without an order sorts upwards, as in etcd (server/etcdserver/txn/range.go).
    let order = match (request.sort_order, request.sort_target) {
        (SortOrder::None, SortTarget::Key) => return,
        (SortOrder::None, _) => SortOrder::Ascend,
        (order, _) => order,
    };
    match request.sort_target {
        SortTarget::Key => {}
        SortTarget::Version => kvs.sort_by_key(|kv| kv.version),
        SortTarget::Create => kvs.sort_by_key(|kv| kv.create_revision),
        SortTarget::Mod => kvs.sort_by_key(|kv| kv.mod_revision),
        SortTarget::Value => kvs.sort_by(|a, b| a.value.cmp(&b.value)),
    }
    if order == SortOrder::Descend {
        kvs.reverse();
    }
}
