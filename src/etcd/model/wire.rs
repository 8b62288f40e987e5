//! Requests and answers, with the names of etcd's protocol (api/etcdserverpb/rpc.proto).

use bytes::Bytes;
use tonic::{Code, Status};

/// A key with its value and its history's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The revision that created this incarnation.
    pub create_revision: i64,
    /// The revision of the last change.
    pub mod_revision: i64,
    /// How often it was put since it was created.
    pub version: i64,
    /// The value.
    pub value: Bytes,
    /// Its lease; 0 is none.
    pub lease: i64,
}

/// Put or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Put.
    Put,
    /// Deleted.
    Delete,
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEvent {
    /// What happened.
    pub kind: EventKind,
    /// The key after it; a deletion has only key and mod revision.
    pub kv: KeyValue,
    /// The key before it.
    pub prev: Option<KeyValue>,
}

impl StoreEvent {
    pub(super) fn prev_or_own_create_revision(&self) -> i64 {
        match (self.kind, &self.prev) {
            (EventKind::Delete, Some(prev)) => prev.create_revision,
            _ => self.kv.create_revision,
        }
    }

    pub(super) fn prev_or_own_lease(&self) -> i64 {
        match (self.kind, &self.prev) {
            (EventKind::Delete, Some(prev)) => prev.lease,
            _ => self.kv.lease,
        }
    }
}

/// In which order a range is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// By key.
    #[default]
    None,
    /// Smallest first.
    Ascend,
    /// Greatest first.
    Descend,
}

/// By what a range is sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
pub struct RangeRequest {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    pub(crate) limit: i64,
    pub(crate) revision: i64,
    pub(crate) sort_order: SortOrder,
    pub(crate) sort_target: SortTarget,
    pub(crate) keys_only: bool,
    pub(crate) count_only: bool,
    pub(crate) min_mod_revision: i64,
    pub(crate) max_mod_revision: i64,
    pub(crate) min_create_revision: i64,
    pub(crate) max_create_revision: i64,
}

/// `RangeResponse`.
#[derive(Debug, Clone, Default)]
pub struct RangeReply {
    pub(crate) revision: i64,
    pub(crate) kvs: Vec<KeyValue>,
    pub(crate) more: bool,
    pub(crate) count: i64,
}

/// `PutRequest`.
#[derive(Debug, Clone, Default)]
pub struct PutRequest {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    pub(crate) lease: i64,
    pub(crate) prev_kv: bool,
    pub(crate) ignore_value: bool,
    pub(crate) ignore_lease: bool,
}

/// `PutResponse`.
#[derive(Debug, Clone, Default)]
pub struct PutReply {
    pub(crate) revision: i64,
    pub(crate) prev_kv: Option<KeyValue>,
}

/// `DeleteRangeRequest`.
#[derive(Debug, Clone, Default)]
pub struct DeleteRequest {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    pub(crate) prev_kv: bool,
}

/// `DeleteRangeResponse`.
#[derive(Debug, Clone, Default)]
pub struct DeleteReply {
    pub(crate) revision: i64,
    pub(crate) deleted: i64,
    pub(crate) prev_kvs: Vec<KeyValue>,
}

/// How a compare compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// The same.
    Equal,
    /// The key's is greater.
    Greater,
    /// The key's is less.
    Less,
    /// Another.
    NotEqual,
}

/// What a compare compares with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompareTarget {
    /// The version.
    Version(i64),
    /// The create revision.
    Create(i64),
    /// The mod revision.
    Mod(i64),
    /// The value.
    Value(Bytes),
    /// The lease.
    Lease(i64),
}

/// `Compare`.
#[derive(Debug, Clone)]
pub struct CompareRequest {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    pub(crate) result: CompareOp,
    pub(crate) target: CompareTarget,
}

/// `TxnRequest`.
#[derive(Debug, Clone, Default)]
pub struct TxnRequest {
    pub(crate) compare: Vec<CompareRequest>,
    pub(crate) success: Vec<RequestOp>,
    pub(crate) failure: Vec<RequestOp>,
}

/// `RequestOp`.
#[derive(Debug, Clone)]
pub enum RequestOp {
    /// A range.
    Range(RangeRequest),
    /// A put.
    Put(PutRequest),
    /// A delete.
    Delete(DeleteRequest),
    /// A nested transaction.
    Txn(TxnRequest),
}

/// `ResponseOp`.
#[derive(Debug, Clone)]
pub enum ResponseOp {
    /// Of a range.
    Range(RangeReply),
    /// Of a put.
    Put(PutReply),
    /// Of a delete.
    Delete(DeleteReply),
    /// Of a nested transaction.
    Txn(TxnReply),
}

/// `TxnResponse`.
#[derive(Debug, Clone, Default)]
pub struct TxnReply {
    pub(crate) revision: i64,
    pub(crate) succeeded: bool,
    pub(crate) responses: Vec<ResponseOp>,
}

/// `WatchCreateRequest`.
#[derive(Debug, Clone, Default)]
pub struct WatchCreate {
    pub(crate) key: Bytes,
    pub(crate) range_end: Bytes,
    pub(crate) start_revision: i64,
    pub(crate) prev_kv: bool,
    pub(crate) no_put: bool,
    pub(crate) no_delete: bool,
    pub(crate) watch_id: i64,
}

/// `WatchResponse`.
#[derive(Debug, Clone, Default)]
pub struct WatchReply {
    pub(crate) revision: i64,
    pub(crate) watch_id: i64,
    pub(crate) created: bool,
    pub(crate) canceled: bool,
    pub(crate) compact_revision: i64,
    pub(crate) cancel_reason: String,
    pub(crate) events: Vec<StoreEvent>,
}

/// Why etcd refuses a request, with its code and its text (etcd api/v3rpc/rpctypes/error.go).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The key is empty.
    EmptyKey,
    /// `ignore_value` with a value.
    ValueProvided,
    /// `ignore_lease` with a lease.
    LeaseProvided,
    /// `ignore_value` or `ignore_lease` on an absent key.
    KeyNotFound,
    /// Two operations of a transaction put one key.
    DuplicateKey,
    /// More than 128 operations.
    TooManyOps,
    /// The revision has been compacted.
    Compacted,
    /// The revision is yet to come.
    FutureRevision,
    /// There is no such lease.
    LeaseNotFound,
    /// There is such a lease already.
    LeaseExists,
    /// The time to live is over nine billion seconds.
    LeaseTtlTooLarge,
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        let (code, message) = match failure {
            Failure::EmptyKey => (Code::InvalidArgument, "key is not provided"),
            Failure::ValueProvided => (Code::InvalidArgument, "value is provided"),
            Failure::LeaseProvided => (Code::InvalidArgument, "lease is provided"),
            Failure::KeyNotFound => (Code::InvalidArgument, "key not found"),
            Failure::DuplicateKey => (Code::InvalidArgument, "duplicate key given in txn request"),
            Failure::TooManyOps => (Code::InvalidArgument, "too many operations in txn request"),
            Failure::Compacted => (Code::OutOfRange, "mvcc: required revision has been compacted"),
            Failure::FutureRevision => {
                (Code::OutOfRange, "mvcc: required revision is a future revision")
            }
            Failure::LeaseNotFound => (Code::NotFound, "requested lease not found"),
            Failure::LeaseExists => (Code::FailedPrecondition, "lease already exists"),
            Failure::LeaseTtlTooLarge => (Code::OutOfRange, "too large lease TTL"),
        };
        Status::new(code, format!("etcdserver: {message}"))
    }
}
