//! Watches.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    Error, KeyRange, WatchFilterType, WatchResponse,
    channel::{Channel, Stream},
    error::Result,
    key_range_options, unexpected,
};
use crate::etcd::model::{
    request::{Enumerated, Request, WatchCreateRequest},
    response::Response,
};

/// The client of the watch service.
#[derive(Debug, Clone)]
pub struct WatchClient {
    channel: Channel,
}

impl WatchClient {
    pub(super) fn new(channel: Channel) -> Self {
        WatchClient { channel }
    }

    /// Opens a watch stream with one watcher. Its first message says `created`; etcd-client does
    /// not take it out, and waits for it here: the headers of the reply come with it.
    ///
    /// # Errors
    /// No answer. A refused watcher is a message of the stream.
    pub async fn watch(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<WatchOptions>,
    ) -> Result<WatchStream> {
        let request = options.unwrap_or_default().into_request(key.into());
        let (first, stream) = self.channel.open(Request::WatchCreate(request)).await?;
        match first {
            Response::Watch(first) => Ok(WatchStream { stream, first: Some(first) }),
            _ => unexpected(),
        }
    }
}

/// Options of a watch.
#[derive(Debug, Default, Clone)]
pub struct WatchOptions {
    request: WatchCreateRequest,
    range: KeyRange,
}

impl WatchOptions {
    /// One key, from now on, all events.
    pub const fn new() -> Self {
        WatchOptions {
            request: WatchCreateRequest {
                key: Vec::new(),
                range_end: Vec::new(),
                start_revision: 0,
                filters: Vec::new(),
                prev_kv: false,
                fragment: false,
                watch_id: 0,
            },
            range: KeyRange::new(),
        }
    }

    key_range_options!();

    /// Begins with the events of this revision; 0 is now.
    pub const fn with_start_revision(mut self, revision: i64) -> Self {
        self.request.start_revision = revision;
        self
    }

    /// Asks for a sign of life every 10 minutes; without effect here.
    pub const fn with_progress_notify(self) -> Self {
        self
    }

    /// Leaves events out.
    pub fn with_filters(mut self, filters: impl Into<Vec<WatchFilterType>>) -> Self {
        self.request.filters = filters.into().into_iter().map(Enumerated::Known).collect();
        self
    }

    /// Asks for the pair before each event.
    pub const fn with_prev_key(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }

    /// Chooses the watcher's id; 0 lets the server choose.
    pub const fn with_watch_id(mut self, watch_id: i64) -> Self {
        self.request.watch_id = watch_id;
        self
    }

    /// Allows the member to split an answer of 2 MiB and more. etcd-client hands out the pieces as
    /// they come.
    pub const fn with_fragment(mut self) -> Self {
        self.request.fragment = true;
        self
    }

    fn into_request(self, key: Vec<u8>) -> WatchCreateRequest {
        let (key, range_end) = self.range.build(key);
        WatchCreateRequest { key, range_end, ..self.request }
    }
}

/// An open watch stream. Dropping it ends all its watchers.
#[derive(Debug)]
pub struct WatchStream {
    stream: Stream,
    /// The first message, read when the stream was opened.
    first: Option<WatchResponse>,
}

impl WatchStream {
    /// Makes one more watcher on this stream; the answer is a message of the stream.
    ///
    /// # Errors
    /// `WatchError` if the stream is closed.
    pub async fn watch(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<WatchOptions>,
    ) -> Result<()> {
        self.send(Request::WatchCreate(options.unwrap_or_default().into_request(key.into())))
    }

    /// Ends a watcher; the answer is a message of the stream.
    ///
    /// # Errors
    /// `WatchError` if the stream is closed.
    pub async fn cancel(&mut self, watch_id: i64) -> Result<()> {
        self.send(Request::WatchCancel(watch_id))
    }

    /// Asks how far the watchers are; the answer is a message of the stream.
    ///
    /// # Errors
    /// `WatchError` if the stream is closed.
    pub async fn request_progress(&mut self) -> Result<()> {
        self.send(Request::WatchProgress)
    }

    fn send(&mut self, request: Request) -> Result<()> {
        self.stream.send(request).map_err(|error| Error::WatchError(error.to_string()))
    }

    /// The next message; none when the stream has ended.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn message(&mut self) -> Result<Option<WatchResponse>> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<WatchResponse>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.stream.poll_next(cx).map(|answer| {
            answer.map(|answer| match answer? {
                Response::Watch(response) => Ok(response),
                _ => unexpected(),
            })
        })
    }
}

impl futures_util::Stream for WatchStream {
    type Item = Result<WatchResponse>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_message(cx)
    }
}
