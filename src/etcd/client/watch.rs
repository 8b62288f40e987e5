//! Watches: options, streams, events.

use bytes::Bytes;

use super::{
    Error, KeyValue, Range, ResponseHeader,
    connection::{Connector, Stream},
};
use crate::etcd::{
    frame::{ClientFrame, ServerFrame},
    model::wire::{self, StoreEvent, WatchCreate, WatchReply},
};

/// Which events are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchFilterType {
    /// Puts.
    NoPut,
    /// Deletions.
    NoDelete,
}

/// Options for a watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    request: WatchCreate,
    range: Range,
}

impl WatchOptions {
    /// None: from now on, one key.
    pub fn new() -> Self {
        Self::default()
    }

    /// All keys up to `end`, without it.
    pub fn with_range(mut self, end: impl Into<Vec<u8>>) -> Self {
        self.range = Range::To(end.into().into());
        self
    }

    /// All keys from the key on.
    pub fn with_from_key(mut self) -> Self {
        self.range = Range::From;
        self
    }

    /// All keys that begin with the key.
    pub fn with_prefix(mut self) -> Self {
        self.range = Range::Prefix;
        self
    }

    /// All keys.
    pub fn with_all_keys(mut self) -> Self {
        self.range = Range::All;
        self
    }

    /// From this revision on; 0 is now.
    pub fn with_start_revision(mut self, revision: i64) -> Self {
        self.request.start_revision = revision;
        self
    }

    /// Leaves events out.
    pub fn with_filters(mut self, filters: impl Into<Vec<WatchFilterType>>) -> Self {
        let filters = filters.into();
        self.request.no_put = filters.contains(&WatchFilterType::NoPut);
        self.request.no_delete = filters.contains(&WatchFilterType::NoDelete);
        self
    }

    /// With what was there before each event.
    pub fn with_prev_key(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }

    /// This id instead of one that the member chooses.
    pub fn with_watch_id(mut self, watch_id: i64) -> Self {
        self.request.watch_id = watch_id;
        self
    }

    /// Accepted and without effect: progress is told when it is asked for.
    pub fn with_progress_notify(self) -> Self {
        self
    }

    fn into_request(self, key: Vec<u8>) -> WatchCreate {
        let (key, range_end) = self.range.of(Bytes::from(key));
        WatchCreate { key, range_end, ..self.request }
    }
}

/// A stream of watch answers; dropping it ends its watchers.
#[derive(Debug)]
pub struct WatchStream {
    stream: Stream,
}

pub(super) async fn open(
    connector: &Connector,
    key: Vec<u8>,
    options: Option<WatchOptions>,
) -> Result<WatchStream, Error> {
    let connection = connector.connection().await?;
    let mut stream = WatchStream { stream: connection.open_stream()? };
    stream.watch(key, options).await?;
    Ok(stream)
}

impl WatchStream {
    fn send(&self, frame: ClientFrame) -> Result<(), Error> {
        let sent = self.stream.connection.send(frame);
        sent.map_err(|status| Error::WatchError(status.message().to_owned()))
    }

    /// Adds a watcher to the stream.
    pub async fn watch(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<WatchOptions>,
    ) -> Result<(), Error> {
        let request = options.unwrap_or_default().into_request(key.into());
        self.send(ClientFrame::Watch(self.stream.id, request))
    }

    /// Ends a watcher.
    pub async fn cancel(&mut self, watch_id: i64) -> Result<(), Error> {
        self.send(ClientFrame::CancelWatch(self.stream.id, watch_id))
    }

    /// Asks how far the stream has come.
    pub async fn request_progress(&mut self) -> Result<(), Error> {
        self.send(ClientFrame::Progress(self.stream.id))
    }

    /// The next answer; none at the end of the stream.
    pub async fn message(&mut self) -> Result<Option<WatchResponse>, Error> {
        match self.stream.next().await {
            None => Ok(None),
            Some(Err(status)) => Err(status.into()),
            Some(Ok(ServerFrame::Watch(_, reply))) => Ok(Some(WatchResponse::new(reply))),
            Some(Ok(other)) => Err(Error::Internal(format!("not of a watch: {other:?}"))),
        }
    }
}

/// An answer of a watch.
#[derive(Debug, Clone)]
pub struct WatchResponse {
    header: ResponseHeader,
    reply: WatchReply,
    events: Vec<Event>,
}

impl WatchResponse {
    fn new(mut reply: WatchReply) -> Self {
        let header = ResponseHeader::new(reply.revision);
        let events = std::mem::take(&mut reply.events).into_iter().map(Event::new).collect();
        WatchResponse { header, reply, events }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// The watcher.
    pub const fn watch_id(&self) -> i64 {
        self.reply.watch_id
    }

    /// The watcher has just been made.
    pub const fn created(&self) -> bool {
        self.reply.created
    }

    /// The watcher has ended.
    pub const fn canceled(&self) -> bool {
        self.reply.canceled
    }

    /// The revision up to which history is gone, if that ended the watcher.
    pub const fn compact_revision(&self) -> i64 {
        self.reply.compact_revision
    }

    /// Why the watcher ended.
    pub fn cancel_reason(&self) -> &str {
        &self.reply.cancel_reason
    }

    /// What happened.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}

/// Put or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Put.
    Put,
    /// Deleted.
    Delete,
}

/// A change of one key.
#[derive(Debug, Clone)]
pub struct Event {
    kind: EventType,
    kv: KeyValue,
    prev: Option<KeyValue>,
}

impl Event {
    fn new(event: StoreEvent) -> Self {
        let kind = match event.kind {
            wire::EventKind::Put => EventType::Put,
            wire::EventKind::Delete => EventType::Delete,
        };
        Event { kind, kv: KeyValue::new(event.kv), prev: event.prev.map(KeyValue::new) }
    }

    /// What happened.
    pub fn event_type(&self) -> EventType {
        self.kind
    }

    /// The key after it.
    pub fn kv(&self) -> Option<&KeyValue> {
        Some(&self.kv)
    }

    /// The key before it, if that was asked for.
    pub fn prev_kv(&self) -> Option<&KeyValue> {
        self.prev.as_ref()
    }
}
