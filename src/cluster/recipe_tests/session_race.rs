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
