//! The facade against a member, end to end, over the simulated network.

mod durability;
mod election;
mod leader;
mod lock;
mod quirk;
mod request_fault;
mod scenario_lease;
mod scenario_sim;
mod scenario_watch;
mod world;

use madsim::runtime::Handle;
use tonic::Code;

use super::{
    AlarmAction, AlarmType, Client, Compare, CompareOp, ConnectOptions, Error, EventType,
    LeaseGrantOptions, LeaseTimeToLiveOptions, Permission, PutOptions, Txn, TxnOp, TxnOpResponse,
    WatchOptions,
};
use crate::{
    history::{Cause, LeaseChange},
    net::NetSim,
    time::{Instant, sleep},
};

use self::world::{ENDPOINT, first_created, run, s, with_client};

/// What a lock needs: a put if absent with a lease, the first key of a prefix, a guarded delete.
#[test]
fn a_queue_key_is_created_once_and_deleted_by_revision() {
    with_client(async |mut client| {
        let lease = client.lease_grant(1, None).await?;
        assert_eq!((lease.ttl(), lease.id() >> 48), (2, 0x694d));
        let key = format!("/lock/{:x}", lease.id());
        let enqueue = Txn::new()
            .when([Compare::create_revision(key.clone(), CompareOp::Equal, 0)])
            .and_then([
                TxnOp::put(key.clone(), "", Some(PutOptions::new().with_lease(lease.id()))),
                TxnOp::get("/lock/", Some(first_created())),
            ])
            .or_else([TxnOp::get(key.clone(), None)]);
        let first = client.txn(enqueue.clone()).await?;
        assert!(first.succeeded());
        let responses = first.op_responses();
        let TxnOpResponse::Get(owner) = &responses[1] else { panic!("{responses:?}") };
        assert_eq!(owner.kvs()[0].key_str()?, key);
        let created = owner.kvs()[0].create_revision();
        assert_eq!((created, first.header().map(|header| header.revision())), (2, Some(2)));
        let again = client.txn(enqueue).await?;
        assert!(!again.succeeded());
        assert_eq!(again.header().map(|header| header.revision()), Some(2));
        let delete = |revision| {
            Txn::new()
                .when([Compare::create_revision(key.clone(), CompareOp::Equal, revision)])
                .and_then([TxnOp::delete(key.clone(), None)])
        };
        assert!(!client.txn(delete(1)).await?.succeeded());
        assert!(client.txn(delete(created)).await?.succeeded());
        assert_eq!(client.get(key, None).await?.count(), 0);
        Ok(())
    });
}

/// A lease that nobody renews goes between its TTL and half a second later, with its keys in one
/// revision, and a watcher and the log are told why.
#[test]
fn an_unrenewed_lease_expires_with_its_keys() {
    run(async |world| {
        let mut client = Client::connect([ENDPOINT], None).await.expect("well formed");
        let lease = client.lease_grant(3, None).await.expect("granted");
        let granted = Instant::now();
        for key in ["b", "a"] {
            let options = PutOptions::new().with_lease(lease.id());
            client.put(key, "1", Some(options)).await.expect("put");
        }
        let options = WatchOptions::new().with_all_keys().with_prev_key();
        let mut watch = client.watch("", Some(options)).await.expect("watching");
        assert!(watch.message().await.expect("a message").expect("created").created());
        let told = watch.message().await.expect("a message").expect("deletions");
        let waited = granted.elapsed();
        assert!(waited > s(2.99) && waited < s(3.51), "{waited:?}");
        let keys: Vec<_> =
            told.events().iter().map(|event| event.kv().expect("a pair").key().to_vec()).collect();
        assert_eq!(keys, [b"a", b"b"]);
        assert!(told.events().iter().all(|event| event.event_type() == EventType::Delete));
        let last = world.log.commits().pop().expect("commits");
        assert_eq!((last.cause, last.revision), (Cause::Expiry(lease.id()), 4));
        let change = world.log.leases().pop().expect("lease events").change;
        assert_eq!(change, LeaseChange::Expired);
    });
}

/// Renewals keep a lease for longer than its TTL; a forced revoke ends it, the open stream then
/// answers TTL 0, and a new stream is refused by the client itself.
#[test]
fn a_renewed_lease_lives_until_it_is_revoked() {
    run(async |world| {
        let mut client = Client::connect([ENDPOINT], None).await.expect("well formed");
        let id = client.lease_grant(2, None).await.expect("granted").id();
        let options = PutOptions::new().with_lease(id);
        client.put("/lock/x", "", Some(options)).await.expect("put");
        let (mut keeper, mut answers) = client.lease_keep_alive(id).await.expect("renewed");
        for _ in 0..6 {
            sleep(s(1.0)).await;
            keeper.keep_alive().await.expect("sent");
            let answer = answers.message().await.expect("an answer").expect("no end");
            assert_eq!((answer.ttl(), answer.id()), (2, id));
        }
        assert_eq!(world.state.owner("/lock"), Some(("/lock/x".to_owned(), id)));
        assert!(world.state.revoke(id));
        assert!(!world.state.revoke(id));
        assert_eq!(world.log.commits().pop().map(|last| last.cause), Some(Cause::Revoke(id)));
        keeper.keep_alive().await.expect("sent");
        let answer = answers.message().await.expect("an answer").expect("no end");
        assert_eq!(answer.ttl(), 0);
        let refused = client.lease_keep_alive(id).await.expect_err("the lease is gone");
        assert!(matches!(refused, Error::LeaseKeepAliveError(_)), "{refused}");
        drop(keeper);
        assert!(answers.message().await.expect("an end").is_none());
    });
}

/// A renewal that comes after the TTL and before the revocation does not revive the lease: it is
/// answered with TTL 0 when the lease has been revoked.
#[test]
fn a_late_renewal_does_not_revive() {
    run(async |world| {
        let mut client = Client::connect([ENDPOINT], None).await.expect("well formed");
        // The looks for expired leases are at 0.5 s, 1.0 s …: this one runs out just after one.
        sleep(s(0.5)).await;
        let options = LeaseGrantOptions::new().with_id(77);
        client.lease_grant(2, Some(options)).await.expect("granted");
        sleep(s(2.05)).await;
        let ttl = client.lease_time_to_live(77, Some(LeaseTimeToLiveOptions::new())).await;
        assert_eq!(ttl.expect("an answer").ttl(), 0, "run out, not yet revoked");
        let refused = client.lease_keep_alive(77).await.expect_err("it does not live again");
        assert!(matches!(refused, Error::LeaseKeepAliveError(_)), "{refused}");
        let changes: Vec<_> = world.log.leases().into_iter().map(|event| event.change).collect();
        assert_eq!(changes, [LeaseChange::Granted { ttl_s: 2 }, LeaseChange::Expired]);
        let ttl = client.lease_time_to_live(77, None).await.expect("an answer");
        assert_eq!(ttl.ttl(), -1);
    });
}

/// A killed member breaks connections and streams; after its restart keys and leases are there,
/// the leases for their full TTL again, and the client connects anew by itself.
#[test]
fn keys_and_leases_survive_a_kill() {
    run(async |world| {
        let mut client = Client::connect([ENDPOINT], None).await.expect("well formed");
        let id = client.lease_grant(5, None).await.expect("granted").id();
        client.put("k", "v", Some(PutOptions::new().with_lease(id))).await.expect("put");
        let mut watch = client.watch("k", None).await.expect("watching");
        watch.message().await.expect("created");
        sleep(s(3.0)).await;
        let handle = Handle::current();
        handle.kill(world.member.id());
        let lost = watch.message().await.expect_err("the connection broke");
        assert!(matches!(lost, Error::GRpcStatus(s) if s.code() == Code::Unknown));
        let down = client.get("k", None).await.expect_err("nobody listens");
        assert!(matches!(down, Error::GRpcStatus(s) if s.code() == Code::Unavailable));
        assert!(!world.state.revoke(id), "no process could do it");
        handle.restart(world.member.id());
        world.serve();
        sleep(s(0.1)).await;
        let kept = client.get("k", None).await.expect("the member is back");
        assert_eq!((kept.kvs()[0].lease(), kept.kvs()[0].value()), (id, &b"v"[..]));
        let ttl = client.lease_time_to_live(id, None).await.expect("an answer").ttl();
        assert_eq!(ttl, 5, "TTL and election time-out, from the restart");
        sleep(s(6.6)).await;
        assert_eq!(client.get("k", None).await.expect("an answer").count(), 0);
    });
}

/// A request over a cut link ends at its time-out, and a dropped watch is forgotten by the member.
#[test]
fn a_cut_link_times_out() {
    run(async |world| {
        let (client_node, member) = (world.client.id(), world.member.id());
        let task = world.client.spawn(async move {
            let options = ConnectOptions::new().with_timeout(s(1.0)).with_connect_timeout(s(0.5));
            let mut client = Client::connect([ENDPOINT], Some(options)).await?;
            client.put("k", "1", None).await?;
            NetSim::current().cut(client_node, member);
            let begun = Instant::now();
            let error = client.put("k", "2", None).await.expect_err("it cannot arrive");
            assert!(begun.elapsed() >= s(1.0) && begun.elapsed() < s(1.1));
            NetSim::current().mend(client_node, member);
            sleep(s(0.1)).await;
            // The held request arrives after all: its outcome was unknown, not "no effect".
            assert_eq!(client.get("k", None).await?.kvs()[0].value(), b"2");
            Err::<(), _>(error)
        });
        let error = task.await.expect("not aborted").expect_err("handed on");
        assert!(matches!(error, Error::GRpcStatus(s) if s.code() == Code::Cancelled));
    });
}

/// What is not simulated says so.
#[test]
fn what_is_missing_is_refused() {
    with_client(async |mut client| {
        let error = client.member_add(["http://a:2380"], None).await.expect_err("not there");
        let Error::GRpcStatus(status) = error else { panic!("{error}") };
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(status.message().starts_with("not simulated"));
        let tls = Client::connect(["https://10.0.0.1:2379"], None).await;
        assert!(matches!(tls, Err(Error::InvalidArgs(_))));
        let none: [&str; 0] = [];
        assert!(matches!(Client::connect(none, None).await, Err(Error::InvalidArgs(_))));
        Ok(())
    });
}

/// A stream carries several watchers, each with its id; a cancelled one is silent, and a dropped
/// stream is forgotten by the member, so that a new one starts with id 0 again.
#[test]
fn a_watch_stream_carries_several_watchers() {
    with_client(async |mut client| {
        let mut watch = client.watch("a", None).await?;
        watch.watch("b", Some(WatchOptions::new().with_prefix())).await?;
        let mut created = Vec::new();
        for _ in 0..2 {
            let message = watch.message().await?.expect("no end");
            assert!(message.created());
            created.push(message.watch_id());
        }
        assert_eq!(created, [0, 1]);
        client.put("a", "1", None).await?;
        client.put("bb", "2", None).await?;
        assert_eq!(watch.message().await?.expect("no end").watch_id(), 0);
        assert_eq!(watch.message().await?.expect("no end").watch_id(), 1);
        watch.cancel(0).await?;
        assert!(watch.message().await?.expect("no end").canceled());
        client.put("a", "3", None).await?;
        client.put("bc", "4", None).await?;
        let told = watch.message().await?.expect("no end");
        assert_eq!(told.events()[0].kv().expect("a pair").key(), b"bc");
        drop(watch);
        let mut again = client.watch("a", Some(WatchOptions::new().with_start_revision(2))).await?;
        assert_eq!(again.message().await?.expect("no end").watch_id(), 0);
        // The history of the key comes in one message.
        assert_eq!(again.message().await?.expect("no end").events().len(), 2);
        Ok(())
    });
}

/// The member tells who it is, and the client goes on to the next endpoint if one is dead.
#[test]
fn a_dead_endpoint_is_passed_over() {
    run(async |_| {
        let endpoints = ["10.0.0.2:2379", "10.0.0.1:2379"];
        let mut client = Client::connect(endpoints, None).await.expect("well formed");
        let members = client.member_list().await.expect("the second endpoint answers");
        assert_eq!(members.members().len(), 1);
        assert_eq!(members.members()[0].client_urls(), [ENDPOINT]);
        let status = client.status().await.expect("an answer");
        assert_eq!((status.version(), status.leader()), ("3.5.30", members.members()[0].id()));
    });
}

/// Every call for what the simulation does not have is answered, and says so.
#[test]
fn what_is_not_simulated_can_be_called() {
    fn refused<T>(answer: Result<T, Error>) {
        let Err(Error::GRpcStatus(status)) = answer else { panic!("it is not simulated") };
        assert_eq!(status.code(), Code::Unimplemented);
        assert!(status.message().starts_with("not simulated: "), "{status}");
    }
    with_client(async |mut client| {
        refused(client.auth_enable().await);
        refused(client.role_grant_permission("role", Permission::read("key")).await);
        refused(client.user_add("name", "password", None).await);
        refused(client.auth_client().authenticate("name".to_owned(), String::new()).await);
        refused(client.update_user(Some(("name".to_owned(), String::new()))).await);
        refused(client.member_add(["10.0.0.2:2380"], None).await);
        refused(client.member_remove(1).await);
        refused(client.alarm(AlarmAction::Get, AlarmType::None, None).await);
        refused(client.defragment().await);
        refused(client.hash_kv(1).await);
        refused(client.snapshot().await);
        refused(client.move_leader(1).await);
        let user = ConnectOptions::new().with_user("name", "password");
        refused(Client::connect([ENDPOINT], Some(user)).await);
        client.update_user(None).await?;
        client.refresh_token().await?;
        assert_eq!(client.member_list().await?.members().len(), 1);
        Ok(())
    });
}
