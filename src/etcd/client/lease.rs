//! Leases: options, answers, keep-alive streams.

use std::sync::Arc;

use super::{
    Error, ResponseHeader,
    connection::{Connection, Connector, Stream},
};
use crate::etcd::{
    frame::{ClientFrame, ServerFrame},
    model::TimeToLive,
};

/// Options for a grant.
#[derive(Debug, Clone, Copy, Default)]
pub struct LeaseGrantOptions {
    id: i64,
}

impl LeaseGrantOptions {
    /// None.
    pub const fn new() -> Self {
        LeaseGrantOptions { id: 0 }
    }

    /// This id instead of one that the member chooses.
    pub const fn with_id(mut self, id: i64) -> Self {
        self.id = id;
        self
    }

    pub(super) fn id(self) -> i64 {
        self.id
    }
}

/// Options for a time-to-live request.
#[derive(Debug, Clone, Copy, Default)]
pub struct LeaseTimeToLiveOptions {
    keys: bool,
}

impl LeaseTimeToLiveOptions {
    /// None.
    pub const fn new() -> Self {
        LeaseTimeToLiveOptions { keys: false }
    }

    /// With the keys of the lease.
    pub const fn with_keys(mut self) -> Self {
        self.keys = true;
        self
    }

    pub(super) fn keys(self) -> bool {
        self.keys
    }
}

macro_rules! header_accessor {
    ($($response:ident),*) => {$(
        impl $response {
            /// The header.
            pub fn header(&self) -> Option<&ResponseHeader> {
                Some(&self.header)
            }
        }
    )*};
}

header_accessor!(
    LeaseGrantResponse,
    LeaseRevokeResponse,
    LeaseKeepAliveResponse,
    LeaseTimeToLiveResponse,
    LeaseLeasesResponse
);

/// The answer to a grant.
#[derive(Debug, Clone)]
pub struct LeaseGrantResponse {
    header: ResponseHeader,
    id: i64,
    ttl_s: i64,
}

impl LeaseGrantResponse {
    pub(super) fn new(revision: i64, id: i64, ttl_s: i64) -> Self {
        LeaseGrantResponse { header: ResponseHeader::new(revision), id, ttl_s }
    }

    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The granted time to live, in seconds.
    pub const fn ttl(&self) -> i64 {
        self.ttl_s
    }

    /// Empty: an error is an error.
    pub fn error(&self) -> &str {
        ""
    }
}

/// The answer to a revoke.
#[derive(Debug, Clone)]
pub struct LeaseRevokeResponse {
    header: ResponseHeader,
}

impl LeaseRevokeResponse {
    pub(super) fn new(revision: i64) -> Self {
        LeaseRevokeResponse { header: ResponseHeader::new(revision) }
    }
}

/// The answer to a renewal.
#[derive(Debug, Clone)]
pub struct LeaseKeepAliveResponse {
    header: ResponseHeader,
    id: i64,
    ttl_s: i64,
}

impl LeaseKeepAliveResponse {
    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The time to live from now, in seconds; 0 if the lease is gone.
    pub const fn ttl(&self) -> i64 {
        self.ttl_s
    }
}

/// The answer to a time-to-live request.
#[derive(Debug, Clone)]
pub struct LeaseTimeToLiveResponse {
    header: ResponseHeader,
    id: i64,
    ttl_s: i64,
    granted_s: i64,
    keys: Vec<Vec<u8>>,
}

impl LeaseTimeToLiveResponse {
    pub(super) fn new(revision: i64, id: i64, known: TimeToLive) -> Self {
        LeaseTimeToLiveResponse {
            header: ResponseHeader::new(revision),
            id,
            ttl_s: known.ttl_s,
            granted_s: known.granted_s,
            keys: known.keys.iter().map(|key| key.to_vec()).collect(),
        }
    }

    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The remaining time in whole seconds; -1 if there is no such lease.
    pub const fn ttl(&self) -> i64 {
        self.ttl_s
    }

    /// The granted time to live, in seconds.
    pub const fn granted_ttl(&self) -> i64 {
        self.granted_s
    }

    /// Its keys, if they were asked for.
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }
}

/// The answer to a lease list.
#[derive(Debug, Clone)]
pub struct LeaseLeasesResponse {
    header: ResponseHeader,
    leases: Vec<LeaseStatus>,
}

/// A lease of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseStatus(i64);

impl LeaseStatus {
    /// The lease.
    pub const fn id(&self) -> i64 {
        self.0
    }
}

impl LeaseLeasesResponse {
    pub(super) fn new(revision: i64, leases: Vec<i64>) -> Self {
        let leases = leases.into_iter().map(LeaseStatus).collect();
        LeaseLeasesResponse { header: ResponseHeader::new(revision), leases }
    }

    /// The leases.
    pub fn leases(&self) -> &[LeaseStatus] {
        &self.leases
    }
}

/// Sends renewals.
pub struct LeaseKeeper {
    id: i64,
    stream: u64,
    connection: Arc<Connection>,
}

impl std::fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseKeeper").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LeaseKeeper {
    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Sends a renewal; its answer comes on the stream.
    pub async fn keep_alive(&mut self) -> Result<(), Error> {
        let sent = self.connection.send(ClientFrame::KeepAlive(self.stream, self.id));
        sent.map_err(|status| Error::LeaseKeepAliveError(status.message().to_owned()))
    }
}

/// The answers to renewals.
#[derive(Debug)]
pub struct LeaseKeepAliveStream {
    stream: Stream,
}

impl LeaseKeepAliveStream {
    /// The next answer; none at the end of the stream.
    pub async fn message(&mut self) -> Result<Option<LeaseKeepAliveResponse>, Error> {
        match self.stream.next().await {
            None => Ok(None),
            Some(Err(status)) => Err(status.into()),
            Some(Ok(ServerFrame::KeepAlive(_, revision, id, ttl_s))) => {
                let header = ResponseHeader::new(revision);
                Ok(Some(LeaseKeepAliveResponse { header, id, ttl_s }))
            }
            Some(Ok(other)) => Err(Error::Internal(format!("not a renewal: {other:?}"))),
        }
    }
}

/// Opens a keep-alive stream. The first renewal is sent and answered before it is open, as in
/// etcd-client.
pub(super) async fn keep_alive(
    connector: &Connector,
    id: i64,
) -> Result<(LeaseKeeper, LeaseKeepAliveStream), Error> {
    let connection = connector.connection().await?;
    let mut stream = LeaseKeepAliveStream { stream: connection.open_stream()? };
    let mut keeper = LeaseKeeper { id, stream: stream.stream.id, connection };
    keeper.keep_alive().await?;
    match stream.message().await? {
        Some(reply) if reply.ttl() > 0 => Ok((keeper, stream)),
        Some(_) => Err(Error::LeaseKeepAliveError("lease not found".to_owned())),
        None => Err(Error::WatchError("failed to create lease keeper".to_owned())),
    }
}
