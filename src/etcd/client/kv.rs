//! Keys and values: get, put, delete, compact, txn.

use super::{
    CompactionResponse, DeleteResponse, GetResponse, KeyRange, PutResponse, SortOrder, SortTarget,
    Txn, TxnResponse, channel::Channel, error::Result, key_range_options, unexpected,
};
use crate::etcd::model::{
    request::{DeleteRangeRequest, Enumerated, PutRequest, RangeRequest, Request},
    response::Response,
};

/// The client of the KV service.
#[derive(Debug, Clone)]
pub struct KvClient {
    channel: Channel,
}

impl KvClient {
    pub(super) fn new(channel: Channel) -> Self {
        KvClient { channel }
    }

    /// Puts a key. Every put is a revision of its own.
    ///
    /// # Errors
    /// A refusal of the member, or an unknown outcome.
    pub async fn put(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        options: Option<PutOptions>,
    ) -> Result<PutResponse> {
        let request = options.unwrap_or_default().into_request(key.into(), value.into());
        match self.channel.call(Request::Put(request)).await? {
            Response::Put(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Gets a key or a range of keys.
    ///
    /// # Errors
    /// A refusal of the member, or no answer.
    pub async fn get(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<GetOptions>,
    ) -> Result<GetResponse> {
        let request = options.unwrap_or_default().into_request(key.into());
        match self.channel.call(Request::Range(request)).await? {
            Response::Range(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Deletes a key or a range of keys.
    ///
    /// # Errors
    /// A refusal of the member, or an unknown outcome.
    pub async fn delete(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<DeleteOptions>,
    ) -> Result<DeleteResponse> {
        let request = options.unwrap_or_default().into_request(key.into());
        match self.channel.call(Request::DeleteRange(request)).await? {
            Response::DeleteRange(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Forgets the history before a revision.
    ///
    /// # Errors
    /// A refusal of the member (compacted already, a future revision), or an unknown outcome.
    pub async fn compact(
        &mut self,
        revision: i64,
        options: Option<CompactionOptions>,
    ) -> Result<CompactionResponse> {
        // Whether it is physical makes no difference to a store in memory.
        let _ = options;
        match self.channel.call(Request::Compact(revision)).await? {
            Response::Compact(response) => Ok(response),
            _ => unexpected(),
        }
    }

    /// Executes a transaction. All its writes share one revision.
    ///
    /// # Errors
    /// A refusal of the member (then it had no effect at all), or an unknown outcome.
    pub async fn txn(&mut self, txn: Txn) -> Result<TxnResponse> {
        match self.channel.call(Request::Txn(txn.into_request())).await? {
            Response::Txn(response) => Ok(response),
            _ => unexpected(),
        }
    }
}

/// Options of a put.
#[derive(Debug, Default, Clone)]
pub struct PutOptions {
    lease: i64,
    prev_kv: bool,
    ignore_value: bool,
    ignore_lease: bool,
}

impl PutOptions {
    /// No lease, no previous pair.
    pub const fn new() -> Self {
        PutOptions { lease: 0, prev_kv: false, ignore_value: false, ignore_lease: false }
    }

    /// Attaches the key to a lease; 0 is none.
    pub const fn with_lease(mut self, lease: i64) -> Self {
        self.lease = lease;
        self
    }

    /// Asks for the pair before the put.
    pub const fn with_prev_key(mut self) -> Self {
        self.prev_kv = true;
        self
    }

    /// Keeps the value; refused if the key does not exist.
    pub const fn with_ignore_value(mut self) -> Self {
        self.ignore_value = true;
        self
    }

    /// Keeps the lease; refused if the key does not exist.
    pub const fn with_ignore_lease(mut self) -> Self {
        self.ignore_lease = true;
        self
    }

    pub(super) fn into_request(self, key: Vec<u8>, value: Vec<u8>) -> PutRequest {
        let PutOptions { lease, prev_kv, ignore_value, ignore_lease } = self;
        PutRequest { key, value, lease, prev_kv, ignore_value, ignore_lease }
    }
}

/// Options of a get.
#[derive(Debug, Default, Clone)]
pub struct GetOptions {
    request: RangeRequest,
    range: KeyRange,
}

impl GetOptions {
    /// One key, now, linearizable.
    pub const fn new() -> Self {
        GetOptions {
            request: RangeRequest {
                key: Vec::new(),
                range_end: Vec::new(),
                limit: 0,
                revision: 0,
                sort_order: Enumerated::Known(SortOrder::None),
                sort_target: Enumerated::Known(SortTarget::Key),
                serializable: false,
                keys_only: false,
                count_only: false,
                min_mod_revision: 0,
                max_mod_revision: 0,
                min_create_revision: 0,
                max_create_revision: 0,
            },
            range: KeyRange::new(),
        }
    }

    key_range_options!();

    /// At most so many keys; 0 is no limit.
    pub const fn with_limit(mut self, limit: i64) -> Self {
        self.request.limit = limit;
        self
    }

    /// Reads the store as it was in this revision; 0 and less is now.
    pub const fn with_revision(mut self, revision: i64) -> Self {
        self.request.revision = revision;
        self
    }

    /// Sorts the answer.
    pub fn with_sort(mut self, target: SortTarget, order: SortOrder) -> Self {
        // By key, ascending, is how the store has them: the client then asks for no sorting.
        let natural = target == SortTarget::Key && order == SortOrder::Ascend;
        self.request.sort_order = Enumerated::Known(if natural { SortOrder::None } else { order });
        self.request.sort_target = Enumerated::Known(target);
        self
    }

    /// Reads from the member's own state, which may be old. The one member here is never old.
    pub const fn with_serializable(mut self) -> Self {
        self.request.serializable = true;
        self
    }

    /// Leaves the values out.
    pub const fn with_keys_only(mut self) -> Self {
        self.request.keys_only = true;
        self
    }

    /// Only counts.
    pub const fn with_count_only(mut self) -> Self {
        self.request.count_only = true;
        self
    }

    /// Leaves out keys with a lower mod revision.
    pub const fn with_min_mod_revision(mut self, revision: i64) -> Self {
        self.request.min_mod_revision = revision;
        self
    }

    /// Leaves out keys with a higher mod revision.
    pub const fn with_max_mod_revision(mut self, revision: i64) -> Self {
        self.request.max_mod_revision = revision;
        self
    }

    /// Leaves out keys with a lower create revision.
    pub const fn with_min_create_revision(mut self, revision: i64) -> Self {
        self.request.min_create_revision = revision;
        self
    }

    /// Leaves out keys with a higher create revision.
    pub const fn with_max_create_revision(mut self, revision: i64) -> Self {
        self.request.max_create_revision = revision;
        self
    }

    pub(super) fn into_request(self, key: Vec<u8>) -> RangeRequest {
        let (key, range_end) = self.range.build(key);
        RangeRequest { key, range_end, ..self.request }
    }
}

/// Options of a delete.
#[derive(Debug, Default, Clone)]
pub struct DeleteOptions {
    prev_kv: bool,
    range: KeyRange,
}

impl DeleteOptions {
    /// One key.
    pub const fn new() -> Self {
        DeleteOptions { prev_kv: false, range: KeyRange::new() }
    }

    key_range_options!();

    /// Asks for the deleted pairs.
    pub const fn with_prev_key(mut self) -> Self {
        self.prev_kv = true;
        self
    }

    pub(super) fn into_request(self, key: Vec<u8>) -> DeleteRangeRequest {
        let (key, range_end) = self.range.build(key);
        DeleteRangeRequest { key, range_end, prev_kv: self.prev_kv }
    }
}

/// Options of a compaction.
#[derive(Debug, Default, Clone, Copy)]
pub struct CompactionOptions {
    physical: bool,
}

impl CompactionOptions {
    /// Not physical.
    pub const fn new() -> Self {
        CompactionOptions { physical: false }
    }

    /// Waits until the space is free; without effect here.
    pub const fn with_physical(mut self) -> Self {
        self.physical = true;
        self
    }
}
