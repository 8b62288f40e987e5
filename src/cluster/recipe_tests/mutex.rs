//! The lock: M01 to M03, M06 to M11, M13, W05 and R04 as stories with one order of events; their
//! races are in `mutex_race` and `holding_race`.

use std::{sync::Arc, time::Duration};

use super::{World, is_expired, is_timed_out, ms, tell};
use crate::{
    concurrency::{FencingToken, LockError, Mutex, WaitProfile},
    etcd::server::{Harm, RequestKind},
    history::{LeaseChange, NodeName},
    storage::client::{Client as StorageClient, ClientOptions},
    time::{Instant, sleep, timeout},
};

impl World {
    /// Whether the storage lets this token enter and write.
    pub(super) async fn enter_and_write(&self, client: u8, token: FencingToken) -> bool {
        let url = self.cluster.storage_url();
        let work = async move {
            let mut client = StorageClient::new(&url, ClientOptions::default()).expect("URL");
            let mut holding = client.holding("l", token.get());
            holding.enter("k", None).await?;
            holding.write("k", "v", None).await
        };
        self.on(client, async move { work.await.is_ok() }).await
    }
}

/// M01: a waiter whose renewals do not get through while it waits is told that its session is over
/// when its TTL is, and never that it holds the lock (etcd #11456).
#[test]
fn m01_a_waiter_whose_lease_died_does_not_acquire() {
    tell(1, |world| async move {
        let a = world.mutex(1, 60, "l").await;
        let b = world.mutex(2, 2, "l").await;
        world.lock(1, &a).await;
        let waiting = world.locking(2, &b);
        sleep(ms(100)).await;
        world.harm(RequestKind::KeepAlive, Harm::Lost, 1000);
        sleep(ms(3000)).await;
        assert!(is_expired(&waiting.await.expect("no panic")));
        assert_eq!(world.changes(b.session().lease(), LeaseChange::Expired).len(), 1);
        world.unlock(1, &a).await.expect("held");
        assert_eq!((world.owner("l"), b.token()), (None, None));
        assert_eq!(world.incarnations(b.key()).len(), 1);
    });
}

/// M02: the holder crashes; the waiter behind it is dead already, the one behind that lives. Only
/// the living one acquires, also when the dead one wakes up later (etcd #11429, #9921).
#[test]
fn m02_only_the_living_waiter_succeeds_a_crashed_holder() {
    tell(1, |world| async move {
        let a = world.mutex(1, 4, "l").await;
        let b = world.mutex(2, 2, "l").await;
        let c = world.mutex(3, 10, "l").await;
        let held = world.lock(1, &a).await;
        let dead = world.locking(2, &b);
        sleep(ms(50)).await;
        let living = world.locking(3, &c);
        sleep(ms(50)).await;
        assert_eq!(world.queue("l/").await, [a.key(), b.key(), c.key()]);
        world.cluster.pause(NodeName::Client(2));
        sleep(ms(3000)).await;
        assert_eq!(world.queue("l/").await, [a.key(), c.key()]);
        world.cluster.kill(NodeName::Client(1));
        let token = timeout(ms(5000), living).await.expect("A's lease is over");
        assert!(token.expect("no panic").expect("C is first") > held);
        world.cluster.resume(NodeName::Client(2));
        assert!(is_expired(&dead.await.expect("no panic")));
        assert_eq!(world.queue("l/").await, [c.key()]);
    });
}

/// M03: a waiter whose lease is revoked ends within one delivery of its watch while the holder
/// stays, and leaves the ones behind it in their places (etcd #19597).
#[test]
fn m03_an_expired_waiter_ends_while_the_holder_stays() {
    tell(1, |world| async move {
        let a = world.mutex(1, 10, "l").await;
        let b = world.mutex(2, 10, "l").await;
        let c = world.mutex(3, 10, "l").await;
        world.lock(1, &a).await;
        let second = world.locking(2, &b);
        sleep(ms(50)).await;
        let third = world.locking(3, &c);
        sleep(ms(50)).await;
        assert!(world.cluster.member().revoke(b.session().lease()));
        let outcome = timeout(ms(6), second).await.expect("one delivery");
        assert!(is_expired(&outcome.expect("no panic")));
        sleep(ms(100)).await;
        assert_eq!(world.queue("l/").await, [a.key(), c.key()]);
        assert!(!third.is_finished());
        world.unlock(1, &a).await.expect("held");
        third.await.expect("no panic").expect("C is first");
    });
}

/// M03 with Go's behaviour: the same waiter stays blocked, whatever its session says, until the
/// holder leaves, and is then told that it has nothing.
#[test]
fn m03_go_compatible_waiter_blocks_until_the_holder_leaves() {
    tell(1, |world| async move {
        let a = world.mutex(1, 10, "l").await;
        world.lock(1, &a).await;
        let session = world.session(2, 2).await;
        let profile = WaitProfile::GoCompatible;
        let b = Arc::new(Mutex::with_profile(&session, "l", profile));
        let waiting = world.locking(2, &b);
        sleep(ms(50)).await;
        assert_eq!(world.queue("l/").await, [a.key(), b.key()]);
        assert!(world.cluster.member().revoke(session.lease()));
        sleep(ms(20_000)).await;
        assert!(session.is_done() && !waiting.is_finished());
        world.unlock(1, &a).await.expect("held");
        let outcome = timeout(ms(50), waiting).await.expect("A has left");
        assert!(is_expired(&outcome.expect("no panic")));
        assert_eq!((world.owner("l"), b.token()), (None, None));
        // And with a session that lives it acquires as any other does.
        let session = world.session(2, 10).await;
        let b = Arc::new(Mutex::with_profile(&session, "l", profile));
        world.lock(1, &a).await;
        let waiting = world.locking(2, &b);
        sleep(ms(50)).await;
        world.unlock(1, &a).await.expect("held");
        let token = waiting.await.expect("no panic").expect("B is first");
        assert_eq!(world.incarnations(b.key()), [token.get()]);
    });
}

/// M07: etcd becomes unreachable while a call waits: the deadline holds, and the clean-up does not
/// outlast it (etcd #18082). The key goes with its lease.
#[test]
fn m07_the_deadline_holds_while_etcd_is_unreachable() {
    tell(1, |world| async move {
        let a = world.mutex(1, 60, "l").await;
        let b = world.mutex(2, 10, "l").await;
        world.lock(1, &a).await;
        let handle = b.clone();
        let waiting = world.cluster.spawn(NodeName::Client(2), async move {
            let begun = Instant::now();
            (handle.lock_for(ms(5000)).await, begun.elapsed())
        });
        sleep(ms(2000)).await;
        world.cut(2);
        let (outcome, took) = waiting.await.expect("no panic");
        assert!(is_timed_out(&outcome), "{outcome:?}");
        assert!(took < ms(5001), "{took:?}");
        assert_eq!(world.queue("l/").await, [a.key(), b.key()]);
        sleep(ms(10_500)).await;
        assert_eq!(world.queue("l/").await, [a.key()]);
        assert!(b.session().is_done());
    });
}

/// M08: the holder writes to its own lock key without the lease, which takes the key off it; then
/// it crashes. No recipe can help: the lock stays taken for ever, and waiters end at their
/// deadlines. It shows by the owner's key without a lease.
#[test]
fn m08_a_key_off_its_lease_blocks_everyone() {
    tell(1, |world| async move {
        let a = world.mutex(1, 2, "l").await;
        let b = world.mutex(2, 2, "l").await;
        let token = world.lock(1, &a).await;
        world.outsider().await.put(a.key(), "host 1", None).await.expect("put");
        world.cluster.kill(NodeName::Client(1));
        let outcome = world.lock_for(2, &b, ms(20_000)).await;
        assert!(is_timed_out(&outcome), "{outcome:?}");
        assert_eq!(world.changes(a.session().lease(), LeaseChange::Expired).len(), 1);
        assert_eq!(world.cluster.member().owner("l"), Some((a.key().to_owned(), 0)));
        assert_eq!(world.incarnations(a.key()), [token.get()]);
        sleep(ms(100)).await;
        assert_eq!(world.queue("l/").await, [a.key()]);
    });
}

/// M09: unlock of a handle that never locked, and a second unlock, send nothing (etcd #14704).
#[test]
fn m09_unlock_of_nothing_sends_nothing() {
    tell(1, |world| async move {
        let a = world.mutex(1, 60, "l").await;
        let (before, _) = world.cluster.requests();
        assert!(matches!(world.unlock(1, &a).await, Err(LockError::Released)));
        assert_eq!(world.cluster.requests().0, before);
        world.lock(1, &a).await;
        world.unlock(1, &a).await.expect("held");
        let (before, _) = world.cluster.requests();
        assert!(matches!(world.unlock(1, &a).await, Err(LockError::Released)));
        sleep(ms(1000)).await;
        assert_eq!(world.cluster.requests().0, before);
        assert_eq!(world.deletions(a.key()).len(), 1);
    });
}

/// M10: a waiter wakes for its predecessor only, the one just before it: the end of another costs
/// it no request.
#[test]
fn m10_a_waiter_wakes_only_for_its_predecessor() {
    tell(1, |world| async move {
        let a = world.mutex(1, 60, "l").await;
        let b = world.mutex(2, 60, "l").await;
        let c = world.mutex(3, 60, "l").await;
        world.lock(1, &a).await;
        let second = world.locking(2, &b);
        sleep(ms(50)).await;
        let third = world.locking(3, &c);
        sleep(ms(50)).await;
        for (client, holder, next) in [(1, &a, second), (2, &b, third)] {
            let before = world.received(RequestKind::Txn);
            world.unlock(client, holder).await.expect("held");
            next.await.expect("no panic").expect("it is first");
            sleep(ms(50)).await;
            // The delete, and the look of the one behind it.
            assert_eq!(world.received(RequestKind::Txn) - before, 2);
        }
    });
}

/// M11: two handles of one session are one owner: the second enters at once with the same token,
/// and an unlock through either frees both (glusterd2 #1426).
#[test]
fn m11_handles_of_one_session_share_the_lock() {
    tell(1, |world| async move {
        let m1 = world.mutex(1, 10, "l").await;
        let m2 = Arc::new(Mutex::new(m1.session(), "l"));
        let d = world.mutex(2, 10, "l").await;
        let token = world.lock(1, &m1).await;
        assert_eq!(world.lock(1, &m2).await, token);
        let waiting = world.locking(2, &d);
        let held = m2.held().expect("held");
        sleep(ms(50)).await;
        assert!(held.is_live());
        world.unlock(1, &m1).await.expect("held");
        assert_eq!((m2.token(), m2.is_held()), (None, false));
        assert_eq!((held.is_live(), held.remaining()), (false, Duration::ZERO));
        waiting.await.expect("no panic").expect("D is first");
        assert!(matches!(world.unlock(1, &m2).await, Err(LockError::Released)));
        assert_eq!(world.queue("l/").await, [d.key()]);
    });
}

/// M11 with a loser: a try-lock of one handle must not take the key away on which its sibling
/// waits.
#[test]
fn m11_a_losing_try_lock_spares_its_siblings_key() {
    tell(1, |world| async move {
        let a = world.mutex(1, 10, "l").await;
        let m1 = world.mutex(2, 10, "l").await;
        let m2 = Arc::new(Mutex::new(m1.session(), "l"));
        world.lock(1, &a).await;
        let waiting = world.locking(2, &m1);
        sleep(ms(50)).await;
        let lost = world.on(2, async move { m2.try_lock().await }).await;
        assert!(matches!(lost, Err(LockError::Locked)), "{lost:?}");
        sleep(ms(50)).await;
        assert_eq!(world.queue("l/").await, [a.key(), m1.key()]);
        world.unlock(1, &a).await.expect("held");
        let token = waiting.await.expect("no panic").expect("first");
        assert_eq!(world.incarnations(m1.key()), [token.get()]);
    });
}

/// M13: a call that gave up does not become the owner later, although its session lives on: its
/// entry is gone long before the holder leaves (jetcd #291).
#[test]
fn m13_a_call_that_gave_up_leaves_the_queue() {
    tell(1, |world| async move {
        let a = world.mutex(1, 30, "l").await;
        let b = world.mutex(2, 30, "l").await;
        let c = world.mutex(3, 30, "l").await;
        world.lock(1, &a).await;
        let gave_up = world.lock_for(2, &b, ms(3000));
        let behind = world.locking(3, &c);
        assert!(is_timed_out(&gave_up.await));
        sleep(ms(50)).await;
        assert_eq!(world.queue("l/").await, [a.key(), c.key()]);
        sleep(ms(2000)).await;
        world.unlock(1, &a).await.expect("held");
        let granted = timeout(ms(50), behind).await.expect("nobody is before C");
        granted.expect("no panic").expect("C is first");
        assert!(b.session().is_live() && b.token().is_none());
    });
}

/// W05: the member knows no leader, so nothing can be renewed: the wait is over when the session
/// is, and not a moment later; nothing is granted in between.
#[test]
fn w05_a_wait_without_a_leader_ends_with_the_session() {
    tell(1, |world| async move {
        let a = world.mutex(1, 60, "l").await;
        let b = world.mutex(2, 6, "l").await;
        world.lock(1, &a).await;
        let waiting = world.locking(2, &b);
        sleep(ms(1000)).await;
        assert!(world.cluster.member().lose_leadership());
        let deadline = b.session().remaining();
        let outcome = timeout(deadline + ms(5), waiting).await.expect("its session is over");
        assert!(is_expired(&outcome.expect("no panic")));
        assert!(world.cluster.member().win_leadership());
        assert_eq!(world.owner("l").as_deref(), Some(a.key()));
    });
}

/// R04: the token is the create revision for all: constant within a holding although the header of
/// a second lock is higher, and rising to the next holder although that one queued long before.
#[test]
fn r04_the_token_is_the_create_revision() {
    tell(1, |world| async move {
        let a = world.mutex(1, 10, "l").await;
        let b = world.mutex(2, 10, "l").await;
        let first = world.lock(1, &a).await;
        let waiting = world.locking(2, &b);
        sleep(ms(50)).await;
        for _ in 0..20 {
            world.outsider().await.put("other", "x", None).await.expect("put");
        }
        assert_eq!(world.lock(1, &a).await, first);
        let header = a.header().expect("held").revision();
        assert!(world.enter_and_write(1, first).await, "A holds");
        world.unlock(1, &a).await.expect("held");
        let second = waiting.await.expect("no panic").expect("B is first");
        assert!(first < second && second.get() < header, "{first} {second} {header}");
        assert_eq!(world.incarnations(b.key()), [second.get()]);
        let held = b.held().expect("B holds");
        assert!(held.header().revision() > header);
        let written = world.enter_and_write(2, held.token()).await;
        assert!(written, "B holds, with a token below A's header");
        assert!(!world.enter_and_write(1, first).await, "A holds no more");
    });
}
