//! From the model's answers to the form of the recordings, and the comparison.

use serde_json::{Map, Value, json};

use crate::etcd::model::{
    error::Refusal,
    response::{
        DeleteResponse, Event, EventType, GetResponse, KeyValue, LeaderKey, PutResponse, Response,
        ResponseHeader, TxnOpResponse, TxnResponse, WatchResponse,
    },
};

/// Fields of proto3: one that has its default is absent.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn of(header: Option<ResponseHeader>, base: i64) -> Self {
        let mut fields = Fields::default();
        if let Some(header) = header {
            let mut inner = Fields::default();
            inner.revision("revision", header.revision, base);
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

    fn revision(&mut self, name: &str, revision: i64, base: i64) {
        if revision != 0 {
            self.always(name, json!(format!("r{:+}", revision - base)));
        }
    }
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
    }
}

/// The bytes of a recorded field.
pub(super) fn bytes(field: &Value, chosen: &[i64]) -> Vec<u8> {
    match canonical(field, chosen) {
        Value::String(text) => text.into_bytes(),
        Value::Object(object) => {
            let hex = object["hex"].as_str().expect("hex digits");
            (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex digits"))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A recorded value with names of leases and repetitions put in.
pub(super) fn canonical(value: &Value, chosen: &[i64]) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            for (index, id) in chosen.iter().enumerate() {
                text = text.replace(&format!("${{L{}:hex}}", index + 1), &format!("{id:x}"));
                if text == format!("L{}", index + 1) {
                    return json!(id);
                }
            }
            json!(text)
        }
        Value::Array(items) => items.iter().map(|item| canonical(item, chosen)).collect(),
        Value::Object(object) => match (&object.get("repeat"), &object.get("n")) {
            (Some(Value::String(part)), Some(n)) => {
                json!(part.repeat(n.as_u64().expect("a count") as usize))
            }
            _ => object.iter().map(|(k, v)| (k.clone(), canonical(v, chosen))).collect(),
        },
        other => other.clone(),
    }
}

/// The answer without the fields that depend on the clock.
pub(super) fn tolerate(answer: &Value, step: &Value) -> Value {
    let mut answer = answer.clone();
    for field in step["tol"].as_array().into_iter().flatten() {
        if let Some(ok) = answer.get_mut("ok").and_then(Value::as_object_mut) {
            ok.remove(field.as_str().unwrap_or_default());
        }
    }
    answer
}

/// A real server is a little slower than none: a field that depends on the clock may be one more.
pub(super) fn within_tolerance(expected: &Value, answer: &Value, step: &Value) -> bool {
    step["tol"].as_array().into_iter().flatten().all(|field| {
        let of = |value: &Value| value["ok"][field.as_str().unwrap_or_default()].as_i64();
        let (expected, answer) = (of(expected).unwrap_or(0), of(answer).unwrap_or(0));
        (expected..=expected + 1).contains(&answer)
    })
}

pub(super) fn refusal(refusal: Refusal) -> Value {
    let status = match refusal.code() {
        tonic::Code::InvalidArgument => "INVALID_ARGUMENT",
        tonic::Code::OutOfRange => "OUT_OF_RANGE",
        tonic::Code::NotFound => "NOT_FOUND",
        tonic::Code::FailedPrecondition => "FAILED_PRECONDITION",
        tonic::Code::Unknown => "UNKNOWN",
        other => panic!("no refusal has the code {other:?}"),
    };
    let code = refusal.code() as i32;
    json!({ "error": { "code": code, "status": status, "message": refusal.to_string() } })
}

fn pair(kv: &KeyValue, base: i64) -> Value {
    let mut fields = Fields::default();
    fields.unless_default("key", text(&kv.key));
    fields.revision("create_revision", kv.create_revision, base);
    fields.revision("mod_revision", kv.mod_revision, base);
    fields.unless_default("version", json!(kv.version));
    fields.unless_default("value", text(&kv.value));
    fields.unless_default("lease", json!(kv.lease));
    Value::Object(fields.0)
}

fn pairs(kvs: &[KeyValue], base: i64) -> Value {
    kvs.iter().map(|kv| pair(kv, base)).collect()
}

fn get(response: &GetResponse, base: i64) -> Fields {
    let mut fields = Fields::of(response.header, base);
    fields.unless_default("kvs", pairs(&response.kvs, base));
    fields.unless_default("more", json!(response.more));
    fields.always("count", json!(response.count));
    fields
}

fn put(response: &PutResponse, base: i64) -> Fields {
    let mut fields = Fields::of(response.header, base);
    if let Some(kv) = &response.prev_kv {
        fields.always("prev_kv", pair(kv, base));
    }
    fields
}

fn delete(response: &DeleteResponse, base: i64) -> Fields {
    let mut fields = Fields::of(response.header, base);
    fields.always("deleted", json!(response.deleted));
    fields.unless_default("prev_kvs", pairs(&response.prev_kvs, base));
    fields
}

fn txn(response: &TxnResponse, base: i64) -> Fields {
    let one = |response: &TxnOpResponse| match response {
        TxnOpResponse::Get(response) => json!({ "response_range": get(response, base).0 }),
        TxnOpResponse::Put(response) => json!({ "response_put": put(response, base).0 }),
        TxnOpResponse::Delete(response) => {
            json!({ "response_delete_range": delete(response, base).0 })
        }
        TxnOpResponse::Txn(response) => json!({ "response_txn": txn(response, base).0 }),
    };
    let mut fields = Fields::of(response.header, base);
    fields.always("succeeded", json!(response.succeeded));
    fields.unless_default("responses", response.responses.iter().map(one).collect());
    fields
}

fn event(event: &Event, base: i64) -> Value {
    let mut fields = Fields::default();
    let put = event.event_type == EventType::Put;
    fields.always("type", json!(if put { "PUT" } else { "DELETE" }));
    fields.always("kv", pair(&event.kv, base));
    if let Some(kv) = &event.prev_kv {
        fields.always("prev_kv", pair(kv, base));
    }
    Value::Object(fields.0)
}

fn watch(response: &WatchResponse, base: i64) -> Fields {
    let mut fields = Fields::of(response.header, base);
    fields.always("watch_id", json!(response.watch_id));
    fields.unless_default("created", json!(response.created));
    fields.unless_default("canceled", json!(response.canceled));
    fields.revision("compact_revision", response.compact_revision, base);
    fields.unless_default("cancel_reason", json!(response.cancel_reason));
    fields.unless_default("events", response.events.iter().map(|e| event(e, base)).collect());
    fields
}

fn leader_key(leader: &LeaderKey, base: i64) -> Value {
    let mut fields = Fields::default();
    fields.unless_default("name", text(&leader.name));
    fields.unless_default("key", text(&leader.key));
    fields.revision("rev", leader.rev, base);
    fields.unless_default("lease", json!(leader.lease));
    Value::Object(fields.0)
}

/// An answer in the form of the recordings.
pub(super) fn response(response: &Response, base: i64) -> Value {
    let fields = match response {
        Response::Range(response) => get(response, base),
        Response::Put(response) => put(response, base),
        Response::DeleteRange(response) => delete(response, base),
        Response::Txn(response) => txn(response, base),
        Response::Compact(response) => Fields::of(response.header, base),
        Response::LeaseRevoke(response) => Fields::of(response.header, base),
        Response::LeaseGrant(response) => {
            let mut fields = Fields::of(response.header, base);
            fields.unless_default("ID", json!(response.id));
            fields.always("TTL", json!(response.ttl));
            fields
        }
        Response::KeepAlive(response) => {
            let mut fields = Fields::of(response.header, base);
            fields.unless_default("ID", json!(response.id));
            fields.always("TTL", json!(response.ttl));
            fields
        }
        Response::LeaseTimeToLive(response) => {
            let mut fields = Fields::of(response.header, base);
            fields.unless_default("ID", json!(response.id));
            fields.always("TTL", json!(response.ttl));
            fields.unless_default("grantedTTL", json!(response.granted_ttl));
            fields.unless_default("keys", response.keys.iter().map(|key| text(key)).collect());
            fields
        }
        Response::Leases(response) => {
            let mut fields = Fields::of(response.header, base);
            let leases = response.leases.iter().map(|lease| json!({ "ID": lease.id })).collect();
            fields.unless_default("leases", leases);
            fields
        }
        Response::Watch(response) => watch(response, base),
        Response::Lock(response) => {
            let mut fields = Fields::of(response.header, base);
            fields.unless_default("key", text(&response.key));
            fields
        }
        Response::Campaign(response) => {
            let mut fields = Fields::of(response.header, base);
            if let Some(leader) = &response.leader {
                fields.always("leader", leader_key(leader, base));
            }
            fields
        }
        Response::Leader(response) => {
            let mut fields = Fields::of(response.header, base);
            if let Some(kv) = &response.kv {
                fields.always("kv", pair(kv, base));
            }
            fields
        }
        Response::Unlock(response) => Fields::of(response.header, base),
        Response::Proclaim(response) => Fields::of(response.header, base),
        Response::Resign(response) => Fields::of(response.header, base),
        other => panic!("no recording has {other:?}"),
    };
    Value::Object(fields.0)
}
