//! The lock service of the server. Not simulated yet: its names are here, its calls are refused.

use super::{
    ResponseHeader,
    error::{Result, not_simulated},
};

/// The client of the lock service.
#[derive(Debug, Clone)]
pub struct LockClient(());

impl LockClient {
    pub(super) fn new() -> Self {
        LockClient(())
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn lock(
        &mut self,
        _name: impl Into<Vec<u8>>,
        _options: Option<LockOptions>,
    ) -> Result<LockResponse> {
        Err(not_simulated("the lock service"))
    }

    /// Not simulated yet.
    ///
    /// # Errors
    /// Always: Unimplemented.
    pub async fn unlock(&mut self, _key: impl Into<Vec<u8>>) -> Result<UnlockResponse> {
        Err(not_simulated("the lock service"))
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

/// The answer to a lock.
#[derive(Debug, Clone)]
pub struct LockResponse {
    header: Option<ResponseHeader>,
    key: Vec<u8>,
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

/// The answer to an unlock.
#[derive(Debug, Clone)]
pub struct UnlockResponse {
    header: Option<ResponseHeader>,
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
