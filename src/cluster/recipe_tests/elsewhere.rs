//! The same failures in other systems, told of this lock: X02, X05, X08, X09.

use super::{both, draw, ms, race, tell};
use crate::{
    concurrency::{LockError, Mutex, Session, SessionOptions},
    etcd::{Client, server::RequestKind},
    history::{LeaseChange, NodeName},
    point::reach,
    storage::client::{Client as StorageClient, ClientOptions},
    time::{sleep, timeout},
};

/// X02: the holder loses its link, gives up, its delete goes out or not, and it comes back on the
/// same session: it does not wait behind its own old entry, and neither do the others
/// (CURATOR-202).
#[test]
fn x02_race_of_a_cut_and_the_own_delete() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 30, "l").await;
            let b = world.mutex(2, 30, "l").await;
            let first = world.lock(1, &a).await;
            let other = world.locking(2, &b);
            sleep(ms(50)).await;
            let handle = a.clone();
            let delay = ms(draw(seed + 1000, 8));
            let giving_up = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                timeout(ms(200), handle.unlock()).await.is_ok()
            });
            sleep(ms(draw(seed, 8))).await;
            world.cut(1);
            giving_up.await.expect("no panic");
            let landed = world.owner("l").as_deref() != Some(a.key());
            let again = world.locking(1, &a);
            sleep(ms(2000)).await;
            assert!(!again.is_finished());
            world.mend(1);
            let second = timeout(ms(3000), other).await.expect("A has left").expect("no panic");
            let second = second.expect("B is first");
            world.unlock(2, &b).await.expect("held");
            let third = timeout(ms(3000), again).await.expect("B has left").expect("no panic");
            let third = third.expect("A is first");
            assert!(first < second && second < third, "{first} {second} {third}");
            assert_eq!(world.incarnations(a.key()), [first.get(), third.get()]);
            assert!(a.session().is_live());
            landed
        })
    }));
}

/// X05: the holder stands still between its check and its write, for about as long as its lease
/// lives; another takes over. The late write is refused if the other has entered, and if it was let
/// in the other has read it. No update is lost.
#[test]
fn x05_race_of_a_pause_before_the_write_and_a_takeover() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 2, "l").await;
            let b = world.mutex(2, 10, "l").await;
            let url = world.cluster.storage_url();
            let to = url.clone();
            world.pause_at(1, "client.before_write", ms(1900 + draw(seed, 900)));
            let late = world.cluster.spawn(NodeName::Client(1), async move {
                let mut client = StorageClient::new(&to, ClientOptions::default()).expect("URL");
                let held = a.acquire().await.expect("it is free");
                let mut holding = client.holding("l", held.token().get());
                holding.enter("count", None).await.expect("nobody else");
                assert!(held.is_live());
                reach("client.before_write").await;
                let live = held.is_live();
                (holding.write("count", "1", None).await.is_ok(), live)
            });
            sleep(ms(50)).await;
            let taking_over = world.cluster.spawn(NodeName::Client(2), async move {
                let mut client = StorageClient::new(&url, ClientOptions::default()).expect("URL");
                let held = b.acquire().await.expect("A's lease is over");
                let mut holding = client.holding("l", held.token().get());
                let found = holding.enter("count", None).await.expect("B holds");
                let count: u64 = found.map_or(0, |found| found.parse().expect("a number"));
                let next = (count + 1).to_string();
                holding.write("count", &next, None).await.expect("B holds");
                holding.read("count", None).await.expect("B holds")
            });
            let (written, live) = late.await.expect("no panic");
            let end = taking_over.await.expect("no panic");
            assert_eq!(end.as_deref(), Some(if written { "2" } else { "1" }));
            // The clock alone tells it that the session is over: before any of its tasks ran.
            assert!(written || !live);
            written
        })
    }));
}

/// X08: work that takes 8 s to stop, under a lease of 15 s: warned by `expires_within`, it has
/// stopped before the key can go, whether the last renewal before the cut got through or not
/// (kubernetes #23731).
#[test]
fn x08_race_of_a_cut_and_a_slow_stop() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 15, "l").await;
            let held = world.on(1, async move { a.acquire().await }).await.expect("it is free");
            let lease = held.session().lease();
            let working = world.cluster.spawn(NodeName::Client(1), async move {
                held.expires_within(ms(8000)).await;
                sleep(ms(8000)).await;
                drop(held);
            });
            sleep(ms(4980 + draw(seed, 30))).await;
            world.cut(1);
            working.await.expect("no panic");
            let stopped = world.now();
            assert!(world.owner("l").is_some(), "stopped at {stopped:?}");
            sleep(ms(10_000)).await;
            let expired = world.changes(lease, LeaseChange::Expired);
            assert!(stopped <= expired[0], "{stopped:?} {expired:?}");
            !world.changes(lease, LeaseChange::Renewed).is_empty()
        })
    }));
}

/// X09: lock calls that fail for an unexpected reason, a hundred times: no lease and no renewal is
/// left, whether the session is closed or dropped (hazelcast #17697).
#[test]
fn x09_failed_locks_leave_nothing() {
    tell(1, |world| async move {
        let endpoints = world.cluster.etcd_endpoints();
        let failing = async move {
            let client = Client::connect(&endpoints, None).await.expect("an address");
            for round in 0..100 {
                let options = SessionOptions { ttl_s: 5, ..SessionOptions::default() };
                let session = Session::new(&client, options).await.expect("granted");
                // Longer than a request may be.
                let mutex = Mutex::new(&session, &"l".repeat(2 * 1024 * 1024));
                let outcome = mutex.lock().await;
                assert!(matches!(outcome, Err(LockError::Etcd(_))), "{outcome:?}");
                if round % 2 == 0 {
                    session.close().await.expect("closed");
                }
            }
        };
        world.on(1, failing).await;
        assert!(world.received(RequestKind::LeaseGrant) == 100);
        sleep(ms(6000)).await;
        let renewals = world.received(RequestKind::KeepAlive);
        let leases = world.outsider().await.leases().await.expect("an answer").leases().len();
        assert_eq!(leases, 0);
        sleep(ms(10_000)).await;
        assert_eq!(world.received(RequestKind::KeepAlive), renewals);
    });
}

/// X09 as a race: the whole of it, session and lock, is dropped half way. What etcd had granted by
/// then runs out.
#[test]
fn x09_race_of_dropping_and_the_grant() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let endpoints = world.cluster.etcd_endpoints();
            let limit = ms(1 + draw(seed, 16));
            let working = async move {
                let client = Client::connect(&endpoints, None).await.expect("an address");
                let options = SessionOptions { ttl_s: 5, ..SessionOptions::default() };
                let session = Session::new(&client, options).await.expect("granted");
                Mutex::new(&session, "l").lock().await.expect("it is free");
                std::future::pending::<()>().await;
            };
            let dropped = world.on(1, async move { timeout(limit, working).await }).await;
            assert!(dropped.is_err());
            let granted = world.received(RequestKind::LeaseGrant) > 0;
            sleep(ms(6000)).await;
            let leases = world.outsider().await.leases().await.expect("an answer").leases().len();
            assert_eq!((leases, world.owner("l")), (0, None));
            let renewals = world.received(RequestKind::KeepAlive);
            sleep(ms(10_000)).await;
            assert_eq!(world.received(RequestKind::KeepAlive), renewals);
            granted
        })
    }));
}
