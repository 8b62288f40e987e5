//! One file of client code that compiles and runs unchanged in both builds.
//!
//! Against a real etcd it is a test of the target `real`; against the simulated one, a unit test of
//! `etcd`. It asserts the same in both: a user's code may rely on it. Whoever includes this module
//! puts beside it a module `api` with the names of etcd-client and a `sleep` and a `timeout`.

use std::time::Duration;

use super::api::{
    Client, Compare, CompareOp, Error, EventType, GetOptions, LeaderKey, LeaseGrantOptions,
    LeaseTimeToLiveOptions, LockOptions, ProclaimOptions, PutOptions, ResignOptions, SortOrder,
    SortTarget, Txn, TxnOp, TxnOpResponse, WatchFilterType, WatchOptions, timeout,
};

/// What a call that should answer at once is given.
const PATIENCE: Duration = Duration::from_secs(10);

/// All areas, one after another, against a fresh server.
pub async fn all(mut client: Client) -> Result<(), Error> {
    kv(&mut client).await?;
    txn(&mut client).await?;
    lease(&mut client).await?;
    watch(&mut client).await?;
    lock(&mut client).await?;
    election(&mut client).await
}

/// The code and the text of a refusal by the server.
fn refusal<T>(answer: Result<T, Error>) -> (tonic::Code, String) {
    match answer {
        Err(Error::GRpcStatus(status)) => (status.code(), status.message().to_owned()),
        Err(other) => panic!("not a status: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

async fn kv(client: &mut Client) -> Result<(), Error> {
    for (key, value) in [("kv/b", "2"), ("kv/a", "1"), ("kv/b", "3")] {
        client.put(key, value, None).await?;
    }
    let options = GetOptions::new().with_prefix().with_sort(SortTarget::Mod, SortOrder::Descend);
    let found = client.get("kv/", Some(options)).await?;
    assert_eq!((found.count(), found.more()), (2, false));
    let newest = &found.kvs()[0];
    assert_eq!((newest.key_str()?, newest.value_str()?, newest.version()), ("kv/b", "3", 2));
    assert_eq!(newest.mod_revision(), newest.create_revision() + 2);
    let past = GetOptions::new().with_revision(newest.create_revision());
    assert_eq!(client.get("kv/b", Some(past)).await?.kvs()[0].value(), b"2");
    let options = Some(PutOptions::new().with_prev_key());
    let put = client.put("kv/a", "4", options).await?;
    assert_eq!(put.prev_key().map(|kv| kv.value()), Some(&b"1"[..]));
    let unknown = client.put("kv/c", "", Some(PutOptions::new().with_lease(999))).await;
    let text = "etcdserver: requested lease not found".to_owned();
    assert_eq!(refusal(unknown), (tonic::Code::NotFound, text));
    assert_eq!(refusal(client.put("", "", None).await).0, tonic::Code::InvalidArgument);
    let revision = put.header().expect("a header").revision();
    client.compact(revision, None).await?;
    let past = GetOptions::new().with_revision(revision - 1);
    let compacted = client.get("kv/b", Some(past)).await;
    assert!(matches!(
        &compacted,
        Err(Error::GRpcStatus(status)) if status.code() == tonic::Code::OutOfRange
    ));
    assert_eq!(client.delete("kv/a", None).await?.deleted(), 1);
    assert_eq!(client.delete("kv/a", None).await?.deleted(), 0);
    Ok(())
}

async fn txn(client: &mut Client) -> Result<(), Error> {
    let create = |value: &str| {
        Txn::new()
            .when([Compare::create_revision("txn/a", CompareOp::Equal, 0)])
            .and_then([TxnOp::put("txn/a", value, None), TxnOp::get("txn/a", None)])
            .or_else([TxnOp::get("txn/a", None)])
    };
    let first = client.txn(create("1")).await?;
    assert!(first.succeeded());
    let revision = first.header().expect("a header").revision();
    let second = client.txn(create("2")).await?;
    assert!(!second.succeeded());
    // A txn that only reads takes no revision.
    assert_eq!(second.header().expect("a header").revision(), revision);
    let answers = second.op_responses();
    let [TxnOpResponse::Get(found)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((found.kvs()[0].value(), found.kvs()[0].mod_revision()), (&b"1"[..], revision));
    let twice = Txn::new().and_then([TxnOp::put("x", "", None), TxnOp::put("x", "", None)]);
    let text = "etcdserver: duplicate key given in txn request".to_owned();
    assert_eq!(refusal(client.txn(twice).await), (tonic::Code::InvalidArgument, text));
    Ok(())
}

async fn lease(client: &mut Client) -> Result<(), Error> {
    let granted = client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(7))).await?;
    assert_eq!((granted.id(), granted.ttl()), (7, 60));
    let again = client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(7))).await;
    let text = "etcdserver: lease already exists".to_owned();
    assert_eq!(refusal(again), (tonic::Code::FailedPrecondition, text));
    client.put("lease/k", "", Some(PutOptions::new().with_lease(7))).await?;
    let (mut keeper, mut renewals) = client.lease_keep_alive(7).await?;
    keeper.keep_alive().await?;
    assert_eq!(renewals.message().await?.expect("a renewal").ttl(), 60);
    let options = Some(LeaseTimeToLiveOptions::new().with_keys());
    let left = client.lease_time_to_live(7, options).await?;
    assert!((58..=60).contains(&left.ttl()) && left.granted_ttl() == 60);
    assert_eq!(left.keys(), [b"lease/k"]);
    assert_eq!(client.leases().await?.leases()[0].id(), 7);
    client.lease_revoke(7).await?;
    assert_eq!(client.get("lease/k", None).await?.count(), 0);
    keeper.keep_alive().await?;
    assert_eq!(renewals.message().await?.expect("an answer").ttl(), 0);
    assert!(matches!(client.lease_keep_alive(7).await, Err(Error::LeaseKeepAliveError(_))));
    assert_eq!(refusal(client.lease_revoke(7).await).0, tonic::Code::NotFound);
    Ok(())
}

async fn watch(client: &mut Client) -> Result<(), Error> {
    let start = client.put("watch/a", "1", None).await?.header().expect("a header").revision();
    let options = WatchOptions::new().with_prefix().with_start_revision(start).with_prev_key();
    let mut stream = client.watch("watch/", Some(options)).await?;
    let created = stream.message().await?.expect("no end");
    assert!(created.created() && created.watch_id() == 0);
    client.put("watch/a", "2", None).await?;
    client.delete("watch/a", None).await?;
    let mut events = Vec::new();
    while events.len() < 3 {
        let message = timeout(PATIENCE, stream.message()).await.expect("it comes")?;
        events.extend(message.expect("no end").events().to_vec());
    }
    let of = |index: usize| {
        let event = &events[index];
        let before = event.prev_kv().map(|kv| kv.value().to_vec());
        (event.event_type(), event.kv().expect("a pair").mod_revision() - start, before)
    };
    assert_eq!(of(0), (EventType::Put, 0, None));
    assert_eq!(of(1), (EventType::Put, 1, Some(b"1".to_vec())));
    assert_eq!(of(2), (EventType::Delete, 2, Some(b"2".to_vec())));
    let options = WatchOptions::new().with_filters([WatchFilterType::NoPut]).with_watch_id(5);
    stream.watch("watch/b", Some(options)).await?;
    assert_eq!(stream.message().await?.expect("no end").watch_id(), 5);
    stream.cancel(5).await?;
    assert!(stream.message().await?.expect("no end").canceled());
    Ok(())
}

async fn lock(client: &mut Client) -> Result<(), Error> {
    for id in [0x11, 0x12] {
        client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(id))).await?;
    }
    let with = |lease| Some(LockOptions::new().with_lease(lease));
    let held = client.lock("lock", with(0x11)).await?;
    assert_eq!(held.key(), b"lock/11");
    // A second lock waits; giving it up takes its key out of the queue.
    let waited = timeout(Duration::from_millis(300), client.lock("lock", with(0x12))).await;
    assert!(waited.is_err());
    timeout(PATIENCE, async {
        while client.get("lock/12", None).await.expect("an answer").count() != 0 {
            super::api::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("its key goes");
    client.unlock(held.key()).await?;
    assert_eq!(client.lock("lock", with(0x12)).await?.key(), b"lock/12");
    let unknown = client.lock("lock", with(999)).await;
    let text = "etcdserver: requested lease not found".to_owned();
    assert_eq!(refusal(unknown), (tonic::Code::Unknown, text));
    Ok(())
}

async fn election(client: &mut Client) -> Result<(), Error> {
    client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(0x21))).await?;
    let nobody = (tonic::Code::Unknown, "election: no leader".to_owned());
    assert_eq!(refusal(client.leader("el").await), nobody);
    let won = client.campaign("el", "a", 0x21).await?;
    let leader = won.leader().expect("a leader key").clone();
    assert_eq!((leader.name(), leader.key(), leader.lease()), (&b"el"[..], &b"el/21"[..], 0x21));
    let mut observed = client.observe("el").await?;
    let first = observed.message().await?.expect("no end");
    assert_eq!(first.kv().map(|kv| kv.value()), Some(&b"a"[..]));
    client.proclaim("b", Some(ProclaimOptions::new().with_leader(leader.clone()))).await?;
    let second = timeout(PATIENCE, observed.message()).await.expect("it comes")?;
    assert_eq!(second.expect("no end").kv().map(|kv| kv.value()), Some(&b"b"[..]));
    let other = LeaderKey::new().with_name("el").with_key(leader.key()).with_rev(1).with_lease(1);
    let stale = client.proclaim("c", Some(ProclaimOptions::new().with_leader(other))).await;
    assert_eq!(refusal(stale), (tonic::Code::Unknown, "election: not leader".to_owned()));
    assert_eq!(client.leader("el").await?.kv().map(|kv| kv.value()), Some(&b"b"[..]));
    client.resign(Some(ResignOptions::new().with_leader(leader))).await?;
    assert_eq!(refusal(client.leader("el").await), nobody);
    Ok(())
}
