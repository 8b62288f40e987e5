//! The store: every key as it is now and as it was in every revision since the last compaction.
//!
//! `server/storage/mvcc`. All writes of one request share one main revision; a request that writes
//! nothing has none. Revision 1 is the empty store.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use bytes::Bytes;

use super::{
    error::Refusal,
    range::Range,
    request::{Enumerated, RangeRequest, SortOrder, SortTarget},
    response::{Event, EventType, KeyValue},
};

/// A key at the end of a revision: its pair, or none if it was deleted.
type Version = (i64, Option<KeyValue>);

/// What a range found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) kvs: Vec<KeyValue>,
    /// How many keys are in the range, whatever the limit and the filters.
    pub(crate) count: i64,
    pub(crate) more: bool,
}

/// The multi-version store.
#[derive(Debug)]
pub(crate) struct Store {
    revision: i64,
    /// Nothing before this revision can be read; -1 if nothing has been compacted.
    compacted: i64,
    live: BTreeMap<Bytes, KeyValue>,
    history: BTreeMap<Bytes, Vec<Version>>,
    /// The events of each revision from `first_event` on.
    events: VecDeque<Vec<Event>>,
    first_event: i64,
    /// What the open write has done so far.
    open: Vec<Event>,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            revision: 1,
            compacted: -1,
            live: BTreeMap::new(),
            history: BTreeMap::new(),
            events: VecDeque::new(),
            first_event: 2,
            open: Vec::new(),
        }
    }
}

impl Store {
    /// The current revision; inside an open write, the new one as soon as something was written.
    pub(crate) fn revision(&self) -> i64 {
        self.revision + i64::from(!self.open.is_empty())
    }

    /// The last compacted revision, or -1.
    pub(crate) fn compacted(&self) -> i64 {
        self.compacted
    }

    /// The live pair of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&KeyValue> {
        self.live.get(key)
    }

    /// The live pairs of a range, in order of their keys.
    pub(crate) fn live(&self, range: &Range) -> impl Iterator<Item = &KeyValue> {
        let bounds = if range.is_empty() {
            (Bound::Included(&[][..]), Bound::Excluded(&[][..]))
        } else {
            range.bounds()
        };
        self.live.range::<[u8], _>(bounds).map(|(_, kv)| kv)
    }

    /// Whether a read at this revision can be answered (0 and less is now).
    pub(crate) fn check_revision(&self, revision: i64) -> Result<(), Refusal> {
        if revision > self.revision() {
            return Err(Refusal::FutureRevision);
        }
        if revision > 0 && revision < self.compacted {
            return Err(Refusal::Compacted);
        }
        Ok(())
    }

    /// Whether a transaction may ask for this revision. Unlike alone, a negative one is not now but
    /// before anything that was compacted; -1 if nothing was (`checkRequestRange` in `apply.go`).
    pub(crate) fn check_revision_of_txn(&self, revision: i64) -> Result<(), Refusal> {
        if revision < 0 && revision < self.compacted {
            return Err(Refusal::Compacted);
        }
        self.check_revision(revision)
    }

    /// Reads a range (`executeRange` in `server/etcdserver/txn/range.go`).
    pub(crate) fn range(&self, request: &RangeRequest) -> Result<Found, Refusal> {
        self.check_revision(request.revision)?;
        let range = Range::new(&request.key, &request.range_end);
        let past = request.revision > 0 && request.revision < self.revision();
        // Sorting and filtering want all keys; else etcd fetches one more than the limit.
        let unsorted = Enumerated::Known(SortOrder::None);
        let sorted = request.sort_order != unsorted || has_filter(request);
        let fetch = match request.limit {
            limit if limit > 0 && !sorted => limit as usize + 1,
            _ => usize::MAX,
        };
        let (mut kvs, count) = if past {
            let at = request.revision;
            let found = self.past(&range, at);
            collect(found.iter().copied(), fetch, request.count_only)
        } else {
            collect(self.live(&range), fetch, request.count_only)
        };
        filter(&mut kvs, request);
        sort(&mut kvs, request);
        let more = request.limit > 0 && kvs.len() as i64 > request.limit;
        if more {
            kvs.truncate(request.limit as usize);
        }
        if request.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
        }
        Ok(Found { kvs, count, more })
    }

    fn past(&self, range: &Range, at: i64) -> Vec<&KeyValue> {
        if range.is_empty() {
            return Vec::new();
        }
        let of_key = |versions: &'_ Vec<Version>| {
            let known = versions.partition_point(|(revision, _)| *revision <= at);
            known.checked_sub(1)
        };
        self.history
            .range::<[u8], _>(range.bounds())
            .filter_map(|(_, versions)| versions[of_key(versions)?].1.as_ref())
            .collect()
    }

    /// Writes a pair; gives the pair before. The write is open until [`Store::commit`].
    pub(crate) fn put(&mut self, key: Bytes, value: Bytes, lease: i64) -> Option<KeyValue> {
        let mod_revision = self.revision + 1;
        let prev_kv = self.live.get(&key).cloned();
        let (create_revision, version) = match &prev_kv {
            Some(kv) => (kv.create_revision, kv.version + 1),
            None => (mod_revision, 1),
        };
        let kv = KeyValue { key, value, create_revision, mod_revision, version, lease };
        self.live.insert(kv.key.clone(), kv.clone());
        self.remember(kv.key.clone(), Some(kv.clone()));
        self.open.push(Event { event_type: EventType::Put, kv, prev_kv: prev_kv.clone() });
        prev_kv
    }

    /// Deletes a key; gives the pair that it had. Deleting an absent key is no write.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Option<KeyValue> {
        let prev = self.live.remove(key)?;
        self.remember(prev.key.clone(), None);
        let mod_revision = self.revision + 1;
        let kv = KeyValue { key: prev.key.clone(), mod_revision, ..KeyValue::default() };
        // What a watcher is told it was: the pair at the end of the revision before.
        let prev_kv = match prev.mod_revision == mod_revision {
            true => self.opened_with(key),
            false => Some(prev.clone()),
        };
        self.open.push(Event { event_type: EventType::Delete, kv, prev_kv });
        Some(prev)
    }

    /// The pair that a key had before the open write put it.
    fn opened_with(&self, key: &[u8]) -> Option<KeyValue> {
        self.open.iter().find(|event| event.kv.key == key)?.prev_kv.clone()
    }

    /// A key written twice in one revision (deleted, then deleted again) keeps its last state.
    fn remember(&mut self, key: Bytes, state: Option<KeyValue>) {
        let at = self.revision + 1;
        let versions = self.history.entry(key).or_default();
        match versions.last_mut() {
            Some((revision, last)) if *revision == at => *last = state,
            _ => versions.push((at, state)),
        }
    }

    /// Ends the open write; gives its events, in order, if it wrote anything.
    pub(crate) fn commit(&mut self) -> Option<&[Event]> {
        if self.open.is_empty() {
            return None;
        }
        self.revision += 1;
        self.events.push_back(std::mem::take(&mut self.open));
        self.events.back().map(Vec::as_slice)
    }

    /// The events from a revision on, with that revision, oldest first.
    pub(crate) fn events_from(&self, revision: i64) -> impl Iterator<Item = &Event> {
        let skip = (revision - self.first_event).max(0) as usize;
        self.events.iter().skip(skip).flatten()
    }

    /// How many states of keys are kept, deletions included.
    pub(crate) fn history_len(&self) -> usize {
        self.history.values().map(Vec::len).sum()
    }

    /// How many events are kept.
    pub(crate) fn events_len(&self) -> usize {
        self.events.iter().map(Vec::len).sum()
    }

    /// Forgets what cannot be read any more once `revision` is the oldest readable one
    /// (`Compact` in `kvstore.go`). A deletion in that very revision is kept for watchers or not.
    pub(crate) fn compact(&mut self, revision: i64, tombstones: bool) -> Result<(), Refusal> {
        if revision <= self.compacted {
            return Err(Refusal::Compacted);
        }
        if revision > self.revision {
            return Err(Refusal::FutureRevision);
        }
        self.compacted = revision;
        self.history.retain(|_, versions| {
            let known = versions.partition_point(|(at, _)| *at <= revision);
            versions.drain(..known.saturating_sub(1));
            if versions.capacity() / 4 > versions.len() {
                versions.shrink_to_fit();
            }
            versions.len() > 1 || versions[0].1.is_some() || versions[0].0 > revision
        });
        while self.first_event < revision && self.events.pop_front().is_some() {
            self.first_event += 1;
        }
        if let Some(events) = self.events.front_mut()
            && self.first_event == revision
            && !tombstones
        {
            events.retain(|event| event.event_type != EventType::Delete);
        }
        if self.events.capacity() / 4 > self.events.len() {
            self.events.shrink_to_fit();
        }
        Ok(())
    }
}

impl Store {
    /// Falls back to the greatest revision that is still in the store: what a start did whose
    /// predecessor died after a compaction had taken the newest deletions away and before it had
    /// noted its end (`restore` in `kvstore.go` before 3.5.14). Gives how many revisions are taken
    /// back.
    pub(crate) fn forget_compacted_revisions(&mut self) -> u64 {
        let kept = self.history.values().flatten().map(|(revision, _)| *revision).max();
        let fallen = kept.unwrap_or(1).min(self.revision);
        let taken_back = self.revision - fallen;
        if taken_back > 0 {
            self.revision = fallen;
            // The compaction that was under way is done over, up to where the store is now.
            self.compacted = self.compacted.min(fallen);
            let events = usize::try_from(fallen + 1 - self.first_event).unwrap_or(0);
            self.events.truncate(events);
            self.first_event = self.first_event.min(fallen + 1);
        }
        taken_back as u64
    }
}

fn collect<'a>(
    found: impl Iterator<Item = &'a KeyValue>,
    fetch: usize,
    count_only: bool,
) -> (Vec<KeyValue>, i64) {
    let (mut kvs, mut count) = (Vec::new(), 0);
    for kv in found {
        count += 1;
        if !count_only && kvs.len() < fetch {
            kvs.push(kv.clone());
        }
    }
    (kvs, count)
}

fn has_filter(request: &RangeRequest) -> bool {
    request.min_mod_revision != 0
        || request.max_mod_revision != 0
        || request.min_create_revision != 0
        || request.max_create_revision != 0
}

fn filter(kvs: &mut Vec<KeyValue>, request: &RangeRequest) {
    let within =
        |value: i64, min: i64, max: i64| (min == 0 || value >= min) && (max == 0 || value <= max);
    if has_filter(request) {
        kvs.retain(|kv| {
            within(kv.mod_revision, request.min_mod_revision, request.max_mod_revision)
                && within(
                    kv.create_revision,
                    request.min_create_revision,
                    request.max_create_revision,
                )
        });
    }
}

fn sort(kvs: &mut [KeyValue], request: &RangeRequest) {
    // An unknown order is none; a range with an unknown target that would be sorted is refused.
    let (Enumerated::Known(order), Enumerated::Known(target)) =
        (request.sort_order, request.sort_target)
    else {
        return;
    };
    let order = match (order, target) {
        (SortOrder::None, SortTarget::Key) => return,
        // Another target without an order means ascending.
        (SortOrder::None, _) => SortOrder::Ascend,
        (order, _) => order,
    };
    kvs.sort_by(|a, b| {
        let ascending = match target {
            SortTarget::Key => a.key.cmp(&b.key),
            SortTarget::Version => a.version.cmp(&b.version),
            SortTarget::Create => a.create_revision.cmp(&b.create_revision),
            SortTarget::Mod => a.mod_revision.cmp(&b.mod_revision),
            SortTarget::Value => a.value.cmp(&b.value),
        };
        if order == SortOrder::Descend { ascending.reverse() } else { ascending }
    });
}
