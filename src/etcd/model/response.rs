//! What a member answers: the responses of etcd's `rpc.proto`, as plain data.
//!
//! These are the types that the client facade hands out; their accessors are there. Keys and values
//! are shared bytes, so that one event for many watchers costs no copy of its value.

use bytes::Bytes;

/// The header of every response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    pub(crate) cluster_id: u64,
    pub(crate) member_id: u64,
    pub(crate) revision: i64,
    pub(crate) raft_term: u64,
}

/// A key with its value and its revisions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyValue {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    pub(crate) create_revision: i64,
    pub(crate) mod_revision: i64,
    pub(crate) version: i64,
    pub(crate) lease: i64,
}

/// The answer to a get.
#[derive(Debug, Clone)]
pub struct GetResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) kvs: Vec<KeyValue>,
    pub(crate) more: bool,
    pub(crate) count: i64,
}

/// The answer to a put.
#[derive(Debug, Clone)]
pub struct PutResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) prev_kv: Option<KeyValue>,
}

/// The answer to a delete.
#[derive(Debug, Clone)]
pub struct DeleteResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) deleted: i64,
    pub(crate) prev_kvs: Vec<KeyValue>,
}

/// The answer to a compaction.
#[derive(Debug, Clone)]
pub struct CompactionResponse {
    pub(crate) header: Option<ResponseHeader>,
}

/// The answer to one operation of a transaction.
#[derive(Debug, Clone)]
pub enum TxnOpResponse {
    /// To a put.
    Put(PutResponse),
    /// To a get.
    Get(GetResponse),
    /// To a delete.
    Delete(DeleteResponse),
    /// To a nested transaction.
    Txn(TxnResponse),
}

/// The answer to a transaction.
#[derive(Debug, Clone)]
pub struct TxnResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) succeeded: bool,
    pub(crate) responses: Vec<TxnOpResponse>,
}

/// The answer to a lease grant.
#[derive(Debug, Clone)]
pub struct LeaseGrantResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) id: i64,
    pub(crate) ttl: i64,
    pub(crate) error: String,
}

/// The answer to a lease revoke.
#[derive(Debug, Clone)]
pub struct LeaseRevokeResponse {
    pub(crate) header: Option<ResponseHeader>,
}

/// The answer to one keep-alive.
#[derive(Debug, Clone)]
pub struct LeaseKeepAliveResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) id: i64,
    pub(crate) ttl: i64,
}

/// The answer to a question for a lease's time to live.
#[derive(Debug, Clone)]
pub struct LeaseTimeToLiveResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) id: i64,
    pub(crate) ttl: i64,
    pub(crate) granted_ttl: i64,
    pub(crate) keys: Vec<Vec<u8>>,
}

/// One lease of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseStatus {
    pub(crate) id: i64,
}

/// The list of leases, ordered by expiry.
#[derive(Debug, Clone)]
pub struct LeaseLeasesResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) leases: Vec<LeaseStatus>,
}

/// A member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) peer_urls: Vec<String>,
    pub(crate) client_urls: Vec<String>,
    pub(crate) is_learner: bool,
}

/// The list of members.
#[derive(Debug, Clone)]
pub struct MemberListResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) members: Vec<Member>,
}

/// The state of a member.
#[derive(Debug, Clone)]
pub struct StatusResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) version: String,
    pub(crate) db_size: i64,
    pub(crate) leader: u64,
    pub(crate) raft_index: u64,
    pub(crate) raft_term: u64,
    pub(crate) errors: Vec<String>,
}

/// What happened to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// It was created or given a new value.
    Put,
    /// It was deleted.
    Delete,
}

/// A change of a key.
#[derive(Debug, Clone)]
pub struct Event {
    pub(crate) event_type: EventType,
    /// The pair after a put; of a delete only the key and the mod revision are set.
    pub(crate) kv: KeyValue,
    pub(crate) prev_kv: Option<KeyValue>,
}

/// A message of a watch stream.
#[derive(Debug, Clone, Default)]
pub struct WatchResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) watch_id: i64,
    pub(crate) created: bool,
    pub(crate) canceled: bool,
    pub(crate) compact_revision: i64,
    pub(crate) cancel_reason: String,
    pub(crate) events: Vec<Event>,
}

/// The answer to a lock.
#[derive(Debug, Default, Clone)]
pub struct LockResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) key: Vec<u8>,
}

/// The answer to an unlock.
#[derive(Debug, Clone)]
pub struct UnlockResponse {
    pub(crate) header: Option<ResponseHeader>,
}

/// The key of a leader, with what is needed to use it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LeaderKey {
    pub(crate) name: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) rev: i64,
    pub(crate) lease: i64,
}

/// The answer to a campaign.
#[derive(Debug, Clone)]
pub struct CampaignResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) leader: Option<LeaderKey>,
}

/// The answer to a proclamation.
#[derive(Debug, Clone)]
pub struct ProclaimResponse {
    pub(crate) header: Option<ResponseHeader>,
}

/// The answer to a question for the leader, and a message of a stream of leaders.
#[derive(Debug, Clone)]
pub struct LeaderResponse {
    pub(crate) header: Option<ResponseHeader>,
    pub(crate) kv: Option<KeyValue>,
}

/// The answer to a resignation.
#[derive(Debug, Clone)]
pub struct ResignResponse {
    pub(crate) header: Option<ResponseHeader>,
}

/// Anything that a member sends.
#[derive(Debug, Clone)]
pub(crate) enum Response {
    Range(GetResponse),
    Put(PutResponse),
    DeleteRange(DeleteResponse),
    Txn(TxnResponse),
    Compact(CompactionResponse),
    LeaseGrant(LeaseGrantResponse),
    LeaseRevoke(LeaseRevokeResponse),
    LeaseTimeToLive(LeaseTimeToLiveResponse),
    Leases(LeaseLeasesResponse),
    MemberList(MemberListResponse),
    Status(StatusResponse),
    KeepAlive(LeaseKeepAliveResponse),
    Watch(WatchResponse),
    Lock(LockResponse),
    Unlock(UnlockResponse),
    Campaign(CampaignResponse),
    Proclaim(ProclaimResponse),
    Leader(LeaderResponse),
    Resign(ResignResponse),
    /// The stream is over.
    StreamEnd,
}
