//! Races about what a holder has and a waiter gets: M08, W05, R04, each with 200 seeds that draw
//! the moments, and both orders seen.

use super::{both, draw, is_expired, is_timed_out, ms, race, tell};
use crate::{
    etcd::Client,
    history::{LeaseChange, NodeName},
    time::{sleep, timeout},
};

/// M08: the holder writes to its own lock key without the lease, about when its lease ends. Before
/// that, the key is off the lease and stays the owner's for ever; after it, a new key without a
/// lease is behind the waiter, who acquires, and blocks who comes later (etcd #6631, Vault #2526).
#[test]
fn m08_race_of_a_bare_put_and_the_end_of_the_lease() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 2, "l").await;
            let b = world.mutex(2, 10, "l").await;
            let c = world.mutex(3, 10, "l").await;
            let first = world.lock(1, &a).await;
            let waiter = b.clone();
            let waiting = world
                .cluster
                .spawn(NodeName::Client(2), async move { waiter.lock_for(ms(1000)).await });
            sleep(ms(50)).await;
            let (endpoints, key) = (world.cluster.etcd_endpoints(), a.key().to_owned());
            let delay = ms(draw(seed + 1000, 15));
            let writing = world.cluster.spawn(NodeName::Client(1), async move {
                let mut client = Client::connect(&endpoints, None).await.expect("an address");
                sleep(delay).await;
                client.put(key, "host 1", None).await.expect("put");
            });
            sleep(ms(draw(seed, 20))).await;
            assert!(world.cluster.member().revoke(a.session().lease()));
            writing.await.expect("no panic");
            let outcome = waiting.await.expect("no panic");
            let detached = world.incarnations(a.key()) == [first.get()];
            if detached {
                assert!(is_timed_out(&outcome), "{outcome:?}");
                assert!(world.deletions(a.key()).is_empty());
            } else {
                let token = outcome.expect("B is first");
                assert_eq!(world.incarnations(b.key()), [token.get()]);
                assert_eq!(world.queue("l/").await, [b.key(), a.key()]);
                world.unlock(2, &b).await.expect("held");
            }
            // Ten times the TTL.
            let later = world.lock_for(3, &c, ms(20_000)).await;
            assert!(is_timed_out(&later), "{later:?}");
            assert_eq!(world.cluster.member().owner("l"), Some((a.key().to_owned(), 0)));
            sleep(ms(100)).await;
            assert_eq!(world.queue("l/").await, [a.key()]);
            assert!(!a.is_held());
            detached
        })
    }));
}

/// W05: the member knows no leader while the holder unlocks, and finds one about when the waiter's
/// session ends. The waiter acquires if a renewal got through in time; else it is told that its
/// session is over when that is so, and nothing is granted in between.
#[test]
fn w05_race_of_a_new_leader_and_the_end_of_the_session() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 6, "l").await;
            world.lock(1, &a).await;
            let waiting = world.locking(2, &b);
            sleep(ms(1000)).await;
            assert!(world.cluster.member().lose_leadership());
            let holder = a.clone();
            let unlocking =
                world.cluster.spawn(NodeName::Client(1), async move { holder.unlock().await });
            let (ends, found) = (b.session().remaining(), ms(4000 + draw(seed, 2000)));
            sleep(found.min(ends + ms(5))).await;
            let over = b.session().is_done();
            assert_eq!(waiting.is_finished(), over);
            assert!(over == (found > ends), "{found:?} {ends:?}");
            sleep(found.saturating_sub(ends + ms(5))).await;
            assert_eq!(world.owner("l").as_deref(), Some(a.key()));
            assert!(world.cluster.member().win_leadership());
            unlocking.await.expect("no panic").expect("held");
            let outcome = timeout(ms(2000), waiting).await.expect("A has left").expect("no panic");
            match &outcome {
                Ok(token) => {
                    assert!(!over && b.is_held());
                    assert_eq!(world.incarnations(b.key()), [token.get()]);
                    assert!(!world.changes(b.session().lease(), LeaseChange::Renewed).is_empty());
                }
                Err(_) => assert!(is_expired(&outcome) && b.token().is_none(), "{outcome:?}"),
            }
            outcome.is_ok()
        })
    }));
}

/// R04: the holder locks again before or after another queues, while the store goes on. The token
/// is the create revision in both orders: the header of the second lock is not, and in one of them
/// it is above the other's token, which is in order all the same.
#[test]
fn r04_race_of_locking_again_and_the_next_in_line() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 10, "l").await;
            let b = world.mutex(2, 10, "l").await;
            let first = world.lock(1, &a).await;
            let mut outsider = world.outsider().await;
            world.cluster.spawn(NodeName::Client(3), async move {
                for _ in 0..4 {
                    outsider.put("other", "x", None).await.expect("put");
                }
            });
            let (waiter, delay) = (b.clone(), ms(draw(seed + 1000, 12)));
            let waiting = world.cluster.spawn(NodeName::Client(2), async move {
                sleep(delay).await;
                waiter.lock().await
            });
            sleep(ms(draw(seed, 12))).await;
            assert_eq!(world.lock(1, &a).await, first);
            let header = a.header().expect("held").revision();
            assert!(world.enter_and_write(1, first).await, "A holds");
            sleep(ms(50)).await;
            world.unlock(1, &a).await.expect("held");
            let second = waiting.await.expect("no panic").expect("B is first");
            assert!(first < second && header >= first.get(), "{first} {second} {header}");
            assert_eq!(world.incarnations(b.key()), [second.get()]);
            assert!(b.header().expect("held").revision() > header.max(second.get()));
            assert!(world.enter_and_write(2, second).await, "B holds, with {second} and {header}");
            assert!(!world.enter_and_write(1, first).await, "A holds no more");
            second.get() <= header
        })
    }));
}
