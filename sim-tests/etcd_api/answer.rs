//! From the answers of etcd-client's API to the form of the recordings.

use serde_json::{Value, json};

use super::super::{
    api::{
        DeleteResponse, Error, Event, EventType, GetResponse, KeyValue, LeaderKey, PutResponse,
        ResponseHeader, StatusResponse, TxnOpResponse, TxnResponse, WatchResponse,
    },
    client_driver::value::{self, Fields},
};

/// An answer with its header.
pub fn of(header: Option<&ResponseHeader>, base: i64) -> Fields {
    let header = header.map(|header| value::header(header.revision(), base));
    Fields::default().message("header", header)
}

pub fn error(error: &Error) -> Value {
    match error {
        Error::GRpcStatus(status) => value::status(status),
        other => json!({ "client_error": other.to_string() }),
    }
}

pub fn pair(kv: &KeyValue, base: i64) -> Value {
    Fields::default()
        .unless_default("key", value::text(kv.key()))
        .revision("create_revision", kv.create_revision(), base)
        .revision("mod_revision", kv.mod_revision(), base)
        .unless_default("version", kv.version())
        .unless_default("value", value::text(kv.value()))
        .unless_default("lease", kv.lease())
        .value()
}

fn pairs(kvs: &[KeyValue], base: i64) -> Value {
    kvs.iter().map(|kv| pair(kv, base)).collect()
}

pub fn get(response: &GetResponse, base: i64) -> Value {
    of(response.header(), base)
        .unless_default("kvs", pairs(response.kvs(), base))
        .unless_default("more", response.more())
        .always("count", response.count())
        .value()
}

pub fn put(response: &PutResponse, base: i64) -> Value {
    let before = response.prev_key().map(|kv| pair(kv, base));
    of(response.header(), base).message("prev_kv", before).value()
}

pub fn delete(response: &DeleteResponse, base: i64) -> Value {
    of(response.header(), base)
        .always("deleted", response.deleted())
        .unless_default("prev_kvs", pairs(response.prev_kvs(), base))
        .value()
}

pub fn txn(response: &TxnResponse, base: i64) -> Value {
    let one = |response: &TxnOpResponse| match response {
        TxnOpResponse::Get(response) => json!({ "response_range": get(response, base) }),
        TxnOpResponse::Put(response) => json!({ "response_put": put(response, base) }),
        TxnOpResponse::Delete(response) => {
            json!({ "response_delete_range": delete(response, base) })
        }
        TxnOpResponse::Txn(response) => json!({ "response_txn": txn(response, base) }),
    };
    of(response.header(), base)
        .always("succeeded", response.succeeded())
        .unless_default("responses", response.op_responses().iter().map(one).collect::<Value>())
        .value()
}

pub fn leader_key(leader: &LeaderKey, base: i64) -> Value {
    Fields::default()
        .unless_default("name", value::text(leader.name()))
        .unless_default("key", value::text(leader.key()))
        .revision("rev", leader.rev(), base)
        .unless_default("lease", leader.lease())
        .value()
}

/// The facts that recordings keep of a status.
pub fn status(response: &StatusResponse, base: i64) -> Value {
    let member = response.header().map(ResponseHeader::member_id);
    of(response.header(), base)
        .always("version", response.version())
        .always("leader_is_member", member == Some(response.leader()))
        .always("dbSize_positive", response.db_size() > 0)
        .always("dbSizeInUse_positive", response.raft_used_db_size() > 0)
        .always("raftIndex_positive", response.raft_index() > 0)
        .always("errors", response.errors().to_vec())
        .always("isLearner", response.is_learner())
        .value()
}

fn event(event: &Event, base: i64) -> Value {
    let put = event.event_type() == EventType::Put;
    Fields::default()
        .always("type", if put { "PUT" } else { "DELETE" })
        .message("kv", event.kv().map(|kv| pair(kv, base)))
        .message("prev_kv", event.prev_kv().map(|kv| pair(kv, base)))
        .value()
}

pub fn watch(response: &WatchResponse, base: i64) -> Value {
    let events = response.events().iter().map(|one| event(one, base)).collect::<Value>();
    of(response.header(), base)
        .always("watch_id", response.watch_id())
        .unless_default("created", response.created())
        .unless_default("canceled", response.canceled())
        .revision("compact_revision", response.compact_revision(), base)
        .unless_default("cancel_reason", response.cancel_reason())
        .unless_default("events", events)
        .value()
}
