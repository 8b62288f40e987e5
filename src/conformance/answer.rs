//! From the model's answers to the form of the recordings.
//!
//! A field that has its proto3 default is absent, except for some that are always spelled out;
//! revisions are relative to the first one; ids of the cluster and its members are left out.

use serde_json::{Map, Value, json};
use tonic::Code;

use crate::etcd::model::{
    error::Refusal,
    response::{
        DeleteResponse, Event, EventType, GetResponse, KeyValue, LeaderKey, LeaseKeepAliveResponse,
        LeaseTimeToLiveResponse, MemberListResponse, PutResponse, Response, ResponseHeader,
        StatusResponse, TxnOpResponse, TxnResponse, WatchResponse,
    },
};

use super::recording::FIRST_REVISION;

/// Fields of proto3: one that has its default is absent.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn of(header: Option<ResponseHeader>) -> Self {
        let mut fields = Fields::default();
        if let Some(header) = header {
            let mut inner = Fields::default();
            inner.revision("revision", header.revision);
            fields.always("header", Value::Object(inner.0));
        }
        fields
    }

    fn always(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn unless_default(&mut self, name: &str, value: Value) {
        let default = match &value {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(_) => false,
        };
        if !default {
            self.always(name, value);
        }
    }

    fn revision(&mut self, name: &str, revision: i64) {
        if revision != 0 {
            self.always(name, json!(format!("r{:+}", revision - FIRST_REVISION)));
        }
    }
}

/// Bytes as a recording has them: a text, or hexadecimal digits if they are none.
pub(super) fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
    }
}

/// The name of a gRPC code.
fn status(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

fn error(code: Code, message: &str) -> Value {
    json!({ "error": { "code": code as i32, "status": status(code), "message": message } })
}

/// A refusal, as `{"error": …}`.
pub(super) fn refusal(refusal: Refusal) -> Value {
    error(refusal.code(), &refusal.to_string())
}

/// What newer releases answer where the recorded one crashed: all known crashes are of one kind.
pub(super) fn instead_of_a_crash() -> Value {
    refusal(Refusal::InvalidSortOption)
}

fn pair(kv: &KeyValue) -> Value {
    let mut fields = Fields::default();
    fields.unless_default("key", text(&kv.key));
    fields.revision("create_revision", kv.create_revision);
    fields.revision("mod_revision", kv.mod_revision);
    fields.unless_default("version", json!(kv.version));
    fields.unless_default("value", text(&kv.value));
    fields.unless_default("lease", json!(kv.lease));
    Value::Object(fields.0)
}

fn pairs(kvs: &[KeyValue]) -> Value {
    kvs.iter().map(pair).collect()
}

fn get(response: &GetResponse) -> Fields {
    let mut fields = Fields::of(response.header);
    fields.unless_default("kvs", pairs(&response.kvs));
    fields.unless_default("more", json!(response.more));
    fields.always("count", json!(response.count));
    fields
}

fn put(response: &PutResponse) -> Fields {
    let mut fields = Fields::of(response.header);
    if let Some(kv) = &response.prev_kv {
        fields.always("prev_kv", pair(kv));
    }
    fields
}

fn delete(response: &DeleteResponse) -> Fields {
    let mut fields = Fields::of(response.header);
    fields.always("deleted", json!(response.deleted));
    fields.unless_default("prev_kvs", pairs(&response.prev_kvs));
    fields
}

fn txn(response: &TxnResponse) -> Fields {
    let one = |response: &TxnOpResponse| match response {
        TxnOpResponse::Get(response) => json!({ "response_range": get(response).0 }),
        TxnOpResponse::Put(response) => json!({ "response_put": put(response).0 }),
        TxnOpResponse::Delete(response) => json!({ "response_delete_range": delete(response).0 }),
        TxnOpResponse::Txn(response) => json!({ "response_txn": txn(response).0 }),
    };
    let mut fields = Fields::of(response.header);
    fields.always("succeeded", json!(response.succeeded));
    fields.unless_default("responses", response.responses.iter().map(one).collect());
    fields
}

fn event(event: &Event) -> Value {
    let mut fields = Fields::default();
    let put = event.event_type == EventType::Put;
    fields.always("type", json!(if put { "PUT" } else { "DELETE" }));
    fields.always("kv", pair(&event.kv));
    if let Some(kv) = &event.prev_kv {
        fields.always("prev_kv", pair(kv));
    }
    Value::Object(fields.0)
}

fn watch(response: &WatchResponse) -> Fields {
    let mut fields = Fields::of(response.header);
    fields.always("watch_id", json!(response.watch_id));
    fields.unless_default("created", json!(response.created));
    fields.unless_default("canceled", json!(response.canceled));
    fields.revision("compact_revision", response.compact_revision);
    fields.unless_default("cancel_reason", json!(response.cancel_reason));
    fields.unless_default("fragment", json!(response.fragment));
    fields.unless_default("events", response.events.iter().map(event).collect());
    fields
}

/// A grant or a renewal.
fn ttl(header: Option<ResponseHeader>, id: i64, ttl: i64) -> Fields {
    let mut fields = Fields::of(header);
    fields.unless_default("ID", json!(id));
    fields.always("TTL", json!(ttl));
    fields
}

fn time_to_live(response: &LeaseTimeToLiveResponse) -> Fields {
    let mut fields = ttl(response.header, response.id, response.ttl);
    fields.unless_default("grantedTTL", json!(response.granted_ttl));
    // In etcd they come in any order; the recorder has sorted them.
    fields.unless_default("keys", response.keys.iter().map(|key| text(key)).collect());
    fields
}

/// Addresses are counted.
fn member_list(response: &MemberListResponse) -> Fields {
    let mut fields = Fields::of(response.header);
    let member = |(index, member): (usize, &crate::etcd::model::response::Member)| {
        let mut fields = Fields::default();
        fields.always("ID", json!(format!("M{}", index + 1)));
        fields.unless_default("name", json!(member.name));
        fields.unless_default("peerURLs", json!(member.peer_urls.len()));
        fields.unless_default("clientURLs", json!(member.client_urls.len()));
        fields.unless_default("isLearner", json!(member.is_learner));
        Value::Object(fields.0)
    };
    fields.unless_default("members", response.members.iter().enumerate().map(member).collect());
    fields
}

/// A fixed set of facts, always spelled out: sizes and indexes are a server's own.
fn state(response: &StatusResponse) -> Fields {
    let mut fields = Fields::of(response.header);
    let member = response.header.map(|header| header.member_id);
    fields.always("version", json!(response.version));
    fields.always("leader_is_member", json!(member == Some(response.leader)));
    fields.always("dbSize_positive", json!(response.db_size > 0));
    // The model has no disk, so there is one size.
    fields.always("dbSizeInUse_positive", json!(response.db_size > 0));
    fields.always("raftIndex_positive", json!(response.raft_index > 0));
    fields.always("errors", json!(response.errors));
    fields.always("isLearner", json!(false));
    fields
}

fn leader_key(leader: &LeaderKey) -> Value {
    let mut fields = Fields::default();
    fields.unless_default("name", text(&leader.name));
    fields.unless_default("key", text(&leader.key));
    fields.revision("rev", leader.rev);
    fields.unless_default("lease", json!(leader.lease));
    Value::Object(fields.0)
}

/// An answer, as `{"ok": …}`.
pub(super) fn response(response: &Response) -> Value {
    let fields = match response {
        Response::Range(response) => get(response),
        Response::Put(response) => put(response),
        Response::DeleteRange(response) => delete(response),
        Response::Txn(response) => txn(response),
        Response::Compact(response) => Fields::of(response.header),
        Response::LeaseRevoke(response) => Fields::of(response.header),
        Response::LeaseGrant(response) => {
            let mut fields = ttl(response.header, response.id, response.ttl);
            fields.unless_default("error", json!(response.error));
            fields
        }
        Response::KeepAlive(response) => {
            let LeaseKeepAliveResponse { header, id, ttl: left } = response;
            ttl(*header, *id, *left)
        }
        Response::LeaseTimeToLive(response) => time_to_live(response),
        Response::Leases(response) => {
            let mut fields = Fields::of(response.header);
            let leases = response.leases.iter().map(|lease| json!({ "ID": lease.id })).collect();
            fields.unless_default("leases", leases);
            fields
        }
        Response::MemberList(response) => member_list(response),
        Response::Status(response) => state(response),
        Response::Watch(response) => watch(response),
        Response::Lock(response) => {
            let mut fields = Fields::of(response.header);
            fields.unless_default("key", text(&response.key));
            fields
        }
        Response::Campaign(response) => {
            let mut fields = Fields::of(response.header);
            if let Some(leader) = &response.leader {
                fields.always("leader", leader_key(leader));
            }
            fields
        }
        Response::Leader(response) => {
            let mut fields = Fields::of(response.header);
            if let Some(kv) = &response.kv {
                fields.always("kv", pair(kv));
            }
            fields
        }
        Response::Unlock(response) => Fields::of(response.header),
        Response::Proclaim(response) => Fields::of(response.header),
        Response::Resign(response) => Fields::of(response.header),
        Response::StreamEnd => Fields::default(),
    };
    json!({ "ok": fields.0 })
}
