//! Leases: grant, keep alive, revoke, time to live, list.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    Error, LeaseGrantResponse, LeaseKeepAliveResponse, LeaseLeasesResponse, LeaseRevokeResponse,
    LeaseTimeToLiveResponse,
    channel::{Channel, Stream, StreamSender},
    error::Result,
    unexpected,
};
use crate::etcd::model::{request::Request, response::Response};

/// The client of the lease service.
#[derive(Debug, Clone)]
pub struct LeaseClient {
    channel: Channel,
}

impl LeaseClient {
    pub(super) fn new(channel: Channel) -> Self {
        LeaseClient { channel }
    }

    /// Grants a lease of `ttl` seconds; etcd grants at least 2.
    ///
    /// # Errors
    /// A refusal of the member (TTL too large, the id exists), or an unknown outcome.
    pub async fn grant(
        &mut self,
        ttl: i64,
        options: Option<LeaseGrantOptions>,
    ) -> Result<LeaseGrantResponse> {
        let id = options.unwrap_or_default().id();
        match self.channel.call(Request::LeaseGrant { ttl_s: ttl, id }).await? {
            Response::LeaseGrant(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Revokes a lease; its keys are deleted in one revision.
    ///
    /// # Errors
    /// A refusal of the member (no such lease), or an unknown outcome.
    pub async fn revoke(&mut self, id: i64) -> Result<LeaseRevokeResponse> {
        match self.channel.call(Request::LeaseRevoke(id)).await? {
            Response::LeaseRevoke(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Opens a keep-alive stream: renews the lease once and waits for the answer, of which the
    /// caller learns nothing but that it came.
    ///
    /// # Errors
    /// `LeaseKeepAliveError` with `lease not found` if the answer says that the lease is gone (TTL
    /// 0 or less); else an unknown outcome.
    pub async fn keep_alive(&mut self, id: i64) -> Result<(LeaseKeeper, LeaseKeepAliveStream)> {
        let (first, stream) = self.channel.open(Request::KeepAlive(id)).await?;
        match first {
            Response::KeepAlive(response) if response.ttl > 0 => {
                let keeper = LeaseKeeper { id: response.id, sender: stream.sender() };
                Ok((keeper, LeaseKeepAliveStream { stream }))
            }
            Response::KeepAlive(_) => Err(Error::LeaseKeepAliveError("lease not found".to_owned())),
            _ => unexpected(),
        }
    }

    /// The time that is left to a lease.
    ///
    /// # Errors
    /// No answer. An unknown lease is no error: its TTL is -1.
    pub async fn time_to_live(
        &mut self,
        id: i64,
        options: Option<LeaseTimeToLiveOptions>,
    ) -> Result<LeaseTimeToLiveResponse> {
        let keys = options.unwrap_or_default().keys();
        match self.channel.call(Request::LeaseTimeToLive { id, keys }).await? {
            Response::LeaseTimeToLive(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// All leases, the next to expire first.
    ///
    /// # Errors
    /// No answer.
    pub async fn leases(&mut self) -> Result<LeaseLeasesResponse> {
        match self.channel.call(Request::Leases).await? {
            Response::Leases(response) => Ok(response),
            _ => unexpected(),
        }
    }
}

/// Options of a grant.
#[derive(Debug, Default, Clone)]
pub struct LeaseGrantOptions {
    id: i64,
}

impl LeaseGrantOptions {
    /// The server chooses the id.
    pub const fn new() -> Self {
        LeaseGrantOptions { id: 0 }
    }

    /// Chooses the id; 0 lets the server choose.
    pub const fn with_id(mut self, id: i64) -> Self {
        self.id = id;
        self
    }

    pub(in crate::etcd) const fn id(&self) -> i64 {
        self.id
    }
}

/// Options of a question for the time to live.
#[derive(Debug, Default, Clone)]
pub struct LeaseTimeToLiveOptions {
    keys: bool,
}

impl LeaseTimeToLiveOptions {
    /// Without the keys.
    pub const fn new() -> Self {
        LeaseTimeToLiveOptions { keys: false }
    }

    /// Asks for the keys of the lease.
    pub const fn with_keys(mut self) -> Self {
        self.keys = true;
        self
    }

    pub(in crate::etcd) const fn keys(&self) -> bool {
        self.keys
    }
}

/// The asking half of a keep-alive stream. The stream ends when this is dropped.
#[derive(Debug)]
pub struct LeaseKeeper {
    id: i64,
    sender: StreamSender,
}

impl LeaseKeeper {
    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Sends a renewal; the answer comes on the other half.
    ///
    /// # Errors
    /// `LeaseKeepAliveError` if the stream is closed.
    pub async fn keep_alive(&mut self) -> Result<()> {
        self.sender
            .send(Request::KeepAlive(self.id))
            .map_err(|error| Error::LeaseKeepAliveError(error.to_string()))
    }
}

/// The answering half of a keep-alive stream. Dropping it closes the stream.
#[derive(Debug)]
pub struct LeaseKeepAliveStream {
    stream: Stream,
}

impl LeaseKeepAliveStream {
    /// The next answer; none when the stream has ended. A TTL of 0 says that the lease is gone.
    ///
    /// # Errors
    /// The connection was lost.
    pub async fn message(&mut self) -> Result<Option<LeaseKeepAliveResponse>> {
        poll_fn(|cx| self.poll_message(cx)).await.transpose()
    }

    fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<LeaseKeepAliveResponse>>> {
        self.stream.poll_next(cx).map(|answer| {
            answer.map(|answer| match answer? {
                Response::KeepAlive(response) => Ok(response),
                _ => unexpected(),
            })
        })
    }
}

impl futures_util::Stream for LeaseKeepAliveStream {
    type Item = Result<LeaseKeepAliveResponse>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_message(cx)
    }
}
