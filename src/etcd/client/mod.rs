//! The client facade: the API of etcd-client 0.18 over the simulated network.
//!
//! Same names, same signatures, same order of arguments, same errors where the transport allows it
//! (`error.rs`). Option types build requests of the model, response types are the model's own; this
//! is where their accessors are. What the simulation does not have answers with the gRPC code
//! Unimplemented and a text that begins with `not simulated`.

mod channel;
mod cluster;
mod election;
mod error;
mod handle;
mod kv;
mod lease;
mod lock;
mod maintenance;
mod response;
mod txn;
mod watch;

pub use self::{
    cluster::{ClusterClient, MemberAddOptions, MemberAddResponse},
    election::{ElectionClient, ObserveStream, ProclaimOptions, ResignOptions},
    error::Error,
    handle::{Client, ConnectOptions},
    kv::{CompactionOptions, DeleteOptions, GetOptions, KvClient, PutOptions},
    lease::{
        LeaseClient, LeaseGrantOptions, LeaseKeepAliveStream, LeaseKeeper, LeaseTimeToLiveOptions,
    },
    lock::{LockClient, LockOptions},
    maintenance::MaintenanceClient,
    txn::{Txn, TxnOp},
    watch::{WatchClient, WatchOptions, WatchStream},
};
pub use super::model::{
    request::{Compare, CompareOp, SortOrder, SortTarget, WatchFilterType},
    response::{
        CampaignResponse, CompactionResponse, DeleteResponse, Event, EventType, GetResponse,
        KeyValue, LeaderKey, LeaderResponse, LeaseGrantResponse, LeaseKeepAliveResponse,
        LeaseLeasesResponse, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveResponse,
        LockResponse, Member, MemberListResponse, ProclaimResponse, PutResponse, ResignResponse,
        ResponseHeader, StatusResponse, TxnOpResponse, TxnResponse, UnlockResponse, WatchResponse,
    },
};

use self::error::Result;

/// The range of a request, as the option types collect it.
#[derive(Debug, Default, Clone)]
struct KeyRange {
    range_end: Vec<u8>,
    extent: Extent,
}

/// How far a range goes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The key alone, or up to the given end.
    #[default]
    Given,
    FromKey,
    Prefix,
    AllKeys,
}

impl KeyRange {
    const fn new() -> Self {
        KeyRange { range_end: Vec::new(), extent: Extent::Given }
    }

    fn with_range(&mut self, end: impl Into<Vec<u8>>) {
        self.range_end = end.into();
        self.extent = Extent::Given;
    }

    /// `key` and `range_end` of the request (`KeyRange::build` of etcd-client).
    fn build(self, key: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
        match self.extent {
            Extent::Given => (key, self.range_end),
            Extent::AllKeys => (vec![0], vec![0]),
            Extent::FromKey | Extent::Prefix if key.is_empty() => (vec![0], vec![0]),
            Extent::FromKey => (key, vec![0]),
            Extent::Prefix => {
                let end = super::model::range::prefix_end(&key);
                (key, end)
            }
        }
    }
}

/// The builder methods of a range, the same for every option type that has one.
macro_rules! key_range_options {
    () => {
        /// Takes the keys from the key up to `end`, which is excluded.
        pub fn with_range(mut self, end: impl Into<Vec<u8>>) -> Self {
            self.range.with_range(end);
            self
        }

        /// Takes all keys at or after the key.
        pub fn with_from_key(mut self) -> Self {
            self.range.extent = super::Extent::FromKey;
            self
        }

        /// Takes all keys that begin with the key.
        pub fn with_prefix(mut self) -> Self {
            self.range.extent = super::Extent::Prefix;
            self
        }

        /// Takes all keys.
        pub fn with_all_keys(mut self) -> Self {
            self.range.extent = super::Extent::AllKeys;
            self
        }
    };
}
use key_range_options;

/// An answer of another kind than was asked for: our own client and member disagree.
fn unexpected<T>() -> Result<T> {
    Err(Error::Internal("the member answered another question".to_owned()))
}
