//! Each quirk changes what its name says, and without it the member is right.

use crate::{
    etcd::{
        EventType, PutOptions, WatchOptions,
        quirk::Quirk,
        server::{Harm, RequestFault, RequestKind},
    },
    history::Cause,
    time::{Instant, sleep},
};

use super::world::{World, client, exists, grant, put_on, revision, run_with_quirks, s, ttl};

/// Runs the body without the quirk and with it; gives what it gave, and the effects counted.
fn both<T: Send + 'static>(
    quirk: Quirk,
    body: impl AsyncFn(&World) -> T + Send + Clone + 'static,
) -> (T, (T, u64)) {
    let right = body.clone();
    let right = run_with_quirks(&[], async move |world: &World| {
        let result = right(world).await;
        assert_eq!(world.state.quirk_effects(quirk), 0);
        result
    });
    let wrong = run_with_quirks(&[quirk], async move |world: &World| {
        (body(world).await, world.state.quirk_effects(quirk))
    });
    (right, wrong)
}

/// A lease lives for its TTL at least, in every phase of the look for expired ones (H04); with the
/// quirk it ends up to a second before.
#[test]
fn h04_early_expiry_ends_leases_early() {
    let (right, (wrong, effects)) = both(Quirk::EarlyExpiry, async |_: &World| {
        let mut client = client().await;
        let mut lived = Vec::new();
        for id in 1..=10 {
            sleep(s(0.05)).await;
            grant(&mut client, id, 2).await;
            put_on(&mut client, &id.to_string(), id).await;
            let granted = Instant::now();
            while exists(&mut client, &id.to_string()).await {
                sleep(s(0.002)).await;
            }
            lived.push(granted.elapsed());
        }
        lived
    });
    // The client learns of grant and end a few milliseconds late.
    assert!(right.iter().all(|lived| *lived > s(1.99) && *lived < s(2.52)), "{right:?}");
    assert!(wrong.iter().all(|lived| *lived > s(0.99) && *lived < s(1.99)), "{wrong:?}");
    assert_eq!(effects, 10);
}

/// A revoke deletes all keys in one revision; with the quirk each has its own, so that somebody
/// can see half of it.
#[test]
fn revoke_not_atomic_splits_the_deletion() {
    let (right, (wrong, effects)) = both(Quirk::RevokeNotAtomic, async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        for key in ["c", "a", "b"] {
            put_on(&mut client, key, 7).await;
        }
        grant(&mut client, 8, 60).await;
        put_on(&mut client, "single", 8).await;
        client.lease_revoke(8).await.expect("revoked");
        let answer = client.lease_revoke(7).await.expect("revoked");
        let commits = world.log.commits();
        let keys = |commit: &crate::history::Commit| -> Vec<String> {
            commit.events.iter().map(|event| event.key.clone()).collect()
        };
        let ends: Vec<_> = commits.iter().filter(|c| c.cause == Cause::Revoke(7)).collect();
        let last = answer.header().expect("a header").revision();
        (last, ends.into_iter().map(|c| (c.revision, keys(c))).collect::<Vec<_>>())
    });
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_eq!(right, (7, vec![(7, keys(&["a", "b", "c"]))]));
    let apart = vec![(7, keys(&["a"])), (8, keys(&["b"])), (9, keys(&["c"]))];
    assert_eq!((wrong, effects), ((9, apart), 1));
}

/// A watch from the revision of a deletion is told of it although that very revision has been
/// compacted; with the quirk it is not, and waits for ever. Later watches are not touched.
#[test]
fn missed_delete_leaves_a_deletion_out() {
    let (right, (wrong, effects)) = both(Quirk::MissedDelete, async |_: &World| {
        let mut client = client().await;
        client.put("/lock/1", "", None).await.expect("put");
        client.delete("/lock/1", None).await.expect("deleted");
        client.put("/lock/2", "", None).await.expect("put");
        client.delete("/lock/2", None).await.expect("deleted");
        client.compact(3, None).await.expect("compacted");
        let options = WatchOptions::new().with_prefix().with_start_revision(3);
        let mut watch = client.watch("/lock/", Some(options)).await.expect("watching");
        watch.message().await.expect("created");
        let past = watch.message().await.expect("a message").expect("no end");
        let deleted = |event: &crate::etcd::Event| event.event_type() == EventType::Delete;
        past.events().iter().map(deleted).collect::<Vec<_>>()
    });
    assert_eq!(right, [true, false, true]);
    assert_eq!((wrong, effects), (vec![false, true], 1));
}

/// R01: the newest revisions are deletions, they are compacted, the process dies and starts again.
/// The next lock gets a greater revision than any before; with the quirk it gets a used one.
#[test]
fn r01_revision_regress_hands_revisions_out_again() {
    let (right, (wrong, effects)) = both(Quirk::RevisionRegress, async |world: &World| {
        let mut client = client().await;
        client.put("other", "", None).await.expect("put");
        for _ in 0..3 {
            client.put("/lock/1", "", None).await.expect("put");
            client.delete("/lock/1", None).await.expect("deleted");
        }
        let newest = revision(&mut client).await;
        client.compact(newest, None).await.expect("compacted");
        world.restart_after(s(0.5)).await;
        let put = client.put("/lock/2", "", None).await.expect("put");
        let token = put.header().expect("a header").revision();
        // The store is whole all the same.
        let options = WatchOptions::new().with_all_keys().with_start_revision(token);
        let mut watch = client.watch("", Some(options)).await.expect("watching");
        watch.message().await.expect("created");
        let told = watch.message().await.expect("a message").expect("no end");
        assert_eq!(told.events()[0].kv().expect("a pair").key(), b"/lock/2");
        assert_eq!(client.get("other", None).await.expect("an answer").count(), 1);
        let index: Vec<u64> = world.log.commits().iter().map(|commit| commit.index).collect();
        assert!(index.is_sorted_by(|a, b| a < b), "the commit index never repeats");
        (newest, token)
    });
    assert_eq!(right, (8, 9));
    assert_eq!((wrong, effects), ((8, 3), 6));
}

/// After a restart the store is as it was; with the quirk it is empty and its revisions begin anew,
/// and the commit log says so.
#[test]
fn restored_without_bump_begins_anew() {
    let (right, (wrong, effects)) = both(Quirk::RestoredWithoutBump, async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        put_on(&mut client, "/lock/1", 7).await;
        world.restart_after(s(0.5)).await;
        let left = client.get("/lock/1", None).await.expect("an answer").count();
        let put = client.put("/lock/2", "", None).await.expect("put");
        let causes = world.log.commits().iter().map(|commit| commit.cause).collect::<Vec<_>>();
        (left, put.header().expect("a header").revision(), causes.contains(&Cause::Restore))
    });
    assert_eq!(right, (1, 3, false));
    assert_eq!((wrong, effects), ((0, 2, true), 1));
}

/// A renewal of a lease that has run out does not revive it; with the quirk it does.
#[test]
fn renewal_revives_brings_a_lease_back() {
    let (right, (wrong, effects)) = both(Quirk::RenewalRevives, async |_: &World| {
        let mut client = client().await;
        // The looks for expired leases are at 0.5 s, 1.0 s …: this one runs out just after one.
        sleep(s(0.5)).await;
        grant(&mut client, 7, 2).await;
        put_on(&mut client, "k", 7).await;
        sleep(s(2.05)).await;
        let renewed = client.lease_keep_alive(7).await.is_ok();
        sleep(s(1.0)).await;
        (renewed, exists(&mut client, "k").await)
    });
    assert_eq!((right, wrong, effects), ((false, false), (true, true), 1));
}

/// A revocation that got lost is tried again after 3 s; with the quirk never, and the lease stays
/// with a time to live below zero. A change of the leader gives it a new chance even so.
#[test]
fn stuck_expiry_keeps_a_lease_for_ever() {
    let (right, (wrong, effects)) = both(Quirk::StuckExpiry, async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 2).await;
        put_on(&mut client, "k", 7).await;
        world.state.inject(RequestFault::next(RequestKind::Expiry, Harm::Lost));
        sleep(s(6.0)).await;
        let stuck = exists(&mut client, "k").await;
        sleep(s(1000.0)).await;
        let left = ttl(&mut client, 7).await;
        world.state.promote();
        sleep(s(3.6)).await;
        (stuck, left, exists(&mut client, "k").await)
    });
    assert_eq!(right, (false, -1, false));
    assert_eq!(((wrong.0, wrong.2), effects), ((true, false), 1));
    assert!(wrong.1 < -1000, "{wrong:?}");
}

/// A lease that nobody renews ends; with the quirk it never does if its TTL is longer than the
/// time between two changes of the leader (L01).
#[test]
fn l01_promote_keeps_leases_alive() {
    let (right, (wrong, effects)) = both(Quirk::Promote, async |_: &World| {
        let mut client = client().await;
        let options = PutOptions::new().with_lease(client.lease_grant(15, None).await?.id());
        client.put("k", "", Some(options)).await?;
        sleep(s(99.0)).await;
        Ok::<_, crate::etcd::Error>(client.get("k", None).await?.count())
    });
    assert_eq!((right.ok(), wrong.ok(), effects), (Some(0), Some(1), 9));
}
