//! The lock service of the server.

use super::{
    LockResponse, ResponseHeader, UnlockResponse, channel::Channel, error::Result, unexpected,
};
use crate::etcd::model::{request::Request, response::Response};

/// The client of the lock service.
#[derive(Debug, Clone)]
pub struct LockClient {
    channel: Channel,
}

impl LockClient {
    pub(super) fn new(channel: Channel) -> Self {
        LockClient { channel }
    }

    /// Waits for the lock of this name. Calls with one lease are one acquisition. Without a lease
    /// the member makes one of 60 s that nobody renews. A call that is dropped leaves the queue
    /// once the member has heard of it.
    ///
    /// # Errors
    /// A refusal of the member, with code Unknown (no such lease; since 3.5 also: the key has gone
    /// while the call waited), or an unknown outcome.
    pub async fn lock(
        &mut self,
        name: impl Into<Vec<u8>>,
        options: Option<LockOptions>,
    ) -> Result<LockResponse> {
        let LockOptions { lease } = options.unwrap_or_default();
        match self.channel.call(Request::Lock { name: name.into(), lease }).await? {
            Response::Lock(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Deletes the key that a lock gave. Any key is deleted, and an unknown one is no error.
    ///
    /// # Errors
    /// The key is empty, or an unknown outcome.
    pub async fn unlock(&mut self, key: impl Into<Vec<u8>>) -> Result<UnlockResponse> {
        match self.channel.call(Request::Unlock(key.into())).await? {
            Response::Unlock(response) => Ok(response),
            _ => unexpected(),
        }
    }
}

/// Options of a lock.
#[derive(Debug, Default, Clone)]
pub struct LockOptions {
    lease: i64,
}

impl LockOptions {
    /// The server makes a lease.
    pub const fn new() -> Self {
        LockOptions { lease: 0 }
    }

    /// Under this lease.
    pub const fn with_lease(mut self, lease: i64) -> Self {
        self.lease = lease;
        self
    }
}

impl LockResponse {
    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        self.header.as_ref()
    }

    /// Takes the header out.
    pub fn take_header(&mut self) -> Option<ResponseHeader> {
        self.header.take()
    }

    /// The key that exists as long as the lock is held.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

impl UnlockResponse {
    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        self.header.as_ref()
    }

    /// Takes the header out.
    pub fn take_header(&mut self) -> Option<ResponseHeader> {
        self.header.take()
    }
}
