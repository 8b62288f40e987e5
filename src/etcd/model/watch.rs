//! Watchers: who is told of which change.
//!
//! `server/storage/mvcc/watchable_store.go` and `server/etcdserver/api/v3rpc/watch.go`, with the
//! answers of 3.5.30. Watchers of one key are found by key, watchers of a range by the start of the
//! range. History is sent at once, as one response; a real member takes up to 100 ms for it.

use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;

use super::{
    Model, StreamId,
    error::Refusal,
    range::{End, Range},
    request::{WatchCreateRequest, WatchFilterType},
    response::{Event, EventType, Response, ResponseHeader, WatchResponse},
};

/// A watcher's name: its stream, and its id there.
type WatcherId = (StreamId, i64);

/// One watcher.
#[derive(Debug)]
struct Watcher {
    range: Range,
    /// Events before this revision are not for it.
    from: i64,
    filters: Vec<WatchFilterType>,
    prev_kv: bool,
}

impl Watcher {
    fn wants(&self, event: &Event) -> bool {
        let unwanted = match event.event_type {
            EventType::Put => WatchFilterType::NoPut,
            EventType::Delete => WatchFilterType::NoDelete,
        };
        event.kv.mod_revision >= self.from && !self.filters.contains(&unwanted)
    }

    /// The event as it is sent; a previous pair that has been compacted away is left out.
    fn event(&self, event: &Event, compacted: i64) -> Event {
        let keep = self.prev_kv && event.kv.mod_revision > compacted;
        Event {
            event_type: event.event_type,
            kv: event.kv.clone(),
            prev_kv: if keep { event.prev_kv.clone() } else { None },
        }
    }
}

/// All watchers of a member.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    all: BTreeMap<WatcherId, Watcher>,
    by_key: BTreeMap<Bytes, Vec<WatcherId>>,
    by_start: BTreeMap<Bytes, Vec<WatcherId>>,
    next_id: BTreeMap<StreamId, i64>,
}

impl Watchers {
    fn choose_id(&mut self, stream: StreamId, asked: i64) -> Option<i64> {
        if asked != 0 {
            return (!self.all.contains_key(&(stream, asked))).then_some(asked);
        }
        let next = self.next_id.entry(stream).or_default();
        while self.all.contains_key(&(stream, *next)) {
            *next += 1;
        }
        *next += 1;
        Some(*next - 1)
    }

    fn index(&mut self, range: &Range) -> &mut Vec<WatcherId> {
        let map = match range.end {
            End::Single => &mut self.by_key,
            End::Open | End::Before(_) => &mut self.by_start,
        };
        map.entry(range.start.clone()).or_default()
    }

    fn insert(&mut self, id: WatcherId, watcher: Watcher) {
        self.index(&watcher.range).push(id);
        self.all.insert(id, watcher);
    }

    fn remove(&mut self, id: WatcherId) -> bool {
        let Some(watcher) = self.all.remove(&id) else { return false };
        let index = self.index(&watcher.range);
        index.retain(|other| *other != id);
        if index.is_empty() {
            match watcher.range.end {
                End::Single => self.by_key.remove(&watcher.range.start),
                End::Open | End::Before(_) => self.by_start.remove(&watcher.range.start),
            };
        }
        true
    }

    /// Forgets a stream with all its watchers.
    pub(super) fn close(&mut self, stream: StreamId) {
        let ids: Vec<WatcherId> =
            self.all.range((stream, i64::MIN)..=(stream, i64::MAX)).map(|(id, _)| *id).collect();
        for id in ids {
            self.remove(id);
        }
        self.next_id.remove(&stream);
    }

    /// What each watcher is told of the events of one revision, by stream and watch id.
    pub(super) fn notify(
        &self,
        header: ResponseHeader,
        events: &[Event],
        compacted: i64,
    ) -> Vec<(StreamId, WatchResponse)> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let mut told: BTreeMap<WatcherId, Vec<Event>> = BTreeMap::new();
        for event in events {
            let key = &event.kv.key;
            let up_to = (Bound::Unbounded, Bound::Included(&key[..]));
            let single = self.by_key.get(key).into_iter().flatten();
            let ranges = self.by_start.range::<[u8], _>(up_to).flat_map(|(_, ids)| ids);
            for id in single.chain(ranges) {
                let watcher = &self.all[id];
                if watcher.range.contains(key) && watcher.wants(event) {
                    told.entry(*id).or_default().push(watcher.event(event, compacted));
                }
            }
        }
        let response = |((stream, watch_id), events)| {
            let header = Some(header);
            (stream, WatchResponse { header, watch_id, events, ..WatchResponse::default() })
        };
        told.into_iter().map(response).collect()
    }
}

impl Model {
    /// Makes a watcher; the answers go out as messages of the stream.
    pub(super) fn watch_create(&mut self, stream: StreamId, request: WatchCreateRequest) {
        let header = Some(self.header());
        let key = if request.key.is_empty() { &[0][..] } else { &request.key };
        let range = Range::new(key, &request.range_end);
        let refusal = if range.is_empty() {
            Some("mvcc: watcher range is empty".to_owned())
        } else if request.start_revision < 0 {
            Some(Refusal::Compacted.to_string())
        } else {
            None
        };
        let id = match &refusal {
            None => self.watchers.choose_id(stream, request.watch_id),
            Some(_) => None,
        };
        let Some(watch_id) = id else {
            let duplicate = "mvcc: duplicate watch ID provided on the WatchStream";
            return self.send_watch(
                stream,
                WatchResponse {
                    header,
                    watch_id: -1,
                    created: true,
                    canceled: true,
                    cancel_reason: refusal.unwrap_or_else(|| duplicate.to_owned()),
                    ..WatchResponse::default()
                },
            );
        };
        let created = WatchResponse { header, watch_id, created: true, ..WatchResponse::default() };
        self.send_watch(stream, created);
        let from = match request.start_revision {
            0 => self.store.revision() + 1,
            revision => revision,
        };
        if from < self.store.compacted() {
            return self.send_watch(
                stream,
                WatchResponse {
                    header: Some(ResponseHeader::default()),
                    watch_id,
                    canceled: true,
                    compact_revision: self.store.compacted(),
                    ..WatchResponse::default()
                },
            );
        }
        let WatchCreateRequest { filters, prev_kv, .. } = request;
        let watcher = Watcher { range, from, filters, prev_kv };
        let mut events: Vec<Event> = self
            .store
            .events_from(from)
            .filter(|event| watcher.range.contains(&event.kv.key) && watcher.wants(event))
            .map(|event| watcher.event(event, self.store.compacted()))
            .collect();
        self.miss_deletions(&mut events);
        if !events.is_empty() {
            let past = WatchResponse { header, watch_id, events, ..WatchResponse::default() };
            self.send_watch(stream, past);
        }
        self.watchers.insert((stream, watch_id), watcher);
    }

    /// Ends a watcher; an unknown one gets no answer.
    pub(super) fn watch_cancel(&mut self, stream: StreamId, watch_id: i64) {
        if self.watchers.remove((stream, watch_id)) {
            let header = Some(self.header());
            let ended =
                WatchResponse { header, watch_id, canceled: true, ..WatchResponse::default() };
            self.send_watch(stream, ended);
        }
    }

    /// Says how far all watchers of the stream are: they are never behind here.
    pub(super) fn watch_progress(&mut self, stream: StreamId) {
        let header = Some(self.header());
        let progress = WatchResponse { header, watch_id: -1, ..WatchResponse::default() };
        self.send_watch(stream, progress);
    }

    fn send_watch(&mut self, stream: StreamId, response: WatchResponse) {
        self.send(stream, Response::Watch(response));
    }
}
