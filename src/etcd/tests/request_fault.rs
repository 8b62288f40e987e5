//! Faults of single requests: what has happened, and what the client is told.

use std::time::Duration;

use tonic::Code;

use super::world::{World, client, exists, grant, put_on, revision, run, s, told, ttl};
use crate::{
    etcd::{
        Client, Compare, CompareOp, ConnectOptions, DeleteOptions, Error, LockOptions,
        ResignOptions, Txn, TxnOp,
        server::{Harm, RequestFault, RequestKind},
    },
    net::NetSim,
    time::{Instant, sleep, timeout},
};

const LOST: (Code, &str) = (Code::Unknown, "transport error");
const LOST_STREAM: (Code, &str) =
    (Code::Unknown, "h2 protocol error: error reading a body from connection");

fn same(error: Error, expected: (Code, &str)) {
    let (code, message) = told(error);
    assert_eq!((code, message.as_str()), expected);
}

/// Does one request of the kind against the keys `k` (on lease 7) and `other`.
async fn ask(client: &mut Client, kind: RequestKind) -> Result<(), Error> {
    match kind {
        RequestKind::Range => client.get("k", None).await.map(drop),
        RequestKind::Put => client.put("new", "1", None).await.map(drop),
        RequestKind::DeleteRange => client.delete("k", None).await.map(drop),
        RequestKind::Txn => {
            let absent = Compare::create_revision("new", CompareOp::Equal, 0);
            let txn = Txn::new().when([absent]).and_then([TxnOp::put("new", "1", None)]);
            client.txn(txn).await.map(drop)
        }
        RequestKind::Compact => client.compact(3, None).await.map(drop),
        RequestKind::LeaseGrant => client.lease_grant(60, None).await.map(drop),
        RequestKind::LeaseRevoke => client.lease_revoke(7).await.map(drop),
        RequestKind::LeaseTimeToLive => client.lease_time_to_live(7, None).await.map(drop),
        RequestKind::Leases => client.leases().await.map(drop),
        RequestKind::MemberList => client.member_list().await.map(drop),
        RequestKind::Status => client.status().await.map(drop),
        RequestKind::KeepAlive => client.lease_keep_alive(7).await.map(drop),
        RequestKind::WatchCreate => client.watch("k", None).await.map(drop),
        other => panic!("no call of its own: {other:?}"),
    }
}

/// What there is to see of a request's effect: revision, leases, whether 3 is compacted, the time
/// left to lease 7.
type Seen = (i64, usize, bool, i64);

/// Looks.
async fn seen(client: &mut Client) -> Seen {
    let leases = client.leases().await.expect("an answer").leases().len();
    let past = crate::etcd::GetOptions::new().with_revision(2);
    let compacted = client.get("k", Some(past)).await.is_err();
    (revision(client).await, leases, compacted, ttl(client, 7).await)
}

async fn prepare(client: &mut Client) {
    grant(client, 7, 60).await;
    put_on(client, "k", 7).await;
    client.put("other", "1", None).await.expect("put");
    client.put("other", "2", None).await.expect("put");
    sleep(s(5.0)).await;
}

/// What a request makes of it.
type Effect = fn(Seen) -> Seen;

/// The kinds, and what a request of each changes.
const CALLS: [(RequestKind, Effect); 13] = [
    (RequestKind::Range, |seen| seen),
    (RequestKind::Put, |(rev, leases, compacted, ttl)| (rev + 1, leases, compacted, ttl)),
    (RequestKind::DeleteRange, |(rev, leases, compacted, ttl)| (rev + 1, leases, compacted, ttl)),
    (RequestKind::Txn, |(rev, leases, compacted, ttl)| (rev + 1, leases, compacted, ttl)),
    (RequestKind::Compact, |(rev, leases, _, ttl)| (rev, leases, true, ttl)),
    (RequestKind::LeaseGrant, |(rev, leases, compacted, ttl)| (rev, leases + 1, compacted, ttl)),
    (RequestKind::LeaseRevoke, |(rev, leases, compacted, _)| (rev + 1, leases - 1, compacted, -1)),
    (RequestKind::LeaseTimeToLive, |seen| seen),
    (RequestKind::Leases, |seen| seen),
    (RequestKind::MemberList, |seen| seen),
    (RequestKind::Status, |seen| seen),
    (RequestKind::KeepAlive, |(rev, leases, compacted, _)| (rev, leases, compacted, 59)),
    (RequestKind::WatchCreate, |seen| seen),
];

/// Every kind of request, lost before its effect and after it (H06): the client is told the same,
/// the store shows the difference, and the next request connects anew.
#[test]
fn h06_a_lost_request_has_no_effect_and_a_lost_reply_has_one() {
    for (kind, effect) in CALLS {
        for harm in [Harm::Lost, Harm::ReplyLost] {
            run(async move |world: &World| {
                let mut client = client().await;
                prepare(&mut client).await;
                let before = seen(&mut client).await;
                assert_eq!((before.0, before.3), (4, 54));
                let fault = world.state.inject(RequestFault::next(kind, harm));
                same(ask(&mut client, kind).await.expect_err("lost"), LOST);
                assert_eq!(world.state.harmed(fault), 1);
                let expected = if harm == Harm::Lost { before } else { effect(before) };
                assert_eq!(seen(&mut client).await, expected, "{kind:?} {harm:?}");
                ask(&mut client, kind).await.map_or_else(|error| drop(told(error)), drop);
                assert_eq!(world.state.withdraw(fault), 1, "one only");
            });
        }
    }
}

/// The same of the lock and the election service: a queue key that nobody knows of, or that is gone
/// although nobody was told.
#[test]
fn h06_the_services_lose_requests_and_replies_too() {
    for harm in [Harm::Lost, Harm::ReplyLost] {
        run(async move |world: &World| {
            let mut client = client().await;
            grant(&mut client, 7, 60).await;
            let lose = |kind| world.state.inject(RequestFault::next(kind, harm));
            let under = || Some(LockOptions::new().with_lease(7));
            lose(RequestKind::Lock);
            same(client.lock("l", under()).await.expect_err("lost"), LOST);
            assert_eq!(exists(&mut client, "l/7").await, harm == Harm::ReplyLost);
            let key = client.lock("l", under()).await.expect("locked").key().to_vec();
            lose(RequestKind::Unlock);
            same(client.unlock(key).await.expect_err("lost"), LOST);
            assert_eq!(exists(&mut client, "l/7").await, harm == Harm::Lost);
            lose(RequestKind::Campaign);
            same(client.campaign("e", "v", 7).await.expect_err("lost"), LOST);
            assert_eq!(exists(&mut client, "e/7").await, harm == Harm::ReplyLost);
            let won = client.campaign("e", "v", 7).await.expect("won");
            let leader = won.leader().expect("a leader").clone();
            lose(RequestKind::Resign);
            let resign = ResignOptions::new().with_leader(leader);
            same(client.resign(Some(resign)).await.expect_err("lost"), LOST);
            assert_eq!(exists(&mut client, "e/7").await, harm == Harm::Lost);
        });
    }
}

/// A renewal that is delivered twice is answered twice: a client that counts answers sees one more.
#[test]
fn a_doubled_renewal_has_two_answers() {
    run(async |world| {
        let mut client = client().await;
        let lease = client.lease_grant(60, None).await.expect("granted").id();
        let (mut keeper, mut answers) = client.lease_keep_alive(lease).await.expect("alive");
        world.state.inject(RequestFault::next(RequestKind::KeepAlive, Harm::Twice));
        keeper.keep_alive().await.expect("sent");
        for _ in 0..2 {
            let answer = timeout(s(1.0), answers.message()).await.expect("in time");
            assert_eq!(answer.expect("open").expect("an answer").ttl(), 60);
        }
        assert!(timeout(s(1.0), answers.message()).await.is_err());
    });
}

/// Delivered twice: the effect happens twice where it can, and the caller gets the second answer.
#[test]
fn twice_is_two_effects_and_the_second_answer() {
    run(async |world| {
        let twice = |kind| world.state.inject(RequestFault::next(kind, Harm::Twice));
        let mut client = client().await;
        prepare(&mut client).await;
        twice(RequestKind::Put);
        let put = client.put("new", "1", None).await.expect("put");
        assert_eq!(put.header().map(|header| header.revision()), Some(6));
        assert_eq!(client.get("new", None).await.expect("got").kvs()[0].version(), 2);
        // The guarded write took effect, and its caller is told that it failed (W07).
        twice(RequestKind::Txn);
        let absent = Compare::create_revision("once", CompareOp::Equal, 0);
        let txn = Txn::new().when([absent]).and_then([TxnOp::put("once", "1", None)]);
        assert!(!client.txn(txn).await.expect("an answer").succeeded());
        assert!(exists(&mut client, "once").await);
        twice(RequestKind::DeleteRange);
        let options = DeleteOptions::new();
        assert_eq!(client.delete("once", Some(options)).await.expect("an answer").deleted(), 0);
        twice(RequestKind::LeaseGrant);
        client.lease_grant(60, None).await.expect("granted");
        assert_eq!(client.leases().await.expect("an answer").leases().len(), 3);
        twice(RequestKind::LeaseRevoke);
        let error = client.lease_revoke(7).await.expect_err("already gone");
        same(error, (Code::NotFound, "etcdserver: requested lease not found"));
        twice(RequestKind::Compact);
        let error = client.compact(3, None).await.expect_err("already done");
        assert_eq!(told(error).0, Code::OutOfRange);
        // On a stream both answers arrive: two watchers.
        twice(RequestKind::WatchCreate);
        let mut watch = client.watch("k", None).await.expect("watching");
        for id in [0, 1] {
            let created = watch.message().await.expect("a message").expect("no end");
            assert!(created.created() && created.watch_id() == id);
        }
    });
}

/// A broken connection takes everything on it along: calls, keep-alive and watch streams.
#[test]
fn a_broken_connection_breaks_all_that_is_on_it() {
    run(async |world| {
        let mut client = client().await;
        prepare(&mut client).await;
        let mut watch = client.watch("new", None).await.expect("watching");
        watch.message().await.expect("created");
        let (mut keeper, mut renewals) = client.lease_keep_alive(7).await.expect("renewed");
        world.state.inject(RequestFault::next(RequestKind::Put, Harm::ReplyLost));
        same(client.put("new", "1", None).await.expect_err("lost"), LOST);
        // The event that the put caused did not get out.
        same(watch.message().await.expect_err("broken"), LOST_STREAM);
        same(renewals.message().await.expect_err("broken"), LOST_STREAM);
        let closed = keeper.keep_alive().await.expect_err("closed");
        assert!(matches!(closed, Error::LeaseKeepAliveError(text) if text.contains("closed")));
        assert!(exists(&mut client, "new").await);
    });
}

/// Some requests pass first, some are harmed then, the rest pass; a fault that met nothing shows.
#[test]
fn faults_count_what_they_harm() {
    run(async |world| {
        let mut client = client().await;
        let harm = Harm::Lost;
        let fault = RequestFault { kind: RequestKind::Put, harm, skip: 1, count: 2 };
        let fault = world.state.inject(fault);
        let idle = world.state.inject(RequestFault::next(RequestKind::Compact, harm));
        let mut lost = Vec::new();
        for _ in 0..5 {
            lost.push(client.put("k", "v", None).await.is_err());
        }
        assert_eq!(lost, [false, true, true, false, false]);
        assert_eq!((world.state.harmed(fault), world.state.harmed(idle)), (2, 0));
        assert_eq!(world.state.withdraw(fault), 2);
        assert_eq!(world.state.harmed(fault), 0);
    });
}

/// A renewal and a watcher on streams that are open already.
#[test]
fn messages_of_open_streams_are_harmed_too() {
    run(async |world| {
        let mut client = client().await;
        prepare(&mut client).await;
        let (mut keeper, mut renewals) = client.lease_keep_alive(7).await.expect("renewed");
        let fault = RequestFault::next(RequestKind::KeepAlive, Harm::ReplyLost);
        let fault = world.state.inject(fault);
        sleep(s(10.0)).await;
        keeper.keep_alive().await.expect("sent");
        same(renewals.message().await.expect_err("broken"), LOST_STREAM);
        assert_eq!(world.state.harmed(fault), 1);
        assert_eq!(ttl(&mut client, 7).await, 59, "it was renewed");
    });
}

/// An unreachable member: refused at once, or after the time-out for connecting, with one text; a
/// request over a cut link ends at its own time-out.
#[test]
fn errors_of_the_transport() {
    run(async |world| {
        let options = |options: ConnectOptions| Some(options.with_connect_timeout(s(0.5)));
        let mut nobody = Client::connect(["10.0.0.1:1"], None).await.expect("well formed");
        let refused = nobody.put("k", "v", None).await.expect_err("nobody listens");
        same(refused, (Code::Unavailable, "tcp connect error"));
        let (me, member) = (world.client.id(), world.member.id());
        let task = world.client.spawn(async move {
            NetSim::current().cut(me, member);
            let cut = options(ConnectOptions::new());
            let mut cut = Client::connect([super::ENDPOINT], cut).await.expect("well formed");
            let begun = Instant::now();
            let slow = cut.watch("k", None).await.expect_err("no way there");
            (told(slow), begun.elapsed())
        });
        let (slow, waited) = task.await.expect("not aborted");
        assert_eq!(slow, (Code::Unavailable, "tcp connect error".to_owned()));
        assert!(waited >= s(0.5) && waited < s(0.6), "{waited:?}");
        assert_eq!(waited.as_millis(), Duration::from_millis(500).as_millis());
    });
}

/// A stream that was opened by a message whose reply got lost is gone with its connection: the
/// member keeps nothing for it.
#[test]
fn a_lost_reply_leaves_no_stream_behind() {
    run(async |world: &World| {
        let mut client = client().await;
        // The looks for expired leases are at 0.5 s, 1.0 s …: this one runs out just after one.
        sleep(s(0.5)).await;
        grant(&mut client, 7, 2).await;
        let lose = |kind| world.state.inject(RequestFault::next(kind, Harm::ReplyLost));
        lose(RequestKind::WatchCreate);
        same(client.watch("k", None).await.expect_err("lost"), LOST);
        lose(RequestKind::Observe);
        same(client.observe("e").await.map(drop).expect_err("lost"), LOST);
        sleep(s(2.05)).await;
        lose(RequestKind::KeepAlive);
        same(client.lease_keep_alive(7).await.map(drop).expect_err("lost"), LOST);
        sleep(s(0.01)).await;
        assert_eq!(ttl(&mut client, 7).await, 0, "it has run out and is not revoked yet");
        assert_eq!(world.state.stream_state_len(), 0);
        let _open = client.watch("k", None).await.expect("watching");
        assert_eq!(world.state.stream_state_len(), 1);
    });
}
