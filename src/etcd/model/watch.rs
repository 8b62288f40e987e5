//! Watches: who is told of which events.
//!
//! The hub knows every watcher of the member. A watcher is found by its key, or, if it watches a
//! range, by looking through the ranges.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{
    Model, contains,
    wire::{EventKind, StoreEvent, WatchCreate, WatchReply},
};

/// A watch stream: its connection and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    /// The connection.
    pub(crate) connection: u64,
    /// The stream's number within it.
    pub(crate) stream: u64,
}

type WatcherKey = (StreamKey, i64);

/// All watchers of a member.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    watchers: BTreeMap<WatcherKey, WatchCreate>,
    by_key: BTreeMap<Bytes, BTreeSet<WatcherKey>>,
    ranges: BTreeSet<WatcherKey>,
}

impl Hub {
    /// Registers a watcher. Gives the answers: created, then what history has for it, or why not.
    pub(crate) fn create(
        &mut self,
        model: &Model,
        stream: StreamKey,
        mut request: WatchCreate,
    ) -> Vec<WatchReply> {
        let revision = model.revision();
        let refuse = |reason: &str| WatchReply {
            revision,
            watch_id: -1,
            created: true,
            canceled: true,
            cancel_reason: reason.to_owned(),
            ..WatchReply::default()
        };
        if request.key.is_empty() {
            // Without a key and an end, only the key of one zero byte is watched (etcd's rule).
            request.key = Bytes::from_static(&[0]);
        }
        let ends = !matches!(request.range_end.as_ref(), [] | [0]);
        if ends && request.range_end <= request.key {
            return vec![refuse("mvcc: watcher range is empty")];
        }
        let watch_id = match request.watch_id {
            0 => self.free_id(stream),
            id if self.watchers.contains_key(&(stream, id)) => {
                return vec![refuse("mvcc: duplicate watch ID provided on the WatchStream")];
            }
            id => id,
        };
        let created = WatchReply { revision, watch_id, created: true, ..WatchReply::default() };
        let start = request.start_revision;
        if start != 0 && start < model.store.compacted() {
            let compact_revision = model.store.compacted();
            let canceled =
                WatchReply { watch_id, canceled: true, compact_revision, ..WatchReply::default() };
            return vec![created, canceled];
        }
        let mut replies = vec![created];
        if start > 0 && start <= revision {
            let missed = model.store.events_from(start).flat_map(|(_, events)| events);
            let events: Vec<StoreEvent> =
                missed.filter_map(|event| delivered(&request, event)).collect();
            if !events.is_empty() {
                replies.push(WatchReply { revision, watch_id, events, ..WatchReply::default() });
            }
        }
        self.add((stream, watch_id), request);
        replies
    }

    fn free_id(&self, stream: StreamKey) -> i64 {
        let of_stream = self.watchers.range((stream, i64::MIN)..=(stream, i64::MAX));
        of_stream.last().map_or(0, |((_, id), _)| id + 1)
    }

    fn add(&mut self, watcher: WatcherKey, request: WatchCreate) {
        if request.range_end.is_empty() {
            self.by_key.entry(request.key.clone()).or_default().insert(watcher);
        } else {
            self.ranges.insert(watcher);
        }
        self.watchers.insert(watcher, request);
    }

    /// Removes a watcher; false if there is none.
    pub(crate) fn cancel(&mut self, stream: StreamKey, watch_id: i64) -> bool {
        let watcher = (stream, watch_id);
        let Some(request) = self.watchers.remove(&watcher) else { return false };
        self.ranges.remove(&watcher);
        if let Some(watchers) = self.by_key.get_mut(&request.key) {
            watchers.remove(&watcher);
            if watchers.is_empty() {
                self.by_key.remove(&request.key);
            }
        }
        true
    }

    /// Removes every watcher of a stream.
    pub(crate) fn close_stream(&mut self, stream: StreamKey) {
        let range = (stream, i64::MIN)..=(stream, i64::MAX);
        let ids: Vec<i64> = self.watchers.range(range).map(|((_, id), _)| *id).collect();
        for id in ids {
            self.cancel(stream, id);
        }
    }

    /// Removes every watcher of a connection.
    pub(crate) fn close_connection(&mut self, connection: u64) {
        let key = |stream| (StreamKey { connection, stream }, i64::MIN);
        let range = key(0)..(StreamKey { connection: connection + 1, stream: 0 }, i64::MIN);
        let streams: BTreeSet<StreamKey> =
            self.watchers.range(range).map(|((stream, _), _)| *stream).collect();
        for stream in streams {
            self.close_stream(stream);
        }
    }

    /// Who is told what of the events of one revision: one answer a watcher.
    pub(crate) fn notify(
        &self,
        revision: i64,
        events: &[StoreEvent],
    ) -> BTreeMap<WatcherKey, WatchReply> {
        let mut replies: BTreeMap<WatcherKey, WatchReply> = BTreeMap::new();
        for event in events {
            let by_key = self.by_key.get(&event.kv.key).into_iter().flatten();
            for watcher in by_key.chain(&self.ranges) {
                let request = &self.watchers[watcher];
                if request.start_revision > revision {
                    continue;
                }
                if let Some(event) = delivered(request, event) {
                    let reply = replies.entry(*watcher).or_insert_with(|| WatchReply {
                        revision,
                        watch_id: watcher.1,
                        ..WatchReply::default()
                    });
                    reply.events.push(event);
                }
            }
        }
        replies
    }
}

/// The event as this watcher gets it; none if it does not.
fn delivered(request: &WatchCreate, event: &StoreEvent) -> Option<StoreEvent> {
    let filtered = match event.kind {
        EventKind::Put => request.no_put,
        EventKind::Delete => request.no_delete,
    };
    if filtered || !contains(&request.key, &request.range_end, &event.kv.key) {
        return None;
    }
    let prev = event.prev.clone().filter(|_| request.prev_kv);
    Some(StoreEvent { kind: event.kind, kv: event.kv.clone(), prev })
}
