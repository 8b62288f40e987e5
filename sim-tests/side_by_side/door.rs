//! The door of madsim-etcd-client's simulated client: a part of etcd-client's API.
//!
//! It has no watches, no locks, no member list; a range is one key or a prefix, a deletion one key,
//! a comparison one of values. Its answers show neither versions nor counts.

use std::{future::Future, time::Duration};

use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, KeyValue, LeaderKey, LeaseGrantOptions,
    LeaseTimeToLiveOptions, ProclaimOptions, PutOptions, ResignOptions, Txn, TxnOp, TxnOpResponse,
    TxnResponse,
};
use serde_json::{Value, json};

use crate::client_driver::{
    ask::{Ask, Asked, UNKNOWN_ENUM},
    door::Door,
    value::{self, Fields},
};

type Bytes = Vec<u8>;

/// A client of the other simulated server.
#[derive(Clone)]
pub struct SimServerApi(pub Client);

/// A call with its arguments.
pub enum Request {
    Get(Bytes, Option<GetOptions>),
    Put(Bytes, Bytes, PutOptions),
    Delete(Bytes),
    Txn(Txn),
    Compact(i64),
    Grant(i64, LeaseGrantOptions),
    Revoke(i64),
    KeepAlive(i64),
    TimeToLive(i64, LeaseTimeToLiveOptions),
    Leases,
    Campaign { name: Bytes, value: Bytes, lease: i64 },
    Proclaim(Bytes, ProclaimOptions),
    Leader(Bytes),
    Resign(ResignOptions),
    Observe(Bytes),
}

impl Door for SimServerApi {
    type Request = Request;
    type Stream = tokio::sync::mpsc::UnboundedReceiver<Value>;

    const HIDDEN: &'static [&'static str] = &["version", "count", "more"];

    fn request(ask: &Ask) -> Asked<Request> {
        request(ask)
    }

    async fn call(&self, request: Request, base: i64) -> Value {
        match call(&self.0, request, base).await {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => failure(&error),
        }
    }

    async fn open(&self, request: Request, base: i64) -> Result<Self::Stream, Value> {
        let Request::Observe(name) = request else { return Err(json!("no such stream")) };
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let mut election = self.0.election_client();
        tokio::spawn(async move {
            let Ok(mut stream) = election.observe(name).await else { return };
            while let Ok(Some(response)) = stream.message().await {
                let kv = response.kv().map(|kv| pair(kv, base));
                let answer = of(response.header(), base).message("kv", kv).value();
                if sender.send(json!({ "ok": answer })).is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn send(_: &mut Self::Stream, _: Request) -> Result<(), Value> {
        Err(json!("the stream takes no requests"))
    }

    async fn next(stream: &mut Self::Stream, _: i64) -> Value {
        stream.recv().await.unwrap_or_else(|| json!("ended"))
    }

    async fn sleep(duration: Duration) {
        madsim::time::sleep(duration).await;
    }

    async fn within<F: Future + Send>(duration: Duration, future: F) -> Option<F::Output> {
        madsim::time::timeout(duration, future).await.ok()
    }
}

fn request(ask: &Ask) -> Asked<Request> {
    let leader = || {
        let ask = ask.of(&ask.args["leader"]);
        LeaderKey::new()
            .with_name(ask.bytes("name"))
            .with_key(ask.bytes("key"))
            .with_rev(ask.revision("rev"))
            .with_lease(ask.int("lease"))
    };
    Ok(match ask.op.as_str() {
        "range" => Request::Get(ask.bytes("key"), get(ask)?),
        "put" => Request::Put(ask.bytes("key"), ask.bytes("value"), put(ask)?),
        "delete_range" => Request::Delete(delete(ask)?),
        "txn" => Request::Txn(txn(ask)?),
        "compact" => Request::Compact(ask.revision("revision")),
        "lease_grant" => {
            Request::Grant(ask.int("TTL"), LeaseGrantOptions::new().with_id(ask.int("ID")))
        }
        "lease_revoke" => Request::Revoke(ask.int("ID")),
        "lease_keepalive" => Request::KeepAlive(ask.int("ID")),
        "lease_time_to_live" => {
            let options = LeaseTimeToLiveOptions::new();
            let options = if ask.flag("keys") { options.with_keys() } else { options };
            Request::TimeToLive(ask.int("ID"), options)
        }
        "lease_leases" => Request::Leases,
        "campaign" => Request::Campaign {
            name: ask.bytes("name"),
            value: ask.bytes("value"),
            lease: ask.int("lease"),
        },
        // Its client asserts that there is a leader key.
        "proclaim" if ask.has("leader") => {
            Request::Proclaim(ask.bytes("value"), ProclaimOptions::new().with_leader(leader()))
        }
        "resign" if ask.has("leader") => {
            Request::Resign(ResignOptions::new().with_leader(leader()))
        }
        "leader" => Request::Leader(ask.bytes("name")),
        "observe_open" => Request::Observe(ask.bytes("name")),
        "status" => return Err("a status that is only a header"),
        _ => return Err("no such call"),
    })
}

/// Whether all the other arguments are at their defaults.
fn only(ask: &Ask, known: &[&str], reason: &'static str) -> Asked<()> {
    let is_default = |value: &Value| *value == json!(false) || *value == json!(0);
    let object = ask.args.as_object();
    let mut unknown = object
        .into_iter()
        .flatten()
        .filter(|(name, value)| !known.contains(&name.as_str()) && !is_default(value));
    if unknown.next().is_some() { Err(reason) } else { Ok(()) }
}

fn get(ask: &Ask) -> Asked<Option<GetOptions>> {
    only(ask, &["key", "range_end", "revision"], "no such option of a get")?;
    let (key, end) = (ask.bytes("key"), ask.bytes("range_end"));
    let revision = ask.revision("revision");
    if end.is_empty() {
        // Options always mean a prefix there: its `GetOptions::new` sets it.
        let options = GetOptions::new().with_revision(revision);
        return Ok((revision != 0).then_some(options));
    }
    let mut prefix_end = key;
    if let Some(last) = prefix_end.last_mut() {
        *last = last.wrapping_add(1);
    }
    if end != prefix_end || end.ends_with(&[0]) {
        return Err("a range that is no prefix");
    }
    Ok(Some(GetOptions::new().with_prefix().with_revision(revision)))
}

fn put(ask: &Ask) -> Asked<PutOptions> {
    only(ask, &["key", "value", "lease", "prev_kv"], "no such option of a put")?;
    let options = PutOptions::new().with_lease(ask.int("lease"));
    Ok(if ask.flag("prev_kv") { options.with_prev_key() } else { options })
}

fn delete(ask: &Ask) -> Asked<Bytes> {
    only(ask, &["key"], "no options of a delete")?;
    Ok(ask.bytes("key"))
}

fn txn(ask: &Ask) -> Asked<Txn> {
    let compares = ask.list("compare");
    let compares = compares.iter().map(|one| compare(&ask.of(one))).collect::<Asked<Vec<_>>>()?;
    let ops = |field: &str| {
        ask.list(field).iter().map(|one| operation(ask, one)).collect::<Asked<Vec<_>>>()
    };
    Ok(Txn::new().when(compares).and_then(ops("success")?).or_else(ops("failure")?))
}

fn operation(ask: &Ask, op: &Value) -> Asked<TxnOp> {
    let Some((kind, args)) = op.as_object().and_then(|op| op.iter().next()) else {
        return Err("an empty operation");
    };
    let ask = ask.of(args);
    let key = ask.bytes("key");
    Ok(match kind.as_str() {
        "request_range" => TxnOp::get(key, get(&ask)?),
        "request_put" => TxnOp::put(key, ask.bytes("value"), Some(put(&ask)?)),
        "request_delete_range" => TxnOp::delete(delete(&ask)?, None),
        "request_txn" => TxnOp::txn(txn(&ask)?),
        _ => return Err("no such operation"),
    })
}

fn compare(ask: &Ask) -> Asked<Compare> {
    let ops = [
        ("EQUAL", CompareOp::Equal),
        ("GREATER", CompareOp::Greater),
        ("LESS", CompareOp::Less),
        ("NOT_EQUAL", CompareOp::NotEqual),
    ];
    let op = ask.choose("result", &ops)?.unwrap_or(CompareOp::Equal);
    match ask.args["target"].as_str() {
        Some("VALUE") if !ask.has("range_end") => {
            Ok(Compare::value(ask.bytes("key"), op, ask.bytes("value")))
        }
        Some("VALUE") => Err("no comparison of a range"),
        Some(_) => Err("no comparison but of values"),
        None if ask.args["target"].is_number() => Err(UNKNOWN_ENUM),
        None => Err("no comparison but of values"),
    }
}

async fn call(client: &Client, request: Request, base: i64) -> Result<Value, Error> {
    let mut kv = client.kv_client();
    Ok(match request {
        Request::Get(key, options) => {
            let response = kv.get(key, options).await?;
            let kvs = response.kvs().iter().map(|kv| pair(kv, base)).collect::<Value>();
            of(response.header(), base).unless_default("kvs", kvs).value()
        }
        Request::Put(key, value, options) => {
            let response = kv.put(key, value, Some(options)).await?;
            let before = response.prev_key().map(|kv| pair(kv, base));
            of(response.header(), base).message("prev_kv", before).value()
        }
        Request::Delete(key) => {
            let response = kv.delete(key, None).await?;
            of(response.header(), base).always("deleted", response.deleted()).value()
        }
        Request::Txn(txn) => txn_answer(&kv.txn(txn).await?, base),
        Request::Compact(revision) => {
            kv.compact(revision, None).await?;
            json!({})
        }
        other => return call_others(client, other, base).await,
    })
}

async fn call_others(client: &Client, request: Request, base: i64) -> Result<Value, Error> {
    let mut lease = client.lease_client();
    let mut election = client.election_client();
    let renewed =
        |fields: Fields, id: i64, ttl_s: i64| fields.unless_default("ID", id).always("TTL", ttl_s);
    Ok(match request {
        Request::Grant(ttl_s, options) => {
            let response = lease.grant(ttl_s, Some(options)).await?;
            renewed(of(response.header(), base), response.id(), response.ttl()).value()
        }
        Request::Revoke(id) => of(lease.revoke(id).await?.header(), base).value(),
        Request::KeepAlive(id) => {
            let (mut keeper, mut stream) = lease.keep_alive(id).await?;
            keeper.keep_alive().await?;
            let Some(response) = stream.message().await? else { return Ok(json!("ended")) };
            renewed(of(response.header(), base), response.id(), response.ttl()).value()
        }
        Request::TimeToLive(id, options) => {
            let response = lease.time_to_live(id, Some(options)).await?;
            let keys = response.keys().iter().map(|key| value::text(key)).collect::<Value>();
            renewed(of(response.header(), base), response.id(), response.ttl())
                .unless_default("grantedTTL", response.granted_ttl())
                .unless_default("keys", keys)
                .value()
        }
        Request::Leases => {
            let response = lease.leases().await?;
            let leases = response.leases().iter().map(|lease| json!({ "ID": lease.id() }));
            of(response.header(), base).unless_default("leases", leases.collect::<Value>()).value()
        }
        Request::Campaign { name, value, lease } => {
            let response = election.campaign(name, value, lease).await?;
            let leader = response.leader().map(|leader| leader_key(leader, base));
            of(response.header(), base).message("leader", leader).value()
        }
        Request::Proclaim(value, options) => {
            of(election.proclaim(value, Some(options)).await?.header(), base).value()
        }
        Request::Leader(name) => {
            let response = election.leader(name).await?;
            let kv = response.kv().map(|kv| pair(kv, base));
            of(response.header(), base).message("kv", kv).value()
        }
        Request::Resign(options) => {
            of(election.resign(Some(options)).await?.header(), base).value()
        }
        _ => json!("not a unary call"),
    })
}

fn failure(error: &Error) -> Value {
    match error {
        Error::GRpcStatus(status) => value::status(status),
        other => json!({ "client_error": other.to_string() }),
    }
}

fn of(header: Option<&etcd_client::ResponseHeader>, base: i64) -> Fields {
    let header = header.map(|header| value::header(header.revision(), base));
    Fields::default().message("header", header)
}

fn pair(kv: &KeyValue, base: i64) -> Value {
    Fields::default()
        .unless_default("key", value::text(kv.key()))
        .revision("create_revision", kv.create_revision(), base)
        .revision("mod_revision", kv.mod_revision(), base)
        .unless_default("value", value::text(kv.value()))
        .unless_default("lease", kv.lease())
        .value()
}

fn leader_key(leader: &LeaderKey, base: i64) -> Value {
    Fields::default()
        .unless_default("name", value::text(leader.name()))
        .unless_default("key", value::text(leader.key()))
        .revision("rev", leader.rev(), base)
        .unless_default("lease", leader.lease())
        .value()
}

fn txn_answer(response: &TxnResponse, base: i64) -> Value {
    let one = |response: &TxnOpResponse| match response {
        TxnOpResponse::Get(get) => {
            let kvs = get.kvs().iter().map(|kv| pair(kv, base)).collect::<Value>();
            let range = of(get.header(), base).unless_default("kvs", kvs).value();
            json!({ "response_range": range })
        }
        TxnOpResponse::Put(put) => {
            let before = put.prev_key().map(|kv| pair(kv, base));
            json!({ "response_put": of(put.header(), base).message("prev_kv", before).value() })
        }
        TxnOpResponse::Delete(delete) => {
            let deleted = of(delete.header(), base).always("deleted", delete.deleted()).value();
            json!({ "response_delete_range": deleted })
        }
        TxnOpResponse::Txn(txn) => json!({ "response_txn": txn_answer(txn, base) }),
    };
    of(response.header(), base)
        .always("succeeded", response.succeeded())
        .unless_default("responses", response.op_responses().iter().map(one).collect::<Value>())
        .value()
}
