//! Races of the session: each with 200 seeds that draw the moments, and both orders seen.

use super::{both, draw, is_expired, is_timed_out, ms, race, tell};
use crate::{
    concurrency::{Election, Session, SessionEnd, SessionOptions},
    etcd::{
        Client,
        server::{Harm, RequestKind},
    },
    history::{LeaseChange, NodeName},
    time::{sleep, timeout},
};

/// S01: the holder is cut off around a renewal, which reaches the member or does not, and whose
/// reply arrives or does not. Its session is over before the member lets the lease expire.
#[test]
fn s01_race_of_a_cut_and_a_renewal() {
    let story = |seed, what: fn(renewed: bool, acknowledged: bool) -> bool| {
        tell(seed, move |world| async move {
            let session = world.session(1, 6).await;
            let begun = world.now();
            sleep(ms(1985 + draw(seed, 20))).await;
            world.cut(1);
            session.done().await;
            let over = world.now();
            assert_eq!(session.ended(), Some(SessionEnd::Expired));
            sleep(ms(8000)).await;
            let expired = world.changes(session.lease(), LeaseChange::Expired);
            assert!(over <= expired[0], "{over:?} {expired:?}");
            let renewed = !world.changes(session.lease(), LeaseChange::Renewed).is_empty();
            let acknowledged = over > begun + ms(7000);
            assert!(renewed || !acknowledged);
            what(renewed, acknowledged)
        })
    };
    both(race(|seed| story(seed, |renewed, _| renewed)));
    both(race(|seed| story(seed, |_, acknowledged| acknowledged)));
}

/// S02: the leader is lost and won around a renewal, which then waits or passes. The lease lives.
#[test]
fn s02_race_of_a_leader_change_and_a_renewal() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 6).await;
            sleep(ms(1500 + draw(seed, 1000))).await;
            let before = world.received(RequestKind::KeepAlive);
            assert!(world.cluster.member().lose_leadership());
            sleep(ms(1 + draw(seed + 1000, 1500))).await;
            let waited = world.received(RequestKind::KeepAlive) > before;
            assert!(world.cluster.member().win_leadership());
            sleep(ms(20_000)).await;
            assert!(session.is_live());
            assert!(world.changes(session.lease(), LeaseChange::Expired).is_empty());
            waited
        })
    }));
}

/// S04: a renewal is lost, its reply is, or it is held back; the next is processed before half the
/// TTL is gone.
#[test]
fn s04_race_of_lost_renewals_and_lost_replies() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 9).await;
            let begun = world.now();
            let harm = match draw(seed, 3) {
                0 => Some(Harm::Lost),
                1 => Some(Harm::ReplyLost),
                _ => None,
            };
            if let Some(harm) = harm {
                world.harm(RequestKind::KeepAlive, harm, 1);
                sleep(ms(4490)).await;
            } else {
                sleep(ms(2990 + draw(seed + 1000, 20))).await;
                world.cut(1);
                sleep(ms(900)).await;
                world.mend(1);
                sleep(ms(500)).await;
            }
            let renewed = world.changes(session.lease(), LeaseChange::Renewed);
            assert!(!renewed.is_empty(), "{harm:?}");
            sleep(ms(20_000)).await;
            assert!(session.is_live());
            // Acknowledged by the second renewal only, or by the first.
            renewed[0] > begun + ms(3010)
        })
    }));
}

/// S06: the link breaks while the session closes. It returns within the TTL and says ok only if the
/// lease was revoked.
#[test]
fn s06_race_of_close_and_a_cut() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 5).await;
            let closed = session.clone();
            let closing =
                world.cluster.spawn(NodeName::Client(1), async move { closed.close().await });
            sleep(ms(draw(seed, 12))).await;
            world.cut(1);
            let outcome = timeout(ms(5001), closing).await.expect("the TTL").expect("no panic");
            let revoked = world.changes(session.lease(), LeaseChange::Revoked).len();
            match &outcome {
                Ok(()) => assert_eq!(revoked, 1),
                Err(_) => assert!(is_timed_out(&outcome), "{outcome:?}"),
            }
            assert_eq!(session.ended(), Some(SessionEnd::Closed));
            outcome.is_ok()
        })
    }));
}

/// S06: etcd is out of reach when the session is closed, and comes back before or after the granted
/// TTL is over, which is twice what was asked for. The lease is revoked in time or the call ends
/// with the TTL (etcd #6681).
#[test]
fn s06_race_of_close_and_a_mended_link() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 1).await;
            assert_eq!(session.ttl_s(), 2);
            world.cut(1);
            let (closed, begun) = (session.clone(), world.now());
            let closing =
                world.cluster.spawn(NodeName::Client(1), async move { closed.close().await });
            sleep(ms(1100 + draw(seed, 1300))).await;
            world.mend(1);
            let outcome = closing.await.expect("no panic");
            match &outcome {
                Ok(()) => assert!(world.now() <= begun + ms(2000)),
                Err(_) => assert!(is_timed_out(&outcome), "{outcome:?}"),
            }
            assert_eq!(session.ended(), Some(SessionEnd::Closed));
            outcome.is_ok()
        })
    }));
}

/// S08: the lease is revoked around a renewal, before or after it was processed. The session ends
/// with this renewal or with the next.
#[test]
fn s08_race_of_revoke_and_renewal() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 9).await;
            sleep(ms(2990 + draw(seed, 20))).await;
            assert!(world.cluster.member().revoke(session.lease()));
            let renewed = !world.changes(session.lease(), LeaseChange::Renewed).is_empty();
            timeout(ms(3100), session.done()).await.expect("the next renewal");
            assert_eq!(session.ended(), Some(SessionEnd::LeaseGone));
            renewed
        })
    }));
}

/// S08: a lease is adopted while it runs out. There is a session only if it was renewed in time,
/// and then the lease lives on.
#[test]
fn s08_race_of_adoption_and_expiry() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let lease = world.outsider().await.lease_grant(2, None).await.expect("granted").id();
            let endpoints = world.cluster.etcd_endpoints();
            sleep(ms(1900 + draw(seed, 300))).await;
            let adopting = async move {
                let client = Client::connect(&endpoints, None).await.expect("an address");
                let options = SessionOptions { lease: Some(lease), ..SessionOptions::default() };
                Session::new(&client, options).await
            };
            let adopted = world.on(1, adopting).await;
            let renewed = !world.changes(lease, LeaseChange::Renewed).is_empty();
            sleep(ms(5000)).await;
            let expired = !world.changes(lease, LeaseChange::Expired).is_empty();
            match &adopted {
                Ok(session) => assert!(renewed && !expired && session.is_live()),
                Err(_) => assert!(is_expired(&adopted) && !renewed && expired, "{adopted:?}"),
            }
            adopted.is_ok()
        })
    }));
}

/// S09: a campaign is given up while its enqueue is on the way or done, and its session is not
/// closed. The next campaign of the process does not wait behind it for long.
#[test]
fn s09_race_of_giving_up_and_the_enqueue() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let leader = world.mutex(2, 60, "e").await;
            world.lock(2, &leader).await;
            let first = world.session(1, 60).await;
            let election = Election::new(&first, "e");
            let key = election.key().to_owned();
            let limit = ms(1 + draw(seed, 8));
            let given_up =
                world.on(1, async move { election.campaign_for("n", limit).await }).await;
            assert!(given_up.is_err());
            let entered = !world.incarnations(&key).is_empty();
            world.unlock(2, &leader).await.expect("held");
            let election = Election::new(&world.session(1, 60).await, "e");
            let next = world.on(1, async move { election.campaign_for("n", ms(2000)).await });
            next.await.expect("the first one's key is swept after a request time-out");
            sleep(ms(1000)).await;
            assert_eq!(world.incarnations(&key).len(), world.deletions(&key).len());
            assert!(first.is_live());
            entered
        })
    }));
}

/// S05: the replies to renewals are about as slow as an attempt has patience. Whether they come in
/// time or an attempt is given up for the next, more patient one, the lease lives, and the rate of
/// requests is that of the TTL (etcd #9952).
#[test]
fn s05_race_of_slow_replies_and_the_next_attempt() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 30).await;
            let (node, etcd) = world.link(1);
            // The patience of a first attempt is 1250 ms.
            world.cluster.net().add_delay(etcd, node, ms(1150 + draw(seed, 200)));
            sleep(ms(100_000)).await;
            assert!(session.is_live());
            assert!(world.changes(session.lease(), LeaseChange::Expired).is_empty());
            let sent = world.received(RequestKind::KeepAlive);
            assert!((9..=20).contains(&sent), "{sent} renewals in 100 s");
            sent <= 10
        })
    }));
}

/// L07: the holder is cut off around the first renewal, at a third of what was granted. Its session
/// ends a granted TTL after the sending of the last acknowledged request, whatever was asked for.
#[test]
fn l07_race_of_a_cut_and_the_first_renewal() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let asked = [1, 0, -1][draw(seed + 1000, 3) as usize];
            let session = world.session(1, asked).await;
            assert_eq!(session.ttl_s(), 2);
            let begun = world.now();
            sleep(ms(655 + draw(seed, 20))).await;
            world.cut(1);
            session.done().await;
            let over = world.now();
            let renewed = over > begun + ms(2300);
            let ends = begun + if renewed { ms(2667) } else { ms(2000) };
            assert!(over <= ends && ends - over < ms(20), "{over:?} {ends:?}");
            sleep(ms(3000)).await;
            let expired = world.changes(session.lease(), LeaseChange::Expired);
            assert!(over <= expired[0], "{over:?} {expired:?}");
            renewed
        })
    }));
}

/// L09: the wall clocks of the member and of the holder jump around a renewal, before or after it
/// was processed. Neither the lease nor the session notices (etcd #12291).
#[test]
fn l09_race_of_a_wall_clock_jump_and_a_renewal() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 6).await;
            let (node, etcd) = world.link(1);
            sleep(ms(1985 + draw(seed, 20))).await;
            let renewed = !world.changes(session.lease(), LeaseChange::Renewed).is_empty();
            for (stepped, n) in [(etcd, 1000), (node, 2000)] {
                let hours = [-2, -1, 1, 2][draw(seed + n, 4) as usize];
                world.cluster.clocks().step_wall(stepped, hours * 3_600_000);
            }
            sleep(ms(2500)).await;
            world.cut(1);
            let last = *world.changes(session.lease(), LeaseChange::Renewed).last().expect("two");
            assert_eq!(world.changes(session.lease(), LeaseChange::Renewed).len(), 2);
            session.done().await;
            let over = world.now();
            assert!(over <= last + ms(6000) && over > last + ms(5990), "{over:?} {last:?}");
            sleep(ms(1000)).await;
            let expired = world.changes(session.lease(), LeaseChange::Expired)[0];
            // Etcd looks for expired leases every half second.
            assert!(expired >= last + ms(6000) && expired < last + ms(6510), "{expired:?}");
            renewed
        })
    }));
}
