//! How a holder learns that its lock is gone: `Held::lost`.

use super::{World, both, draw, ms, race, tell};
use crate::{
    concurrency::{Held, LockError, Loss, SessionEnd},
    etcd::server::RequestKind,
    history::NodeName,
    time::{sleep, timeout},
};

async fn held(world: &World, ttl_s: i64) -> Held {
    let mutex = world.mutex(1, ttl_s, "l").await;
    world.on(1, async move { mutex.acquire().await }).await.expect("it is free")
}

/// Somebody deletes the holder's key, and in half the runs puts another one in its place, before or
/// after the watch is there: within a round trip the holder knows, although its session lives, and
/// gives nothing back that is not its own. The waiter behind it has the lock, or the other key has.
#[test]
fn race_of_an_outside_delete_and_the_watch_for_it() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let held = held(&world, 60).await;
            let other = world.mutex(2, 60, "l").await;
            let waiting = world.locking(2, &other);
            sleep(ms(50)).await;
            let mut outsider = world.outsider().await;
            let watches = world.received(RequestKind::WatchCreate);
            let (lost, delay) = (held.lost(), ms(draw(seed, 25)));
            let losing = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                lost.await
            });
            sleep(ms(draw(seed + 1000, 35))).await;
            assert!(world.cluster.member().delete(held.key()));
            let before = world.received(RequestKind::WatchCreate) == watches;
            if seed % 2 == 0 {
                outsider.put(held.key(), "not the holder's", None).await.expect("put");
            }
            let loss = timeout(ms(60), losing).await.expect("one delivery").expect("no panic");
            assert_eq!(loss, Loss::Key);
            assert!(held.session().is_live() && !held.is_live());
            let token = waiting.await.expect("no panic").expect("it is next");
            assert!(token > held.token());
            let (txns, queued) = (world.received(RequestKind::Txn), world.queue("l/").await);
            let outcome = world.on(1, async move { held.unlock().await }).await;
            assert!(matches!(outcome, Err(LockError::Released)), "{outcome:?}");
            assert_eq!(world.received(RequestKind::Txn), txns);
            assert_eq!(world.queue("l/").await, queued);
            before
        })
    }));
}

/// The watch for the loss outlives a compaction, a dead member and a cut link, none of which is a
/// loss; what is deleted meanwhile is known when the link is back.
#[test]
fn the_watch_for_a_loss_outlives_etcd() {
    for seed in 0..50 {
        tell(seed, move |world| async move {
            let held = held(&world, 60).await;
            let mut outsider = world.outsider().await;
            let mut losing = world.cluster.spawn(NodeName::Client(1), held.lost());
            for n in 0..5 {
                sleep(ms(draw(seed + n, 300))).await;
                outsider.put("noise", "x", None).await.expect("put");
            }
            assert!(world.cluster.member().compact().is_some());
            sleep(ms(100)).await;
            let watches = world.received(RequestKind::WatchCreate);
            world.cluster.kill(NodeName::Etcd(1));
            sleep(ms(draw(seed + 10, 3000))).await;
            world.cluster.restart(NodeName::Etcd(1));
            // The pauses between two attempts are at most a second.
            sleep(ms(3000)).await;
            assert!(world.received(RequestKind::WatchCreate) > watches, "it watches again");
            assert!(timeout(ms(1), &mut losing).await.is_err() && held.is_live());
            world.cut(1);
            sleep(ms(draw(seed + 11, 3000))).await;
            assert!(world.cluster.member().delete(held.key()));
            sleep(ms(draw(seed + 12, 3000))).await;
            assert!(timeout(ms(1), &mut losing).await.is_err() && held.is_live());
            world.mend(1);
            let loss = timeout(ms(5000), losing).await.expect("the link is back");
            assert_eq!(loss.expect("no panic"), Loss::Key);
            assert!(held.session().is_live() && !held.is_live());
        });
    }
}

/// A revoke is known from the watch long before the next renewal, a silent etcd from the clock, the
/// holder's own acts at once, without asking anybody.
#[test]
fn the_reason_of_a_loss_is_told() {
    tell(1, |world| async move {
        let revoked = held(&world, 60).await;
        let losing = world.cluster.spawn(NodeName::Client(1), revoked.lost());
        sleep(ms(100)).await;
        assert!(world.cluster.member().revoke(revoked.session().lease()));
        let loss = timeout(ms(20), losing).await.expect("one delivery").expect("no panic");
        assert_eq!(loss, Loss::Key);

        let released = held(&world, 60).await;
        let (lost, key) = (released.lost(), released.key().to_owned());
        let session = released.session().clone();
        world.on(1, async move { released.unlock().await }).await.expect("held");
        let gets = world.received(RequestKind::Range);
        assert_eq!(world.on(1, lost).await, Loss::Key);
        assert_eq!(world.received(RequestKind::Range), gets);
        assert_eq!((world.deletions(&key).len(), session.is_live()), (1, true));

        let closed = held(&world, 60).await;
        let lost = closed.lost();
        world.on(1, async move { closed.session().close().await }).await.expect("etcd serves");
        assert_eq!(world.on(1, lost).await, Loss::Session(SessionEnd::Closed));

        let silent = held(&world, 6).await;
        world.cut(1);
        let (lost, ends) = (silent.lost(), world.now() + silent.remaining());
        assert_eq!(world.on(1, lost).await, Loss::Session(SessionEnd::Expired));
        assert!(world.now().abs_diff(ends) < ms(5), "{:?}, not at {ends:?}", world.now());
    });
}
