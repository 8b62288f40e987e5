//! Watchers: who is told of which change.
//!
//! `server/mvcc/watchable_store.go` and `server/etcdserver/api/v3rpc/watch.go`. The watchers of a
//! key are found by an index, so a write costs time in those that it concerns. History is sent at
//! once, in few messages; a real member takes up to 100 ms for it.

use std::collections::BTreeMap;

use super::{
    Model, StreamId,
    error::Refusal,
    index::RangeIndex,
    range::Range,
    request::{Enumerated, WatchCreateRequest, WatchFilterType},
    response::{Event, EventType, Response, ResponseHeader, WatchResponse},
    size,
};

/// The most revisions in one message (`watchBatchMaxRevs` in `watcher_group.go`).
const REVISIONS_MAX: usize = 1000;

/// A watcher's name: its stream, and its id there.
type WatcherId = (StreamId, i64);

/// One watcher.
#[derive(Debug)]
struct Watcher {
    range: Range,
    /// Events before this revision are not for it.
    from: i64,
    /// The revision that was asked for; 0 is now.
    asked_from: i64,
    filters: Vec<Enumerated<WatchFilterType>>,
    prev_kv: bool,
    fragment: bool,
    /// It began before the compacted revision and has been told so. Until it is cancelled it keeps
    /// its id.
    compacted: bool,
}

impl Watcher {
    fn wants(&self, event: &Event) -> bool {
        event.kv.mod_revision >= self.from && !self.leaves_out(event)
    }

    fn leaves_out(&self, event: &Event) -> bool {
        self.filters.contains(&Enumerated::Known(match event.event_type {
            EventType::Put => WatchFilterType::NoPut,
            EventType::Delete => WatchFilterType::NoDelete,
        }))
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
    by_range: RangeIndex<WatcherId>,
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

    fn insert(&mut self, id: WatcherId, watcher: Watcher) {
        if !watcher.compacted {
            self.by_range.insert(&watcher.range, id);
        }
        self.all.insert(id, watcher);
    }

    fn remove(&mut self, id: WatcherId) -> bool {
        let Some(watcher) = self.all.remove(&id) else { return false };
        self.by_range.remove(&watcher.range, &id);
        true
    }

    fn of_stream(&self, stream: StreamId) -> impl Iterator<Item = (&WatcherId, &Watcher)> {
        self.all.range((stream, i64::MIN)..=(stream, i64::MAX))
    }

    /// Whether the stream has watchers and none of them is behind `revision`
    /// (`progressIfSync`).
    fn are_synced(&self, stream: StreamId, revision: i64) -> bool {
        let mut watchers = self.of_stream(stream).map(|(_, watcher)| watcher).peekable();
        watchers.peek().is_some()
            && watchers.all(|watcher| !watcher.compacted && watcher.asked_from <= revision)
    }

    /// How many watchers there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets a stream with all its watchers.
    pub(super) fn close(&mut self, stream: StreamId) {
        let ids: Vec<WatcherId> = self.of_stream(stream).map(|(id, _)| *id).collect();
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
        let mut told: BTreeMap<WatcherId, (bool, Vec<Event>)> = BTreeMap::new();
        for event in events {
            self.by_range.containing(&event.kv.key, |id| {
                let watcher = &self.all[id];
                if watcher.wants(event) {
                    // Most revisions are of one event.
                    let entry = told
                        .entry(*id)
                        .or_insert_with(|| (watcher.fragment, Vec::with_capacity(1)));
                    entry.1.push(watcher.event(event, compacted));
                }
            });
        }
        let mut responses = Vec::with_capacity(told.len());
        for ((stream, watch_id), (fragment, events)) in told {
            let header = Some(header);
            let whole = WatchResponse { header, watch_id, events, ..WatchResponse::default() };
            if fragment {
                responses.extend(pieces(whole, true).into_iter().map(|piece| (stream, piece)));
            } else {
                responses.push((stream, whole));
            }
        }
        responses
    }
}

/// A large answer in pieces, if the watcher allows it (`sendFragments` in `v3rpc/watch.go`). A
/// piece has at least one event, and stays below the limit if it has more.
fn pieces(mut whole: WatchResponse, allowed: bool) -> Vec<WatchResponse> {
    if !allowed || whole.events.len() < 2 {
        return vec![whole];
    }
    let sizes: Vec<usize> = whole.events.iter().map(size::event).collect();
    if size::watch_frame(&whole) + sizes.iter().sum::<usize>() < size::MESSAGE_BYTES_MAX {
        return vec![whole];
    }
    whole.fragment = true;
    let mut events = std::mem::take(&mut whole.events).into_iter();
    let mut sizes = sizes.into_iter().peekable();
    let mut all = Vec::new();
    while let Some(first) = sizes.next() {
        let (mut size, mut count) = (size::watch_frame(&whole) + first, 1);
        while let Some(more) = sizes.next_if(|more| size + more < size::MESSAGE_BYTES_MAX) {
            size += more;
            count += 1;
        }
        all.push(WatchResponse { events: events.by_ref().take(count).collect(), ..whole.clone() });
    }
    if let Some(last) = all.last_mut() {
        last.fragment = false;
    }
    all
}

impl Model {
    /// Makes a watcher; the answers go out as messages of the stream.
    pub(super) fn watch_create(&mut self, stream: StreamId, request: WatchCreateRequest) {
        let header = Some(self.header());
        let key = if request.key.is_empty() { &[0][..] } else { &request.key };
        let range = Range::new(key, &request.range_end);
        let refuses_negative = self.identity.version.refuses_negative_start();
        let refusal = if refuses_negative && request.start_revision < 0 {
            Some(Refusal::Compacted.to_string())
        } else if range.is_empty() {
            Some("mvcc: watcher range is empty".to_owned())
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
        let WatchCreateRequest { start_revision: asked_from, filters, prev_kv, fragment, .. } =
            request;
        let compacted = asked_from != 0 && asked_from < self.store.compacted();
        let from = match asked_from {
            // A negative one that was let through finds no history.
            ..=0 => self.store.revision() + 1,
            revision => revision,
        };
        let watcher = Watcher { range, from, asked_from, filters, prev_kv, fragment, compacted };
        if compacted {
            self.send_watch(
                stream,
                WatchResponse {
                    header: Some(ResponseHeader::default()),
                    watch_id,
                    canceled: true,
                    compact_revision: self.store.compacted(),
                    ..WatchResponse::default()
                },
            );
        } else {
            self.send_past(stream, watch_id, &watcher);
        }
        self.watchers.insert((stream, watch_id), watcher);
    }

    /// Sends a new watcher what it has missed: one message per so many revisions, whatever the
    /// filters then leave of them (`newWatcherBatch`).
    fn send_past(&mut self, stream: StreamId, watch_id: i64, watcher: &Watcher) {
        let header = Some(self.header());
        let mut batches: Vec<Vec<Event>> = Vec::new();
        let (mut revisions, mut last) = (REVISIONS_MAX, 0);
        for event in self.store.events_from(watcher.from) {
            let revision = event.kv.mod_revision;
            if revision < watcher.from || !watcher.range.contains(&event.kv.key) {
                continue;
            }
            if revision != last {
                (revisions, last) = (revisions + 1, revision);
            }
            if revisions > REVISIONS_MAX {
                batches.push(Vec::new());
                revisions = 1;
            }
            if let (Some(batch), false) = (batches.last_mut(), watcher.leaves_out(event)) {
                batch.push(watcher.event(event, self.store.compacted()));
            }
        }
        for mut events in batches {
            self.miss_deletions(&mut events);
            if events.is_empty() {
                continue;
            }
            let past = WatchResponse { header, watch_id, events, ..WatchResponse::default() };
            for piece in pieces(past, watcher.fragment) {
                self.send_watch(stream, piece);
            }
        }
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

    /// Says how far all watchers of the stream are.
    pub(super) fn watch_progress(&mut self, stream: StreamId) {
        let waits = self.identity.version.progress_waits_for_all();
        if waits && !self.watchers.are_synced(stream, self.store.revision()) {
            return;
        }
        let header = Some(self.header());
        let progress = WatchResponse { header, watch_id: -1, ..WatchResponse::default() };
        self.send_watch(stream, progress);
    }

    fn send_watch(&mut self, stream: StreamId, response: WatchResponse) {
        self.send(stream, Response::Watch(response));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::model::response::KeyValue;

    fn of_value(length: usize) -> Event {
        let kv =
            KeyValue { key: "k".into(), value: vec![b'x'; length].into(), ..KeyValue::default() };
        Event { event_type: EventType::Put, kv, prev_kv: None }
    }

    /// Events of values of 1,000,000 bytes, of as many as fill the message up to `size` with a
    /// frame of `frame` bytes, and of those given.
    fn filled(frame: usize, size: usize, more: &[usize]) -> WatchResponse {
        let first = of_value(1_000_000);
        let length = 1_000_000;
        let others = frame + size::event(&first) + size::event(&of_value(length));
        let second = of_value(length + size - others);
        assert_eq!(frame + size::event(&first) + size::event(&second), size);
        let events = [first, second].into_iter().chain(more.iter().map(|more| of_value(*more)));
        WatchResponse { events: events.collect(), ..WatchResponse::default() }
    }

    fn counts(whole: WatchResponse) -> Vec<(usize, bool)> {
        pieces(whole, true).iter().map(|piece| (piece.events.len(), piece.fragment)).collect()
    }

    /// An answer as large as the limit is sent in pieces, and one a byte below it is not; a piece
    /// ends before the event that would make it as large as the limit.
    #[test]
    fn a_piece_stays_below_the_limit() {
        let limit = size::MESSAGE_BYTES_MAX;
        assert_eq!(counts(filled(0, limit - 1, &[])), [(2, false)]);
        assert_eq!(counts(filled(0, limit, &[])), [(1, true), (1, false)]);
        let piece = WatchResponse { fragment: true, ..WatchResponse::default() };
        let frame = size::watch_frame(&piece);
        assert_eq!(counts(filled(frame, limit - 1, &[10])), [(2, true), (1, false)]);
        assert_eq!(counts(filled(frame, limit, &[10])), [(1, true), (2, false)]);
    }
}
