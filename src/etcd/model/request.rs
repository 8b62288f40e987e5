//! What is asked of a member: the requests of etcd's `rpc.proto`, as plain data.
//!
//! The option builders of the client facade fill these in; the model answers them. An enumeration
//! has only etcd's known values: the client's own types cannot carry an unknown one either.

use super::response::LeaderKey;

/// The order of a sorted range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SortOrder {
    /// As the store has them: by key, ascending.
    #[default]
    None,
    /// Ascending.
    Ascend,
    /// Descending.
    Descend,
}

/// What a range is sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SortTarget {
    /// The key.
    #[default]
    Key,
    /// The version.
    Version,
    /// The create revision.
    Create,
    /// The mod revision.
    Mod,
    /// The value.
    Value,
}

/// `RangeRequest`.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeRequest {
    pub(crate) key: Vec<u8>,
    pub(crate) range_end: Vec<u8>,
    pub(crate) limit: i64,
    pub(crate) revision: i64,
    pub(crate) sort_order: SortOrder,
    pub(crate) sort_target: SortTarget,
    pub(crate) serializable: bool,
    pub(crate) keys_only: bool,
    pub(crate) count_only: bool,
    pub(crate) min_mod_revision: i64,
    pub(crate) max_mod_revision: i64,
    pub(crate) min_create_revision: i64,
    pub(crate) max_create_revision: i64,
}

/// `PutRequest`.
#[derive(Debug, Clone, Default)]
pub(crate) struct PutRequest {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) lease: i64,
    pub(crate) prev_kv: bool,
    pub(crate) ignore_value: bool,
    pub(crate) ignore_lease: bool,
}

/// `DeleteRangeRequest`.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteRangeRequest {
    pub(crate) key: Vec<u8>,
    pub(crate) range_end: Vec<u8>,
    pub(crate) prev_kv: bool,
}

/// How a comparison compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompareOp {
    /// Equal.
    Equal,
    /// The key's side is greater.
    Greater,
    /// The key's side is less.
    Less,
    /// Not equal.
    NotEqual,
}

/// What a comparison looks at, with the operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompareTarget {
    Version(i64),
    Create(i64),
    Mod(i64),
    Value(Vec<u8>),
    Lease(i64),
}

/// A comparison of a transaction.
#[derive(Debug, Clone)]
pub struct Compare {
    pub(crate) key: Vec<u8>,
    pub(crate) range_end: Vec<u8>,
    pub(crate) op: CompareOp,
    pub(crate) target: CompareTarget,
}

/// An operation of a transaction.
#[derive(Debug, Clone)]
pub(crate) enum RequestOp {
    Range(RangeRequest),
    Put(PutRequest),
    DeleteRange(DeleteRangeRequest),
    Txn(TxnRequest),
}

/// `TxnRequest`.
#[derive(Debug, Clone, Default)]
pub(crate) struct TxnRequest {
    pub(crate) compare: Vec<Compare>,
    pub(crate) success: Vec<RequestOp>,
    pub(crate) failure: Vec<RequestOp>,
}

impl TxnRequest {
    /// Whether any operation, taken or not, would write.
    pub(crate) fn is_write(&self) -> bool {
        self.success.iter().chain(&self.failure).any(|op| match op {
            RequestOp::Range(_) => false,
            RequestOp::Put(_) | RequestOp::DeleteRange(_) => true,
            RequestOp::Txn(txn) => txn.is_write(),
        })
    }
}

/// Which events a watcher does not want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchFilterType {
    /// No put events.
    NoPut,
    /// No delete events.
    NoDelete,
}

/// `WatchCreateRequest`.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchCreateRequest {
    pub(crate) key: Vec<u8>,
    pub(crate) range_end: Vec<u8>,
    pub(crate) start_revision: i64,
    pub(crate) filters: Vec<WatchFilterType>,
    pub(crate) prev_kv: bool,
    pub(crate) watch_id: i64,
}

/// Anything that a client sends.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Range(RangeRequest),
    Put(PutRequest),
    DeleteRange(DeleteRangeRequest),
    Txn(TxnRequest),
    /// Compact up to this revision.
    Compact(i64),
    /// Grant a lease of `ttl_s` seconds; id 0 lets the server choose.
    LeaseGrant {
        ttl_s: i64,
        id: i64,
    },
    /// Revoke this lease.
    LeaseRevoke(i64),
    /// The time left of this lease, and its keys if asked.
    LeaseTimeToLive {
        id: i64,
        keys: bool,
    },
    /// All leases.
    Leases,
    /// The members of the cluster.
    MemberList,
    /// The state of the member.
    Status,
    /// On a keep-alive stream: renew this lease. The first one opens the stream.
    KeepAlive(i64),
    /// On a watch stream: a new watcher. The first one opens the stream.
    WatchCreate(WatchCreateRequest),
    /// On a watch stream: end this watcher.
    WatchCancel(i64),
    /// On a watch stream: tell how far it is.
    WatchProgress,
    /// Lock this name under this lease; 0 lets the service make one. The answer may take long.
    Lock {
        name: Vec<u8>,
        lease: i64,
    },
    /// Delete the key of a lock.
    Unlock(Vec<u8>),
    /// Lead the election of this name, under this lease or, if it is 0, one that the service makes.
    /// The answer may take long.
    Campaign {
        name: Vec<u8>,
        value: Vec<u8>,
        lease: i64,
    },
    /// Give the leader's key this value.
    Proclaim {
        leader: Option<LeaderKey>,
        value: Vec<u8>,
    },
    /// The leader of the election of this name.
    Leader(Vec<u8>),
    /// Delete the leader's key.
    Resign(Option<LeaderKey>),
    /// A stream of the leaders of the election of this name.
    Observe(Vec<u8>),
    /// The client is done with the stream.
    CloseStream,
    /// The client does not wait any more for the call of this number. It gets no answer.
    Cancel,
}

impl Request {
    /// Whether it is a call that can wait for others: the member has to know when it is given up.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self, Request::Lock { .. } | Request::Campaign { .. })
    }
}
