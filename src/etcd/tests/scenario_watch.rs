//! Field failures of watches and of requests sent twice, as far as one member can show them.
//!
//! Not here: W04 (a member that rejoins by snapshot needs others), W05 (a member of a minority
//! needs a majority elsewhere; what such a member tells its clients is in `leader.rs`).

use tonic::Code;

use super::world::{ENDPOINT, World, client, enqueue, exists, grant, run, s, told};
use crate::{
    etcd::{
        Client, Compare, CompareOp, Error, Txn, TxnOp, WatchOptions,
        server::{Harm, RequestFault, RequestKind},
    },
    net::NetSim,
    time::sleep,
};

/// Requested notices of progress overtook events. Given a watcher that is cut off before the event
/// of revision 20, with the store at 25; when progress is requested; then no notice comes before
/// that event, and none names a revision that is behind it. A fresh quiet watcher gets its notice.
#[test]
fn w02_a_notice_of_progress_overtakes_no_event() {
    run(async |world: &World| {
        let mut writer = client().await;
        let (me, member) = (world.client.id(), world.member.id());
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let watcher = world.client.spawn(async move {
            let mut client = client().await;
            let options = WatchOptions::new().with_start_revision(20);
            let mut watch = client.watch("k", Some(options)).await?;
            watch.message().await?;
            ready.send(()).expect("somebody waits");
            sleep(s(1.0)).await;
            watch.request_progress().await?;
            let event = watch.message().await?.expect("no end");
            let notice = watch.message().await?.expect("no end");
            let revision =
                |header: Option<&crate::etcd::ResponseHeader>| header.expect("a header").revision();
            assert!(notice.events().is_empty() && revision(notice.header()) == 25);
            let mut quiet = client.watch("quiet", None).await?;
            quiet.message().await?;
            quiet.request_progress().await?;
            let fresh = quiet.message().await?.expect("no end");
            assert!(fresh.events().is_empty() && revision(fresh.header()) == 25);
            Ok::<_, Error>(event.events()[0].kv().expect("a pair").mod_revision())
        });
        is_ready.await.expect("watching");
        NetSim::current().cut(member, me);
        for revision in 2..=25 {
            let key = if revision == 20 { "k" } else { "other" };
            writer.put(key, "", None).await.expect("put");
        }
        sleep(s(2.0)).await;
        NetSim::current().mend(member, me);
        assert_eq!(watcher.await.expect("not aborted").expect("told"), 20);
    });
}

/// A start revision of 0 is not the beginning. Given a store at revision 10; when watches start at
/// 0, 1 and -1; then the first sees only what comes, the second everything, the third is refused.
#[test]
fn w06_a_watch_from_0_is_from_now() {
    run(async |_: &World| {
        let mut client = client().await;
        for _ in 2..=10 {
            client.put("k", "", None).await.expect("put");
        }
        let from = |revision| Some(WatchOptions::new().with_start_revision(revision));
        let mut now = client.watch("k", from(0)).await.expect("watching");
        let mut all = client.watch("k", from(1)).await.expect("watching");
        now.message().await.expect("created");
        all.message().await.expect("created");
        client.put("k", "", None).await.expect("put");
        let seen = |message: &crate::etcd::WatchResponse| -> Vec<i64> {
            let revision = |event: &crate::etcd::Event| event.kv().expect("a pair").mod_revision();
            message.events().iter().map(revision).collect()
        };
        let told = now.message().await.expect("a message").expect("no end");
        assert_eq!(seen(&told), [11]);
        let mut history = Vec::new();
        while history.len() < 10 {
            history.extend(seen(&all.message().await.expect("a message").expect("no end")));
        }
        assert!(history.into_iter().eq(2..=11));
        let mut refused = client.watch("k", from(-1)).await.expect("an answer");
        let told = refused.message().await.expect("a message").expect("no end");
        assert!(told.created() && told.canceled() && told.watch_id() == -1);
        assert!(told.cancel_reason().contains("has been compacted"), "{}", told.cancel_reason());
    });
}

/// Client libraries sent transactions again after "unavailable" although the first had been
/// applied. Given a guarded transaction that is applied and whose reply is lost; then the client
/// says "unknown", not "failed", and has sent it once.
#[test]
fn w07_a_lost_reply_is_unknown_and_nothing_is_sent_again() {
    run(async |world: &World| {
        let mut client = client().await;
        client.put("k", "v0", None).await.expect("put");
        let before = world.state.requests();
        let fault = RequestFault::next(RequestKind::Txn, Harm::ReplyLost);
        let fault = world.state.inject(fault);
        let guard = Compare::value("k", CompareOp::Equal, "v0");
        let txn = Txn::new().when([guard]).and_then([TxnOp::put("k", "v1", None)]);
        let unknown = told(client.txn(txn.clone()).await.expect_err("unknown"));
        assert_eq!(unknown, (Code::Unknown, "transport error".to_owned()));
        sleep(s(30.0)).await;
        assert_eq!((world.state.requests() - before, world.state.harmed(fault)), (1, 1));
        assert_eq!(client.get("k", None).await.expect("an answer").kvs()[0].value(), b"v1");
        // Sent again, it fails although it has happened: only the caller can know what that means.
        assert!(!client.txn(txn).await.expect("an answer").succeeded());
    });
}

/// The enqueue of a lock may be sent again: it re-uses its key. One entry, one create revision.
#[test]
fn w07_a_resent_enqueue_keeps_its_place() {
    run(async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        world.state.inject(RequestFault::next(RequestKind::Txn, Harm::ReplyLost));
        client.txn(enqueue("/lock", 7)).await.expect_err("unknown");
        let again = client.txn(enqueue("/lock", 7)).await.expect("an answer");
        assert!(!again.succeeded(), "the first one had its effect");
        let entry = client.get("/lock/7", None).await.expect("an answer");
        assert_eq!((entry.count(), entry.kvs()[0].create_revision()), (1, 2));
        assert_eq!(world.log.commits().len(), 1);
    });
}

/// Follows a key from revision 2 as a client has to: after an error it watches anew from the
/// revision after the last one seen. Gives the revisions of `count` events, and how often it had to
/// begin anew.
async fn follow(mut client: Client, key: &str, count: usize) -> (Vec<i64>, u32) {
    let (mut seen, mut anew) = (Vec::new(), 0);
    while seen.len() < count {
        let next = seen.last().map_or(2, |last| last + 1);
        let options = WatchOptions::new().with_start_revision(next);
        let Ok(mut watch) = client.watch(key, Some(options)).await else {
            sleep(s(0.1)).await;
            continue;
        };
        while let Ok(Some(message)) = watch.message().await {
            let revision = |event: &crate::etcd::Event| event.kv().expect("a pair").mod_revision();
            seen.extend(message.events().iter().map(revision));
            if seen.len() >= count {
                return (seen, anew);
            }
        }
        anew += 1;
    }
    (seen, anew)
}

/// Given a client that watches from the next revision after each lost connection; when the member
/// is killed three times under a stream of writes, and another connection breaks now and then;
/// then it sees every event once and in order.
#[test]
fn a_watch_is_resumed_without_loss_or_duplicate() {
    run(async |world: &World| {
        let follower = world.client.spawn(async move {
            let client = Client::connect([ENDPOINT], None).await.expect("well formed");
            follow(client, "k", 300).await
        });
        let mut writer = client().await;
        for n in 0..300 {
            if n % 75 == 40 {
                world.restart_after(s(0.7)).await;
            }
            if n % 50 == 20 {
                // The follower's own connection breaks when it next watches.
                world.state.inject(RequestFault::next(RequestKind::WatchCreate, Harm::ReplyLost));
            }
            writer.put("k", n.to_string(), None).await.expect("put");
            sleep(s(0.01)).await;
        }
        let (seen, anew) = follower.await.expect("not aborted");
        assert!(seen.iter().copied().eq(2..=301), "{seen:?}");
        assert!(anew >= 4, "{anew}");
        assert_eq!(world.log.commits().len(), 300);
    });
}

/// A watcher that does not read while 10,000 events pass finds them all, in order.
#[test]
fn a_slow_consumer_loses_nothing() {
    run(async |_: &World| {
        let mut client = client().await;
        let options = WatchOptions::new().with_prefix();
        let mut watch = client.watch("k", Some(options)).await.expect("watching");
        watch.message().await.expect("created");
        for n in 0..10_000 {
            client.put(format!("k{}", n % 7), n.to_string(), None).await.expect("put");
        }
        sleep(s(60.0)).await;
        let mut expected = 2;
        while expected < 10_002 {
            let message = watch.message().await.expect("a message").expect("no end");
            for event in message.events() {
                assert_eq!(event.kv().expect("a pair").mod_revision(), expected);
                expected += 1;
            }
        }
        assert!(exists(&mut client, "k6").await);
    });
}
