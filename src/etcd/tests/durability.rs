//! What a member keeps over a kill, and what not.

use crate::{
    etcd::{
        GetOptions, WatchOptions,
        server::{Harm, RequestFault, RequestKind},
    },
    history::{Cause, LeaseChange},
    time::{Instant, sleep},
};

use super::world::{World, client, exists, grant, put_on, revision, run, s, told, ttl};

/// Keys, versions, history and compaction are there after a restart; the revision goes on where it
/// was, and the term is one higher.
#[test]
fn the_store_is_kept() {
    run(async |world| {
        let mut client = client().await;
        for value in ["1", "2", "3", "4"] {
            client.put("k", value, None).await.expect("put");
        }
        client.compact(3, None).await.expect("compacted");
        let before = client.get("k", None).await.expect("an answer");
        let term = before.header().expect("a header").raft_term();
        world.restart_after(s(3.0)).await;
        let after = client.get("k", None).await.expect("the member is back");
        let header = after.header().expect("a header");
        assert_eq!((header.revision(), header.raft_term()), (5, term + 1));
        assert_eq!(after.kvs()[0].version(), 4);
        let past = |revision| Some(GetOptions::new().with_revision(revision));
        let old = client.get("k", past(4)).await.expect("the history is kept");
        assert_eq!(old.kvs()[0].value(), b"3");
        let gone = told(client.get("k", past(2)).await.expect_err("compacted"));
        assert_eq!(gone.1, "etcdserver: mvcc: required revision has been compacted");
        let put = client.put("k", "5", None).await.expect("put");
        assert_eq!(put.header().map(|header| header.revision()), Some(6));
        let mut watch = client
            .watch("k", Some(WatchOptions::new().with_start_revision(4)))
            .await
            .expect("watching");
        let created = watch.message().await.expect("a message").expect("no end");
        assert_eq!(created.watch_id(), 0, "watch ids begin anew");
        let past = watch.message().await.expect("a message").expect("no end");
        assert_eq!(past.events().len(), 3, "4, 5 and 6");
    });
}

/// Leases come back with their keys, for their full TTL and one election time-out, whatever was
/// left of them: no checkpoint of the remaining time is written unless it is switched on.
#[test]
fn leases_start_anew() {
    run(async |world| {
        let mut client = client().await;
        grant(&mut client, 7, 10).await;
        put_on(&mut client, "k", 7).await;
        grant(&mut client, 8, 4).await;
        sleep(s(3.9)).await;
        world.restart_after(s(60.0)).await;
        let restarted = Instant::now();
        assert_eq!((ttl(&mut client, 7).await, ttl(&mut client, 8).await), (10, 4));
        while exists(&mut client, "k").await {
            sleep(s(0.01)).await;
        }
        let lived = restarted.elapsed();
        assert!(lived >= s(10.9) && lived <= s(11.55), "{lived:?}");
        assert_eq!(world.log.commits().pop().map(|last| last.cause), Some(Cause::Expiry(7)));
        // Ids that the member chooses come from the clock of the new process.
        let ids: Vec<i64> = {
            let first = client.lease_grant(60, None).await.expect("granted").id();
            world.restart_after(s(0.1)).await;
            vec![first, client.lease_grant(60, None).await.expect("granted").id()]
        };
        assert!(ids[0] < ids[1] && ids[0] >> 48 == ids[1] >> 48, "{ids:x?}");
    });
}

/// What was applied and not answered is kept; a renewal is not, as it is never written.
#[test]
fn an_unanswered_write_is_kept() {
    run(async |world| {
        let mut client = client().await;
        let lost = RequestFault::next(RequestKind::Put, Harm::ReplyLost);
        world.state.inject(lost);
        client.put("k", "v", None).await.expect_err("lost");
        world.restart_after(s(0.5)).await;
        assert!(exists(&mut client, "k").await);
        assert_eq!(revision(&mut client).await, 2);
    });
}

/// More leases than can be revoked in a second that would all end at once are spread on promotion:
/// 750 end within the first second, the others later and later (`Promote` in `lessor.go`).
#[test]
fn a_pile_of_leases_is_spread() {
    let ends = run(async |world: &World| {
        let mut client = client().await;
        for id in 1..=1600 {
            grant(&mut client, id, 120).await;
        }
        sleep(s(100.0)).await;
        assert!(world.state.promote());
        let promoted = Instant::now();
        sleep(s(120.9)).await;
        let count = |world: &World| {
            let leases = world.log.leases();
            leases.iter().filter(|event| event.change == LeaseChange::Expired).count()
        };
        assert_eq!(count(world), 0, "full TTL and an election time-out");
        let mut ends = Vec::new();
        while count(world) < 1600 && promoted.elapsed() < s(140.0) {
            sleep(s(0.5)).await;
            ends.push(count(world));
        }
        ends
    });
    // The first look is 0.29 s after the end, and at most 500 end in one; then 750 go a second.
    assert_eq!(ends, [500, 750, 965, 1340, 1600]);
}
