//! The client: methods, option builders and accessors of the `etcd-client` crate, version 0.18.

mod cluster;
mod connection;
mod error;
mod facade;
mod kv;
mod lease;
mod txn;
mod watch;

use std::time::Duration;

use bytes::Bytes;

pub use cluster::{Member, MemberListResponse, StatusResponse};
pub use error::Error;
pub use facade::{Client, KvClient, LeaseClient, WatchClient};
pub use kv::{
    CompactionOptions, CompactionResponse, DeleteOptions, DeleteResponse, GetOptions, GetResponse,
    KeyValue, PutOptions, PutResponse,
};
pub use lease::{
    LeaseGrantOptions, LeaseGrantResponse, LeaseKeepAliveResponse, LeaseKeepAliveStream,
    LeaseKeeper, LeaseLeasesResponse, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveOptions,
    LeaseTimeToLiveResponse,
};
pub use txn::{Compare, Txn, TxnOp, TxnOpResponse, TxnResponse};
pub use watch::{Event, EventType, WatchFilterType, WatchOptions, WatchResponse, WatchStream};

pub use super::model::wire::{CompareOp, SortOrder, SortTarget};

/// The answer header: which member answered, at which revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    revision: i64,
}

impl ResponseHeader {
    pub(super) fn new(revision: i64) -> Self {
        ResponseHeader { revision }
    }

    /// The cluster's id: one constant in simulation.
    pub const fn cluster_id(&self) -> u64 {
        1
    }

    /// The member's id: one constant in simulation.
    pub const fn member_id(&self) -> u64 {
        1
    }

    /// The store's revision when the request was applied.
    pub const fn revision(&self) -> i64 {
        self.revision
    }

    /// The raft term: one constant in simulation.
    pub const fn raft_term(&self) -> u64 {
        2
    }
}

/// Options for connecting.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    pub(super) timeout: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
}

impl ConnectOptions {
    /// No limits.
    pub const fn new() -> Self {
        ConnectOptions { timeout: None, connect_timeout: None }
    }

    /// The longest time that a request may take.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The longest time that a connection may take to be made.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Accepted and without effect: there is no HTTP/2 ping in simulation.
    pub fn with_keep_alive(self, _interval: Duration, _timeout: Duration) -> Self {
        self
    }

    /// Accepted and without effect: there is one member.
    pub fn with_require_leader(self, _require_leader: bool) -> Self {
        self
    }
}

/// The end of the range of all keys that begin with `prefix`: its last byte that can be is raised
/// by one; if there is none, the range has no end.
pub(crate) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte < 0xff) {
        Some(at) => {
            let mut end = prefix[..=at].to_vec();
            end[at] += 1;
            end
        }
        None => vec![0],
    }
}

/// A key and, if it is a range, how far it goes.
#[derive(Debug, Clone, Default)]
enum Range {
    #[default]
    One,
    To(Bytes),
    Prefix,
    From,
    All,
}

impl Range {
    /// The key and the range end that go on the wire.
    fn of(&self, key: Bytes) -> (Bytes, Bytes) {
        let zero = || Bytes::from_static(&[0]);
        match self {
            Range::One => (key, Bytes::new()),
            Range::To(end) => (key, end.clone()),
            // An empty prefix is every key.
            Range::Prefix if key.is_empty() => (zero(), zero()),
            Range::Prefix => {
                let end = prefix_end(&key).into();
                (key, end)
            }
            Range::From if key.is_empty() => (zero(), zero()),
            Range::From => (key, zero()),
            Range::All => (zero(), zero()),
        }
    }
}
