//! The door of etcd-client's API: the recorded operations as its calls.
//!
//! Whoever includes this module puts beside it the module `client_driver`, and a module `api` with
//! the names of etcd-client and a `sleep` and a `timeout`: so one source drives a real etcd and the
//! simulated one.

mod answer;
mod request;
mod stream;

use std::{future::Future, time::Duration};

use serde_json::{Value, json};

use self::{request::Request, stream::Stream};
use super::{
    api::{self, Client, Error},
    client_driver::{
        ask::{Ask, Asked},
        case,
        door::Door,
        value,
    },
};

/// The recorded cases that the API cannot express, and why. A new one has to be added by hand.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("kv_range/sort invalid target value", "it killed the real server"),
    ("txn/empty request op", "an empty operation"),
];

/// A client.
#[derive(Clone)]
pub struct EtcdApi(pub Client);

impl Door for EtcdApi {
    type Request = Request;
    type Stream = Stream;

    /// Whether a message is a fragment is not shown.
    const HIDDEN: &'static [&'static str] = &["fragment"];

    fn request(ask: &Ask) -> Asked<Request> {
        Request::new(ask)
    }

    async fn call(&self, request: Request, base: i64) -> Value {
        match call(self.0.clone(), request, base).await {
            Ok(answer) => json!({ "ok": answer }),
            Err(Error::LeaseKeepAliveError(text)) if text == "lease not found" => case::gone(),
            Err(error) => answer::error(&error),
        }
    }

    async fn open(&self, request: Request, base: i64) -> Result<Stream, Value> {
        stream::open(self.0.clone(), request, base).await.map_err(|error| answer::error(&error))
    }

    async fn send(stream: &mut Stream, request: Request) -> Result<(), Value> {
        stream.send(request).await.map_err(|error| answer::error(&error))
    }

    async fn next(stream: &mut Stream, base: i64) -> Value {
        stream.next(base).await
    }

    async fn sleep(duration: Duration) {
        api::sleep(duration).await;
    }

    async fn within<F: Future + Send>(duration: Duration, future: F) -> Option<F::Output> {
        api::timeout(duration, future).await.ok()
    }
}

async fn call(mut client: Client, request: Request, base: i64) -> Result<Value, Error> {
    match request {
        Request::Range(..)
        | Request::Put(..)
        | Request::Delete(..)
        | Request::Txn(_)
        | Request::Compact(_) => call_kv(client, request, base).await,
        Request::Grant(..)
        | Request::Revoke(_)
        | Request::KeepAlive(_)
        | Request::TimeToLive(..)
        | Request::Leases => call_lease(client, request, base).await,
        Request::Status => Ok(answer::status(&client.maintenance_client().status().await?, base)),
        Request::MemberList => {
            let response = client.cluster_client().member_list().await?;
            let member = |(index, member): (usize, &api::Member)| {
                json!({
                    "ID": format!("M{}", index + 1), "name": member.name(),
                    "peerURLs": member.peer_urls().len(),
                    "clientURLs": member.client_urls().len(),
                })
            };
            let members = response.members().iter().enumerate().map(member).collect::<Value>();
            Ok(answer::of(response.header(), base).always("members", members).value())
        }
        Request::Lock(name, options) => {
            let response = client.lock_client().lock(name, options).await?;
            let key = value::text(response.key());
            Ok(answer::of(response.header(), base).unless_default("key", key).value())
        }
        Request::Unlock(key) => {
            let response = client.lock_client().unlock(key).await?;
            Ok(answer::of(response.header(), base).value())
        }
        other => call_election(&mut client, other, base).await,
    }
}

async fn call_kv(client: Client, request: Request, base: i64) -> Result<Value, Error> {
    let mut kv = client.kv_client();
    Ok(match request {
        Request::Range(key, options) => answer::get(&kv.get(key, Some(options)).await?, base),
        Request::Put(key, value, options) => {
            answer::put(&kv.put(key, value, Some(options)).await?, base)
        }
        Request::Delete(key, options) => {
            answer::delete(&kv.delete(key, Some(options)).await?, base)
        }
        Request::Txn(txn) => answer::txn(&kv.txn(txn).await?, base),
        Request::Compact(revision) => {
            answer::of(kv.compact(revision, None).await?.header(), base).value()
        }
        _ => json!("not a call of the KV service"),
    })
}

async fn call_lease(client: Client, request: Request, base: i64) -> Result<Value, Error> {
    let mut lease = client.lease_client();
    Ok(match request {
        Request::Grant(ttl_s, options) => {
            let response = lease.grant(ttl_s, Some(options)).await?;
            answer::of(response.header(), base)
                .unless_default("ID", response.id())
                .always("TTL", response.ttl())
                .value()
        }
        Request::Revoke(id) => answer::of(lease.revoke(id).await?.header(), base).value(),
        Request::KeepAlive(id) => {
            // The API keeps the first answer to itself, so a second renewal is made to show one.
            let (mut keeper, mut stream) = lease.keep_alive(id).await?;
            keeper.keep_alive().await?;
            let Some(response) = stream.message().await? else { return Ok(json!("ended")) };
            answer::of(response.header(), base)
                .unless_default("ID", response.id())
                .always("TTL", response.ttl())
                .value()
        }
        Request::TimeToLive(id, options) => {
            let response = lease.time_to_live(id, Some(options)).await?;
            let keys = response.keys().iter().map(|key| value::text(key)).collect::<Value>();
            answer::of(response.header(), base)
                .unless_default("ID", response.id())
                .always("TTL", response.ttl())
                .unless_default("grantedTTL", response.granted_ttl())
                .unless_default("keys", keys)
                .value()
        }
        Request::Leases => {
            let response = lease.leases().await?;
            let leases = response.leases().iter().map(|lease| json!({ "ID": lease.id() }));
            answer::of(response.header(), base)
                .unless_default("leases", leases.collect::<Value>())
                .value()
        }
        _ => json!("not a call of the lease service"),
    })
}

async fn call_election(client: &mut Client, request: Request, base: i64) -> Result<Value, Error> {
    let mut election = client.election_client();
    Ok(match request {
        Request::Campaign { name, value, lease } => {
            let response = election.campaign(name, value, lease).await?;
            let leader = response.leader().map(|leader| answer::leader_key(leader, base));
            answer::of(response.header(), base).message("leader", leader).value()
        }
        Request::Proclaim(value, options) => {
            answer::of(election.proclaim(value, options).await?.header(), base).value()
        }
        Request::Leader(name) => {
            let response = election.leader(name).await?;
            let kv = response.kv().map(|kv| answer::pair(kv, base));
            answer::of(response.header(), base).message("kv", kv).value()
        }
        Request::Resign(options) => {
            answer::of(election.resign(options).await?.header(), base).value()
        }
        _ => json!("a request of a stream"),
    })
}
