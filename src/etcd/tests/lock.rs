//! The lock service through the facade, and the stories that people have had with it.

use std::{future::Future, pin::Pin, pin::pin};

use madsim::runtime::Handle;
use tonic::Code;

use super::world::{ENDPOINT, World, run, run_with, s};
use crate::{
    etcd::{
        Client, ConnectOptions, Error, GetOptions, LeaseGrantOptions, LockOptions,
        server::{EtcdVersion, MemberOptions},
    },
    time::{Instant, sleep, timeout},
};

pub(super) async fn connect() -> Client {
    Client::connect([ENDPOINT], None).await.expect("well formed")
}

/// Whether a call still waits after a while.
pub(super) async fn is_blocked<F: Future>(call: Pin<&mut F>) -> bool {
    timeout(s(0.25), call).await.is_err()
}

/// The text of a refusal that a service passes on without its code.
pub(super) fn unknown(error: Error) -> String {
    match error {
        Error::GRpcStatus(status) if status.code() == Code::Unknown => status.message().to_owned(),
        other => panic!("another error: {other}"),
    }
}

/// A client with a lease of this id.
pub(super) async fn with_lease(id: i64, ttl_s: i64) -> Client {
    let mut client = connect().await;
    let options = LeaseGrantOptions::new().with_id(id);
    client.lease_grant(ttl_s, Some(options)).await.expect("granted");
    client
}

fn under(lease: i64) -> Option<LockOptions> {
    Some(LockOptions::new().with_lease(lease))
}

/// The keys that begin with the prefix, in order.
pub(super) async fn keys(client: &mut Client, prefix: &str) -> Vec<String> {
    let found = client.get(prefix, Some(GetOptions::new().with_prefix())).await.expect("read");
    found.kvs().iter().map(|kv| kv.key_str().expect("text").to_owned()).collect()
}

/// A lock goes from its holder to the next in the queue at the unlock, and the header says so.
#[test]
fn an_unlock_passes_the_lock_on() {
    run(async |_| {
        let (mut a, mut b) = (with_lease(1, 60).await, with_lease(2, 60).await);
        let held = a.lock("l", under(1)).await.expect("free");
        assert_eq!((held.key(), held.header().expect("there").revision()), (&b"l/1"[..], 2));
        let mut waiting = pin!(b.lock("l", under(2)));
        assert!(is_blocked(waiting.as_mut()).await);
        let unlocked = a.unlock(held.key()).await.expect("unlocked");
        let revision = unlocked.header().expect("there").revision();
        let mut next = waiting.await.expect("the turn has come");
        assert_eq!((next.key(), revision), (&b"l/2"[..], 4));
        assert_eq!(next.take_header().expect("there").revision(), revision);
        assert!(next.header().is_none());
        let refused = a.lock("l", under(999)).await.expect_err("no such lease");
        assert_eq!(unknown(refused), "etcdserver: requested lease not found");
        let refused = a.unlock("").await.expect_err("no key");
        assert_eq!(unknown(refused), "etcdserver: key is not provided");
    });
}

/// A dead holder's lease frees the lock for the next.
#[test]
fn expiry_passes_the_lock_on() {
    run(async |world| {
        let (mut a, mut b) = (with_lease(1, 2).await, with_lease(2, 60).await);
        a.lock("l", under(1)).await.expect("free");
        let begun = Instant::now();
        let key = b.lock("l", under(2)).await.expect("the turn has come").key().to_vec();
        assert!(begun.elapsed() > s(1.8) && begun.elapsed() < s(2.6), "{:?}", begun.elapsed());
        assert_eq!(world.state.owner("l"), Some((String::from_utf8(key).expect("text"), 2)));
    });
}

/// M01: a waiter's lease ends while it waits, and then its predecessor leaves. 3.5 looks at the
/// key and says that the session is over; 3.4 tells it that it holds the lock, beside the client
/// that then gets it.
#[test]
fn m01_a_waiter_with_a_dead_lease() {
    for version in EtcdVersion::ALL {
        let options = MemberOptions { version, ..MemberOptions::default() };
        run_with(options, async move |world| {
            let (mut a, mut b) = (with_lease(1, 60).await, with_lease(2, 2).await);
            a.lock("l", under(1)).await.expect("free");
            let mut waiting = pin!(b.lock("l", under(2)));
            assert!(is_blocked(waiting.as_mut()).await);
            sleep(s(3.0)).await;
            assert!(is_blocked(waiting.as_mut()).await);
            assert_eq!(keys(&mut a, "l/").await, ["l/1"]);
            a.unlock("l/1").await.expect("unlocked");
            let answer = waiting.await;
            match version {
                EtcdVersion::V3_4 => assert_eq!(answer.expect("3.4 grants").key(), b"l/2"),
                _ => assert_eq!(unknown(answer.expect_err("refused")), "mutex: session is expired"),
            }
            assert_eq!(world.state.owner("l"), None);
            a.lock("l", under(1)).await.expect("free: a second owner, if the first was told so");
        });
    }
}

/// M13: the client gives up after 3 s, and its entry in the queue goes with its call though its
/// lease lives; who comes after it is not kept from the lock.
#[test]
fn m13_a_call_that_was_given_up_leaves_the_queue() {
    run(async |_| {
        let (mut a, mut c) = (with_lease(1, 60).await, with_lease(3, 60).await);
        with_lease(2, 30).await;
        let options = ConnectOptions::new().with_timeout(s(3.0));
        let mut b = Client::connect([ENDPOINT], Some(options)).await.expect("well formed");
        a.lock("l", under(1)).await.expect("free");
        let mut given_up = pin!(b.lock("l", under(2)));
        assert!(is_blocked(given_up.as_mut()).await);
        let mut waiting = pin!(c.lock("l", under(3)));
        assert!(is_blocked(waiting.as_mut()).await);
        assert_eq!(keys(&mut a, "l/").await, ["l/1", "l/2", "l/3"]);
        let error = given_up.await.expect_err("too late");
        assert!(matches!(error, Error::GRpcStatus(status) if status.code() == Code::Cancelled));
        sleep(s(0.1)).await;
        assert_eq!(keys(&mut a, "l/").await, ["l/1", "l/3"]);
        a.unlock("l/1").await.expect("unlocked");
        let next = timeout(s(0.1), waiting).await.expect("at once").expect("granted");
        assert_eq!(next.key(), b"l/3");
    });
}

/// M13, the other way to go: the waiter's process dies, and its connection takes the entry along.
#[test]
fn m13_a_lost_connection_leaves_the_queue() {
    run(async |world| {
        let mut a = with_lease(1, 60).await;
        a.lock("l", under(1)).await.expect("free");
        let task = world.client.spawn(async {
            let mut b = with_lease(2, 60).await;
            let mut c = b.clone();
            tokio::spawn(async move { c.lock("l", None).await });
            b.lock("l", under(2)).await
        });
        sleep(s(0.2)).await;
        assert_eq!(keys(&mut a, "l/").await.len(), 3);
        Handle::current().kill(world.client.id());
        assert!(task.await.is_err(), "it died with its node");
        sleep(s(0.1)).await;
        assert_eq!(keys(&mut a, "l/").await, ["l/1"]);
        // The leases live on: it is the call that is over, and not the session.
        assert_eq!(a.leases().await.expect("an answer").leases().len(), 3);
    });
}

/// M14: without a lease the lock ends after 60 s, without a word to the holder, and the next in
/// the queue has 60 s from its own call.
#[test]
fn m14_a_lock_without_a_lease_ends_after_60_s() {
    run(async |world| {
        let (mut a, mut b, begun) = (connect().await, connect().await, Instant::now());
        let held = a.lock("l", None).await.expect("free").key().to_vec();
        sleep(s(10.0)).await;
        let next = b.lock("l", None).await.expect("the turn has come").key().to_vec();
        assert!(begun.elapsed() > s(60.0) && begun.elapsed() < s(60.6), "{:?}", begun.elapsed());
        assert_eq!(a.get(held, None).await.expect("an answer").count(), 0);
        assert!(b.get(next, None).await.expect("an answer").count() == 1);
        sleep(s(10.1)).await;
        assert_eq!(world.state.owner("l"), None);
    });
}

/// A killed member tells nobody and cleans nothing up: the waiters' keys are there after the
/// restart, in the queue that they were in.
#[test]
fn a_killed_member_keeps_the_queue() {
    run(async |world: &World| {
        let (mut a, mut b) = (with_lease(1, 60).await, with_lease(2, 60).await);
        a.lock("l", under(1)).await.expect("free");
        let mut waiting = pin!(b.lock("l", under(2)));
        assert!(is_blocked(waiting.as_mut()).await);
        Handle::current().kill(world.member.id());
        let lost = waiting.await.expect_err("the connection broke");
        assert!(matches!(lost, Error::GRpcStatus(status) if status.code() == Code::Unknown));
        Handle::current().restart(world.member.id());
        world.serve();
        sleep(s(0.1)).await;
        assert_eq!(keys(&mut a, "l/").await, ["l/1", "l/2"]);
        a.unlock("l/1").await.expect("unlocked");
        let held = a.lock("l", under(2)).await.expect("its key is the first");
        assert_eq!(held.key(), b"l/2");
    });
}
