//! Races of the lock: each with 200 seeds that draw the moments, and both orders seen.

use std::sync::Arc;

use super::{both, draw, is_expired, is_timed_out, ms, race, tell};
use crate::{
    concurrency::{LockError, Mutex},
    etcd::server::{Harm, RequestKind},
    history::{LeaseChange, NodeName},
    time::{sleep, timeout},
};

/// M01, M03: the holder unlocks and the waiter's lease is revoked at about the same time. The
/// waiter acquires only if it was the owner at some revision.
#[test]
fn m01_race_of_unlock_and_revoke() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 10, "l").await;
            let b = world.mutex(2, 10, "l").await;
            world.lock(1, &a).await;
            let waiting = world.locking(2, &b);
            sleep(ms(100)).await;
            let handle = a.clone();
            let unlocking =
                world.cluster.spawn(NodeName::Client(1), async move { handle.unlock().await });
            sleep(ms(draw(seed, 15))).await;
            world.cluster.member().revoke(b.session().lease());
            unlocking.await.expect("no panic").expect("held");
            let outcome = waiting.await.expect("no panic");
            let (left, died) = (world.deletions(a.key())[0].1, world.deletions(b.key())[0].1);
            let owned = left < died;
            assert!(is_expired(&outcome) || (owned && outcome.is_ok()), "{outcome:?}");
            assert_eq!(world.owner("l"), None);
            owned
        })
    }));
}

/// M02: the dead waiter's lease runs out before or after the crashed holder's. Whichever comes
/// first, the living waiter behind them acquires, and the dead one, awake again, does not.
#[test]
fn m02_race_of_two_dying_leases() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 2, "l").await;
            world.lock(1, &a).await;
            let b = world.mutex(2, 2, "l").await;
            let dead = world.locking(2, &b);
            sleep(ms(50)).await;
            let c = world.mutex(3, 10, "l").await;
            let living = world.locking(3, &c);
            sleep(ms(50)).await;
            let falls_asleep = ms(draw(seed, 1600));
            let crashes = ms(800);
            sleep(falls_asleep.min(crashes)).await;
            if falls_asleep < crashes {
                world.cluster.pause(NodeName::Client(2));
                sleep(crashes - falls_asleep).await;
                world.cluster.kill(NodeName::Client(1));
            } else {
                world.cluster.kill(NodeName::Client(1));
                sleep(falls_asleep - crashes).await;
                world.cluster.pause(NodeName::Client(2));
            }
            let token = timeout(ms(5000), living).await.expect("both leases are over");
            let token = token.expect("no panic").expect("C is first");
            world.cluster.resume(NodeName::Client(2));
            assert!(is_expired(&dead.await.expect("no panic")));
            assert_eq!(world.incarnations(c.key()), [token.get()]);
            assert_eq!(world.owner("l").as_deref(), Some(c.key()));
            world.deletions(a.key())[0].1 < world.deletions(b.key())[0].1
        })
    }));
}

/// M03: another queues while the waiter before it loses its lease. It waits for the holder only,
/// whether it came before or after.
#[test]
fn m03_race_of_revoke_and_the_next_in_line() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 10, "l").await;
            let b = world.mutex(2, 10, "l").await;
            let c = world.mutex(3, 10, "l").await;
            world.lock(1, &a).await;
            let second = world.locking(2, &b);
            sleep(ms(100)).await;
            let third = world.locking(3, &c);
            sleep(ms(draw(seed, 12))).await;
            world.cluster.member().revoke(b.session().lease());
            assert!(is_expired(&second.await.expect("no panic")));
            sleep(ms(50)).await;
            assert!(!third.is_finished());
            assert_eq!(world.queue("l/").await, [a.key(), c.key()]);
            world.unlock(1, &a).await.expect("held");
            let token = third.await.expect("no panic").expect("C is first");
            world.deletions(b.key())[0].1 < token.get()
        })
    }));
}

/// M06: while a waiter's watch is on its way the store is compacted beyond its start, before or
/// after the holder's delete (etcd #9715). The waiter reads again and acquires, and the one behind
/// it is not blocked.
#[test]
fn m06_race_of_compaction_and_unlock() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 60, "l").await;
            let c = world.mutex(3, 60, "l").await;
            world.lock(1, &a).await;
            world.pause_at(2, "queue.before_wait", ms(200));
            let second = world.locking(2, &b);
            sleep(ms(50)).await;
            let third = world.locking(3, &c);
            let mut outsider = world.outsider().await;
            let handle = a.clone();
            let delay = ms(draw(seed, 30));
            let unlocking = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                handle.unlock().await
            });
            sleep(ms(10)).await;
            let mut revision = 0;
            for _ in 0..3 {
                let reply = outsider.put("other", "x", None).await.expect("put");
                revision = reply.header().expect("a header").revision();
            }
            outsider.compact(revision, None).await.expect("compacted");
            unlocking.await.expect("no panic").expect("held");
            let token = timeout(ms(2000), second).await.expect("A has left").expect("no panic");
            assert_eq!(world.incarnations(b.key()), [token.expect("B is first").get()]);
            world.unlock(2, &b).await.expect("held");
            let token = timeout(ms(100), third).await.expect("B has left").expect("no panic");
            assert_eq!(world.incarnations(c.key()), [token.expect("C is first").get()]);
            world.deletions(a.key())[0].1 <= revision
        })
    }));
}

/// M07: the link breaks while the call enters the queue. The deadline holds whether or not the key
/// was created, and when the link heals the key is taken away.
#[test]
fn m07_race_of_a_cut_and_the_enqueue() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 60, "l").await;
            world.lock(1, &a).await;
            let handle = b.clone();
            let delay = ms(draw(seed + 1000, 6));
            let waiting = world.cluster.spawn(NodeName::Client(2), async move {
                sleep(delay).await;
                handle.lock_for(ms(900)).await
            });
            sleep(ms(draw(seed, 6))).await;
            world.cut(2);
            let outcome = timeout(ms(907), waiting).await.expect("its deadline");
            assert!(is_timed_out(&outcome.expect("no panic")));
            let entered = world.queue("l/").await.len() == 2;
            world.mend(2);
            // Longer than the sweep that comes after one request time-out.
            sleep(ms(3000)).await;
            assert_eq!(world.queue("l/").await, [a.key()]);
            assert!(b.session().is_live());
            entered
        })
    }));
}

/// M09: two handles of a session unlock at once: one delete, one ok, and never the key of a newer
/// holding.
#[test]
fn m09_race_of_two_unlocks() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let m1 = world.mutex(1, 60, "l").await;
            let m2 = Arc::new(Mutex::new(m1.session(), "l"));
            let token = world.lock(1, &m1).await;
            assert_eq!(world.lock(1, &m2).await, token);
            let unlocking = [m1.clone(), m2.clone()].map(|handle| {
                let delay = ms(draw(seed + u64::from(Arc::ptr_eq(&handle, &m1)) * 1000, 4));
                world.cluster.spawn(NodeName::Client(1), async move {
                    sleep(delay).await;
                    handle.unlock().await
                })
            });
            let [first, second] = unlocking;
            let first = first.await.expect("no panic");
            let second = second.await.expect("no panic");
            assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
            let again = world.lock(1, &m1).await;
            assert!(again > token);
            sleep(ms(100)).await;
            assert_eq!(world.deletions(m1.key()).len(), 1);
            assert_eq!(world.incarnations(m1.key()), [token.get(), again.get()]);
            assert!(m1.is_held() && !m2.is_held());
            first.is_ok()
        })
    }));
}

/// M10: the holder's delete is applied before or after the waiter's watch is registered. Either way
/// the waiter acquires without further activity in the store, and asks only once.
#[test]
fn m10_race_of_the_delete_and_the_watch() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 60, "l").await;
            world.lock(1, &a).await;
            let (txns, watches) =
                (world.received(RequestKind::Txn), world.received(RequestKind::WatchCreate));
            world.pause_at(2, "queue.before_wait", ms(1 + draw(seed, 40)));
            let waiting = world.locking(2, &b);
            sleep(ms(25)).await;
            let handle = a.clone();
            let unlocking =
                world.cluster.spawn(NodeName::Client(1), async move { handle.unlock().await });
            while world.owner("l").as_deref() == Some(a.key()) {
                sleep(ms(1)).await;
            }
            let missed = world.received(RequestKind::WatchCreate) == watches;
            unlocking.await.expect("no panic").expect("held");
            let outcome = timeout(ms(100), waiting).await.expect("A has left");
            let token = outcome.expect("no panic").expect("B is first");
            assert_eq!(world.incarnations(b.key()), [token.get()]);
            // One to enter, one to look before and one after the wait; the unlock.
            assert_eq!(world.received(RequestKind::Txn) - txns, 4);
            // One wait, on one stream: for the predecessor and, beside it, for the own key. A wait
            // that was missed and begun again would be four.
            assert_eq!(world.received(RequestKind::WatchCreate) - watches, 2);
            missed
        })
    }));
}

/// M11: one handle unlocks while its sibling locks: the sibling enters the old holding, or gets a
/// new one with a newer token; never the old one after its unlock.
#[test]
fn m11_race_of_unlock_and_re_entry() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let m1 = world.mutex(1, 60, "l").await;
            let m2 = Arc::new(Mutex::new(m1.session(), "l"));
            let token = world.lock(1, &m1).await;
            let delay = ms(draw(seed, 10));
            let handle = m1.clone();
            let unlocking = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                handle.unlock().await
            });
            sleep(ms(draw(seed + 1000, 10))).await;
            let second = world.lock(1, &m2).await;
            unlocking.await.expect("no panic").expect("held");
            sleep(ms(50)).await;
            assert_eq!(world.deletions(m1.key()).len(), 1);
            if second == token {
                assert_eq!((world.owner("l"), m2.token()), (None, None));
            } else {
                assert!(second > token && m2.is_held());
                assert_eq!(world.incarnations(m2.key()), [token.get(), second.get()]);
            }
            second == token
        })
    }));
}

/// M13: a call's deadline passes while the lock becomes free. It has the lock or it does not, and
/// if not, the next in line gets it at once.
#[test]
fn m13_race_of_deadline_and_unlock() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 30, "l").await;
            let b = world.mutex(2, 30, "l").await;
            let c = world.mutex(3, 30, "l").await;
            world.lock(1, &a).await;
            let handle = b.clone();
            let second = world
                .cluster
                .spawn(NodeName::Client(2), async move { handle.lock_for(ms(100)).await });
            sleep(ms(50)).await;
            let third = world.locking(3, &c);
            sleep(ms(30 + draw(seed, 30))).await;
            world.unlock(1, &a).await.expect("held");
            let outcome = second.await.expect("no panic");
            sleep(ms(100)).await;
            let acquired = outcome.is_ok();
            if acquired {
                assert_eq!(world.queue("l/").await, [b.key(), c.key()]);
                world.unlock(2, &b).await.expect("held");
            } else {
                assert!(is_timed_out(&outcome), "{outcome:?}");
                assert_eq!(world.queue("l/").await, [c.key()]);
            }
            let granted = timeout(ms(50), third).await.expect("nobody is before C");
            granted.expect("no panic").expect("C is first");
            assert!(b.session().is_live());
            acquired
        })
    }));
}

/// W07: the enqueue is lost before its effect or its reply after it, or it is delivered twice: one
/// queue entry, whose create revision is the token. And so for the delete of an unlock: it is
/// settled before the session locks again, and does not touch the newer holding.
#[test]
fn w07_race_of_lost_requests_and_lost_replies() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let kind = RequestKind::Txn;
            let harms = [Harm::Lost, Harm::ReplyLost, Harm::Twice];
            let pick = |n| harms[draw(seed + n, 3) as usize];
            let a = world.mutex(1, 60, "l").await;
            world.harm(kind, pick(0), 1);
            let first = world.lock(1, &a).await;
            assert_eq!(world.incarnations(a.key()), [first.get()]);
            world.harm(kind, pick(1000), 1 + draw(seed, 2));
            let unlocked = world.unlock(1, &a).await;
            assert!(unlocked.is_ok(), "{unlocked:?}");
            let second = world.lock(1, &a).await;
            sleep(ms(1500)).await;
            assert_eq!(world.incarnations(a.key()), [first.get(), second.get()]);
            assert_eq!(world.deletions(a.key()).len(), 1);
            assert_eq!(world.owner("l").as_deref(), Some(a.key()));
            assert!(a.held().is_some_and(|held| held.is_live()));
            pick(1000) == Harm::ReplyLost
        })
    }));
}

/// D6: an unlock that the caller gives up while its answer is out, and a new lock at once: the
/// delete, landing late or twice, hits the old holding only.
#[test]
fn d06_race_of_an_abandoned_unlock_and_a_new_lock() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let first = world.lock(1, &a).await;
            world.harm(RequestKind::Txn, Harm::Twice, draw(seed, 2));
            let handle = a.clone();
            let limit = ms(1 + draw(seed + 1000, 12));
            let unlocked =
                world.on(1, async move { timeout(limit, handle.unlock()).await.is_ok() }).await;
            assert!(!a.is_held());
            let second = world.lock(1, &a).await;
            sleep(ms(1500)).await;
            assert!(second > first && a.is_held());
            assert_eq!(world.owner("l").as_deref(), Some(a.key()));
            assert_eq!(world.incarnations(a.key()), [first.get(), second.get()]);
            let over = world.unlock(1, &a).await;
            assert!(!matches!(over, Err(LockError::Released)), "{over:?}");
            assert!(world.changes(a.session().lease(), LeaseChange::Expired).is_empty());
            unlocked
        })
    }));
}
