//! A change of the leader on the one member: leases anew, requests that wait, streams that break.

use tonic::Code;

use super::world::{World, client, exists, grant, put_on, run, s, strict_client, told, ttl};
use crate::{
    etcd::{
        GetOptions,
        server::{Harm, RequestFault, RequestKind},
    },
    time::{Instant, sleep},
};

fn no_leader() -> (Code, String) {
    (Code::Unavailable, "etcdserver: no leader".to_owned())
}

/// A promotion gives every lease its full TTL and one election time-out more, in a new term; it
/// breaks no stream, and watchers go on.
#[test]
fn a_promotion_starts_leases_anew_and_breaks_nothing() {
    run(async |world: &World| {
        let mut client = strict_client().await;
        grant(&mut client, 7, 10).await;
        put_on(&mut client, "k", 7).await;
        let mut watch = client.watch("k", None).await.expect("watching");
        watch.message().await.expect("created");
        let (mut keeper, mut renewals) = client.lease_keep_alive(7).await.expect("renewed");
        let term = |header: Option<&crate::etcd::ResponseHeader>| header.expect("one").raft_term();
        let before = term(client.get("k", None).await.expect("an answer").header());
        sleep(s(8.0)).await;
        assert!(world.state.promote());
        assert_eq!(ttl(&mut client, 7).await, 10);
        let after = term(client.get("k", None).await.expect("an answer").header());
        assert_eq!(after, before + 1);
        sleep(s(9.0)).await;
        assert!(exists(&mut client, "k").await, "17 s after its last renewal");
        keeper.keep_alive().await.expect("sent");
        assert_eq!(renewals.message().await.expect("an answer").expect("no end").ttl(), 10);
        sleep(s(10.6)).await;
        let gone = watch.message().await.expect("a message").expect("no end");
        assert_eq!(gone.events().len(), 1);
        assert!(!world.state.win_leadership(), "it leads already");
    });
}

/// Without a leader no lease ends; writes, linearizable reads and renewals wait and are done, in
/// their order, when there is one again; serializable reads and the status are answered.
#[test]
fn without_a_leader_requests_wait() {
    run(async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 4).await;
        put_on(&mut client, "k", 7).await;
        assert!(world.state.lose_leadership() && !world.state.lose_leadership());
        let begun = Instant::now();
        let (mut writer, mut reader, mut keeper) = (client.clone(), client.clone(), client.clone());
        let write = tokio::spawn(async move { writer.put("k", "new", None).await });
        let read = tokio::spawn(async move {
            sleep(s(0.1)).await;
            reader.get("k", None).await
        });
        let renew = tokio::spawn(async move { keeper.lease_keep_alive(7).await.map(drop) });
        let serializable = Some(GetOptions::new().with_serializable());
        sleep(s(0.2)).await;
        let old = client.get("k", serializable).await.expect("an answer");
        assert_eq!(old.kvs()[0].value(), b"v");
        sleep(s(6.0)).await;
        assert!(world.state.win_leadership());
        write.await.expect("not aborted").expect("done at last");
        renew.await.expect("not aborted").expect("renewed at last");
        let new = read.await.expect("not aborted").expect("read at last");
        assert_eq!(new.kvs()[0].value(), b"new");
        assert!(begun.elapsed() > s(6.1) && begun.elapsed() < s(6.5));
        assert_eq!(ttl(&mut client, 7).await, 3, "renewed at the promotion, cut to whole seconds");
    });
}

/// After 5 s and two election time-outs a request gives up: "request timed out"; a renewal ends
/// its stream with "no leader". What gave up has no effect later.
#[test]
fn patience_ends() {
    run(async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        let (mut keeper, mut renewals) = client.lease_keep_alive(7).await.expect("renewed");
        world.state.lose_leadership();
        let begun = Instant::now();
        keeper.keep_alive().await.expect("sent");
        let late = told(client.put("k", "v", None).await.expect_err("nobody leads"));
        assert_eq!(late, (Code::Unavailable, "etcdserver: request timed out".to_owned()));
        assert!(begun.elapsed() >= s(7.0) && begun.elapsed() < s(7.2), "{:?}", begun.elapsed());
        assert_eq!(told(renewals.message().await.expect_err("broken")), no_leader());
        assert!(renewals.message().await.expect("the end").is_none());
        keeper.keep_alive().await.expect_err("the stream is over");
        world.state.win_leadership();
        assert!(!exists(&mut client, "k").await);
    });
}

/// Whoever insists on a leader is refused at once while there is none, and loses open streams
/// after three election time-outs; who does not insist keeps them.
#[test]
fn who_insists_on_a_leader_is_told() {
    run(async |world: &World| {
        let (mut strict, mut patient) = (strict_client().await, client().await);
        grant(&mut strict, 7, 60).await;
        let mut watch = strict.watch("k", None).await.expect("watching");
        watch.message().await.expect("created");
        let (_keeper, mut renewals) = strict.lease_keep_alive(7).await.expect("renewed");
        let mut calm = patient.watch("k", None).await.expect("watching");
        calm.message().await.expect("created");
        world.state.lose_leadership();
        let begun = Instant::now();
        assert_eq!(told(strict.put("k", "v", None).await.expect_err("no leader")), no_leader());
        assert_eq!(told(strict.watch("k", None).await.expect_err("no leader")), no_leader());
        assert!(begun.elapsed() < s(0.1));
        assert_eq!(told(watch.message().await.expect_err("broken")), no_leader());
        assert_eq!(told(renewals.message().await.expect_err("broken")), no_leader());
        assert!(begun.elapsed() >= s(3.0) && begun.elapsed() < s(3.1), "{:?}", begun.elapsed());
        world.state.win_leadership();
        strict.put("k", "v", None).await.expect("put");
        let event = calm.message().await.expect("a message").expect("no end");
        assert_eq!(event.events().len(), 1);
    });
}

/// A renewal that waits for the revocation of its lease finds it alive after a promotion: the one
/// way in which etcd itself revives a lease (`Renew` and `Promote` in `lessor.go`).
#[test]
fn a_promotion_revives_what_was_about_to_end() {
    run(async |world: &World| {
        let mut client = client().await;
        // The looks for expired leases are at 0.5 s, 1.0 s …: this one runs out just after one.
        sleep(s(0.5)).await;
        grant(&mut client, 7, 2).await;
        sleep(s(2.05)).await;
        let mut keeper = client.clone();
        let renewal = tokio::spawn(async move { keeper.lease_keep_alive(7).await.map(drop) });
        sleep(s(0.1)).await;
        world.state.promote();
        renewal.await.expect("not aborted").expect("renewed");
        sleep(s(1.0)).await;
        assert_eq!(ttl(&mut client, 7).await, 0, "2 s from the promotion, not ended at once");
    });
}

/// A restart ends a time without a leader.
#[test]
fn a_restart_elects_itself() {
    run(async |world: &World| {
        let mut client = client().await;
        world.state.lose_leadership();
        world.restart_after(s(1.0)).await;
        client.put("k", "v", None).await.expect("put");
        assert!(!world.state.win_leadership());
        world.kill();
        sleep(s(0.01)).await;
        assert!(!world.state.promote(), "no process");
    });
}

/// A request that is delivered twice waits twice: nothing happens before somebody leads, then it is
/// done twice and the caller gets the second answer, and after its patience it is told once.
#[test]
fn a_doubled_request_waits_too() {
    run(async |world: &World| {
        let mut client = client().await;
        client.get("k", None).await.expect("connected");
        let twice = RequestFault { count: 2, ..RequestFault::next(RequestKind::Put, Harm::Twice) };
        let twice = world.state.inject(twice);
        world.state.lose_leadership();
        let mut writer = client.clone();
        let put = tokio::spawn(async move { writer.put("k", "v", None).await });
        sleep(s(0.5)).await;
        assert_eq!((world.state.harmed(twice), world.log.commits().len()), (1, 0));
        assert!(world.state.win_leadership());
        let put = put.await.expect("not aborted").expect("done at last");
        assert_eq!(put.header().map(|header| header.revision()), Some(3));
        assert_eq!(world.log.commits().len(), 2);
        world.state.lose_leadership();
        let late = told(client.put("k", "w", None).await.expect_err("nobody leads"));
        assert_eq!(late.1, "etcdserver: request timed out");
        assert!(world.state.win_leadership());
        sleep(s(0.1)).await;
        assert_eq!(world.log.commits().len(), 2);
    });
}

/// A connection that breaks, by a fault or with its client, takes what waits for a leader along.
#[test]
fn what_waits_goes_with_its_connection() {
    run(async |world: &World| {
        let mut client = client().await;
        world.state.lose_leadership();
        let fault = RequestFault::next(RequestKind::Put, Harm::ReplyLost);
        let fault = world.state.inject(fault);
        let lost = told(client.put("fault", "v", None).await.expect_err("it broke"));
        assert_eq!((lost.0, world.state.harmed(fault)), (Code::Unknown, 1));
        let dying = world
            .client
            .spawn(async { super::world::client().await.put("client", "v", None).await.map(drop) });
        sleep(s(0.5)).await;
        assert_eq!(world.state.received(RequestKind::Put), 2);
        madsim::runtime::Handle::current().kill(world.client.id());
        dying.await.expect_err("it died with its node");
        sleep(s(0.1)).await;
        assert!(world.state.win_leadership());
        sleep(s(0.1)).await;
        assert_eq!(world.log.commits(), []);
    });
}

/// Whoever insists on a leader is told so of a doubled request too.
#[test]
fn a_doubled_watch_insists_on_a_leader() {
    run(async |world: &World| {
        let mut strict = strict_client().await;
        let twice = RequestFault::next(RequestKind::WatchCreate, Harm::Twice);
        let twice = world.state.inject(twice);
        world.state.lose_leadership();
        assert_eq!(told(strict.watch("k", None).await.expect_err("no leader")), no_leader());
        assert_eq!((world.state.harmed(twice), world.state.stream_state_len()), (1, 0));
    });
}

/// What waited is answered with the header of its arrival, if it is a renewal: revision and term.
#[test]
fn a_held_renewal_has_the_header_of_its_arrival() {
    run(async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        let (mut keeper, mut renewals) = client.lease_keep_alive(7).await.expect("renewed");
        world.state.lose_leadership();
        let put = tokio::spawn(async move { client.put("k", "v", None).await });
        sleep(s(0.1)).await;
        for _ in 0..2 {
            keeper.keep_alive().await.expect("sent");
        }
        sleep(s(0.1)).await;
        assert!(world.state.win_leadership());
        put.await.expect("not aborted").expect("done at last");
        let mut seen = Vec::new();
        for _ in 0..2 {
            let answer = renewals.message().await.expect("an answer").expect("no end");
            let header = answer.header().expect("a header");
            seen.push((header.revision(), header.raft_term(), answer.ttl()));
        }
        let (_, term, _) = seen[0];
        assert_eq!(seen, [(1, term, 60), (2, term + 1, 60)]);
    });
}
