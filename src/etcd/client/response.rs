//! The accessors of the response types, as in etcd-client.

use super::{
    CompactionResponse, DeleteResponse, Event, EventType, GetResponse, KeyValue,
    LeaseGrantResponse, LeaseKeepAliveResponse, LeaseLeasesResponse, LeaseRevokeResponse,
    LeaseStatus, LeaseTimeToLiveResponse, Member, MemberListResponse, PutResponse, ResponseHeader,
    StatusResponse, TxnOpResponse, TxnResponse, WatchResponse, error::Result,
};

impl ResponseHeader {
    /// The cluster that answered.
    pub const fn cluster_id(&self) -> u64 {
        self.cluster_id
    }

    /// The member that answered.
    pub const fn member_id(&self) -> u64 {
        self.member_id
    }

    /// The revision of the store when the request was applied.
    pub const fn revision(&self) -> i64 {
        self.revision
    }

    /// The term of the consensus.
    pub const fn raft_term(&self) -> u64 {
        self.raft_term
    }
}

macro_rules! header {
    ($($response:ty),* $(,)?) => {
        $(impl $response {
            /// The header.
            pub fn header(&self) -> Option<&ResponseHeader> {
                self.header.as_ref()
            }

            /// Takes the header out.
            pub fn take_header(&mut self) -> Option<ResponseHeader> {
                self.header.take()
            }
        })*
    };
}

header!(
    GetResponse,
    PutResponse,
    DeleteResponse,
    CompactionResponse,
    TxnResponse,
    LeaseGrantResponse,
    LeaseRevokeResponse,
    LeaseKeepAliveResponse,
    LeaseTimeToLiveResponse,
    LeaseLeasesResponse,
    MemberListResponse,
    StatusResponse,
    WatchResponse,
);

impl KeyValue {
    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The key as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn key_str(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.key)?)
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The value as text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn value_str(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.value)?)
    }

    /// Key and value.
    pub fn into_key_value(self) -> (Vec<u8>, Vec<u8>) {
        (self.key.into(), self.value.into())
    }

    /// The revision in which the key was created.
    pub const fn create_revision(&self) -> i64 {
        self.create_revision
    }

    /// The revision of the last put.
    pub const fn mod_revision(&self) -> i64 {
        self.mod_revision
    }

    /// How many puts since the creation, that one included.
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// The lease it is attached to; 0 is none.
    pub const fn lease(&self) -> i64 {
        self.lease
    }
}

impl GetResponse {
    /// The pairs.
    pub fn kvs(&self) -> &[KeyValue] {
        &self.kvs
    }

    /// Takes the pairs out.
    pub fn take_kvs(&mut self) -> Vec<KeyValue> {
        std::mem::take(&mut self.kvs)
    }

    /// Whether the limit cut pairs off.
    pub const fn more(&self) -> bool {
        self.more
    }

    /// How many keys the range has, whatever the limit and the filters.
    pub const fn count(&self) -> i64 {
        self.count
    }
}

impl PutResponse {
    /// The pair before the put, if it was asked for.
    pub fn prev_key(&self) -> Option<&KeyValue> {
        self.prev_kv.as_ref()
    }

    /// Takes the pair before the put out.
    pub fn take_prev_key(&mut self) -> Option<KeyValue> {
        self.prev_kv.take()
    }
}

impl DeleteResponse {
    /// How many keys were deleted.
    pub const fn deleted(&self) -> i64 {
        self.deleted
    }

    /// The deleted pairs, if they were asked for.
    pub fn prev_kvs(&self) -> &[KeyValue] {
        &self.prev_kvs
    }

    /// Takes the deleted pairs out.
    pub fn take_prev_kvs(&mut self) -> Vec<KeyValue> {
        std::mem::take(&mut self.prev_kvs)
    }
}

impl TxnResponse {
    /// Whether all comparisons held.
    pub const fn succeeded(&self) -> bool {
        self.succeeded
    }

    /// The answers of the operations, in order.
    pub fn op_responses(&self) -> Vec<TxnOpResponse> {
        self.responses.clone()
    }
}

impl LeaseGrantResponse {
    /// The granted TTL, in seconds; it may be longer than asked.
    pub const fn ttl(&self) -> i64 {
        self.ttl
    }

    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Always empty: errors come as statuses.
    pub fn error(&self) -> &str {
        &self.error
    }
}

impl LeaseKeepAliveResponse {
    /// The new TTL, in seconds; 0 if the lease is gone.
    pub const fn ttl(&self) -> i64 {
        self.ttl
    }

    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }
}

impl LeaseTimeToLiveResponse {
    /// The time left, in whole seconds; -1 if there is no such lease.
    pub const fn ttl(&self) -> i64 {
        self.ttl
    }

    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// The TTL that was granted, in seconds.
    pub const fn granted_ttl(&self) -> i64 {
        self.granted_ttl
    }

    /// The keys of the lease, if they were asked for.
    pub fn keys(&self) -> &[Vec<u8>] {
        &self.keys
    }
}

impl LeaseStatus {
    /// The lease.
    pub const fn id(&self) -> i64 {
        self.id
    }
}

impl LeaseLeasesResponse {
    /// The leases, the next to expire first.
    pub fn leases(&self) -> &[LeaseStatus] {
        &self.leases
    }
}

impl Member {
    /// Its id.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where other members reach it.
    pub fn peer_urls(&self) -> &[String] {
        &self.peer_urls
    }

    /// Where clients reach it.
    pub fn client_urls(&self) -> &[String] {
        &self.client_urls
    }

    /// Whether it only learns.
    pub const fn is_learner(&self) -> bool {
        self.is_learner
    }
}

impl MemberListResponse {
    /// The members.
    pub fn members(&self) -> &[Member] {
        &self.members
    }
}

impl StatusResponse {
    /// The version of etcd whose answers are simulated.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The size of the store's file, in bytes: a constant, sizes are not simulated.
    pub fn db_size(&self) -> i64 {
        self.db_size
    }

    /// The id of the leader.
    pub fn leader(&self) -> u64 {
        self.leader
    }

    /// The index of the consensus log.
    pub fn raft_index(&self) -> u64 {
        self.raft_index
    }

    /// The term of the consensus.
    pub fn raft_term(&self) -> u64 {
        self.raft_term
    }

    /// The applied index of the consensus log.
    pub fn raft_applied_index(&self) -> u64 {
        self.raft_index
    }

    /// Alarms and the like: none.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// The used part of the store's file, in bytes.
    pub fn raft_used_db_size(&self) -> i64 {
        self.db_size
    }

    /// Whether the member only learns.
    pub fn is_learner(&self) -> bool {
        false
    }
}

impl Event {
    /// What happened.
    pub fn event_type(&self) -> EventType {
        self.event_type
    }

    /// The pair after a put; of a deletion only key and mod revision.
    pub fn kv(&self) -> Option<&KeyValue> {
        Some(&self.kv)
    }

    /// The pair before, if it was asked for and is not compacted away.
    pub fn prev_kv(&self) -> Option<&KeyValue> {
        self.prev_kv.as_ref()
    }
}

impl WatchResponse {
    /// The watcher on this stream; -1 for an answer to a progress request.
    pub const fn watch_id(&self) -> i64 {
        self.watch_id
    }

    /// The watcher has been made (or refused, then it is cancelled at once).
    pub const fn created(&self) -> bool {
        self.created
    }

    /// The watcher is over.
    pub const fn canceled(&self) -> bool {
        self.canceled
    }

    /// The oldest revision that can be watched, if the asked one has been compacted.
    pub const fn compact_revision(&self) -> i64 {
        self.compact_revision
    }

    /// Why the watcher is over.
    pub fn cancel_reason(&self) -> &str {
        &self.cancel_reason
    }

    /// What happened; all events of one revision are in one message.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}
