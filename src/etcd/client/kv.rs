//! Keys and values: options, requests, answers.

use bytes::Bytes;

use super::{Range, ResponseHeader, SortOrder, SortTarget};
use crate::etcd::model::wire::{
    self, DeleteReply, DeleteRequest, PutReply, PutRequest, RangeReply, RangeRequest,
};

/// A key with its value and its history's numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(transparent)]
pub struct KeyValue(wire::KeyValue);

impl KeyValue {
    pub(super) fn all(kvs: Vec<wire::KeyValue>) -> Vec<KeyValue> {
        kvs.into_iter().map(KeyValue).collect()
    }

    pub(super) fn new(kv: wire::KeyValue) -> Self {
        KeyValue(kv)
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.0.key
    }

    /// The key as text.
    ///
    /// # Errors
    /// If it is no UTF-8.
    pub fn key_str(&self) -> Result<&str, super::Error> {
        Ok(std::str::from_utf8(&self.0.key)?)
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        &self.0.value
    }

    /// The value as text.
    ///
    /// # Errors
    /// If it is no UTF-8.
    pub fn value_str(&self) -> Result<&str, super::Error> {
        Ok(std::str::from_utf8(&self.0.value)?)
    }

    /// The revision that created this incarnation of the key.
    pub const fn create_revision(&self) -> i64 {
        self.0.create_revision
    }

    /// The revision of its last change.
    pub const fn mod_revision(&self) -> i64 {
        self.0.mod_revision
    }

    /// How often it was put since it was created.
    pub const fn version(&self) -> i64 {
        self.0.version
    }

    /// Its lease; 0 is none.
    pub const fn lease(&self) -> i64 {
        self.0.lease
    }
}

/// Options for a put.
#[derive(Debug, Clone, Default)]
pub struct PutOptions(PutRequest);

impl PutOptions {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Attaches the key to a lease.
    pub const fn with_lease(mut self, lease: i64) -> Self {
        self.0.lease = lease;
        self
    }

    /// Answers what was there before.
    pub const fn with_prev_key(mut self) -> Self {
        self.0.prev_kv = true;
        self
    }

    /// Keeps the value.
    pub const fn with_ignore_value(mut self) -> Self {
        self.0.ignore_value = true;
        self
    }

    /// Keeps the lease.
    pub const fn with_ignore_lease(mut self) -> Self {
        self.0.ignore_lease = true;
        self
    }
}

pub(super) fn put_request(key: Vec<u8>, value: Vec<u8>, options: Option<PutOptions>) -> PutRequest {
    PutRequest { key: key.into(), value: value.into(), ..options.unwrap_or_default().0 }
}

/// The answer to a put.
#[derive(Debug, Clone)]
pub struct PutResponse {
    header: ResponseHeader,
    prev: Option<KeyValue>,
}

impl PutResponse {
    pub(super) fn new(reply: PutReply) -> Self {
        let header = ResponseHeader::new(reply.revision);
        PutResponse { header, prev: reply.prev_kv.map(KeyValue) }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// What was there before, if that was asked for.
    pub fn prev_key(&self) -> Option<&KeyValue> {
        self.prev.as_ref()
    }
}

/// Options for a get.
#[derive(Debug, Clone, Default)]
pub struct GetOptions {
    request: RangeRequest,
    range: Range,
}

impl GetOptions {
    /// None.
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

    /// At most so many.
    pub fn with_limit(mut self, limit: i64) -> Self {
        self.request.limit = limit;
        self
    }

    /// As they were at this revision.
    pub fn with_revision(mut self, revision: i64) -> Self {
        self.request.revision = revision;
        self
    }

    /// In this order.
    pub fn with_sort(mut self, target: SortTarget, order: SortOrder) -> Self {
        self.request.sort_target = target;
        self.request.sort_order = order;
        self
    }

    /// Accepted and without effect: the one member is always up to date.
    pub fn with_serializable(self) -> Self {
        self
    }

    /// Without values.
    pub fn with_keys_only(mut self) -> Self {
        self.request.keys_only = true;
        self
    }

    /// Only how many.
    pub fn with_count_only(mut self) -> Self {
        self.request.count_only = true;
        self
    }

    /// Only those changed at or after this revision.
    pub fn with_min_mod_revision(mut self, revision: i64) -> Self {
        self.request.min_mod_revision = revision;
        self
    }

    /// Only those changed at or before this revision.
    pub fn with_max_mod_revision(mut self, revision: i64) -> Self {
        self.request.max_mod_revision = revision;
        self
    }

    /// Only those created at or after this revision.
    pub fn with_min_create_revision(mut self, revision: i64) -> Self {
        self.request.min_create_revision = revision;
        self
    }

    /// Only those created at or before this revision.
    pub fn with_max_create_revision(mut self, revision: i64) -> Self {
        self.request.max_create_revision = revision;
        self
    }
}

pub(super) fn range_request(key: Vec<u8>, options: Option<GetOptions>) -> RangeRequest {
    let GetOptions { request, range } = options.unwrap_or_default();
    let (key, range_end) = range.of(Bytes::from(key));
    RangeRequest { key, range_end, ..request }
}

/// The answer to a get.
#[derive(Debug, Clone)]
pub struct GetResponse {
    header: ResponseHeader,
    kvs: Vec<KeyValue>,
    more: bool,
    count: i64,
}

impl GetResponse {
    pub(super) fn new(reply: RangeReply) -> Self {
        GetResponse {
            header: ResponseHeader::new(reply.revision),
            kvs: KeyValue::all(reply.kvs),
            more: reply.more,
            count: reply.count,
        }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// What was found.
    pub fn kvs(&self) -> &[KeyValue] {
        &self.kvs
    }

    /// Whether the limit cut something off.
    pub const fn more(&self) -> bool {
        self.more
    }

    /// How many keys are in the range, whatever limit and filters say.
    pub const fn count(&self) -> i64 {
        self.count
    }
}

/// Options for a delete.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    request: DeleteRequest,
    range: Range,
}

impl DeleteOptions {
    /// None.
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

    /// Answers what was there before.
    pub fn with_prev_key(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }
}

pub(super) fn delete_request(key: Vec<u8>, options: Option<DeleteOptions>) -> DeleteRequest {
    let DeleteOptions { request, range } = options.unwrap_or_default();
    let (key, range_end) = range.of(Bytes::from(key));
    DeleteRequest { key, range_end, ..request }
}

/// The answer to a delete.
#[derive(Debug, Clone)]
pub struct DeleteResponse {
    header: ResponseHeader,
    deleted: i64,
    prev: Vec<KeyValue>,
}

impl DeleteResponse {
    pub(super) fn new(reply: DeleteReply) -> Self {
        DeleteResponse {
            header: ResponseHeader::new(reply.revision),
            deleted: reply.deleted,
            prev: KeyValue::all(reply.prev_kvs),
        }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// How many keys were deleted.
    pub const fn deleted(&self) -> i64 {
        self.deleted
    }

    /// What was there before, if that was asked for.
    pub fn prev_kvs(&self) -> &[KeyValue] {
        &self.prev
    }
}

/// Options for a compaction.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompactionOptions;

impl CompactionOptions {
    /// None.
    pub const fn new() -> Self {
        CompactionOptions
    }

    /// Accepted and without effect: nothing is left to do after the answer.
    pub const fn with_physical(self) -> Self {
        self
    }
}

/// The answer to a compaction.
#[derive(Debug, Clone)]
pub struct CompactionResponse {
    header: ResponseHeader,
}

impl CompactionResponse {
    pub(super) fn new(revision: i64) -> Self {
        CompactionResponse { header: ResponseHeader::new(revision) }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }
}
