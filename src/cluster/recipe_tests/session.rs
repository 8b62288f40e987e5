//! Sessions: S01, S02, S04 to S06, S08, S09, L07, L09 and D9 as stories; their races are in
//! `session_race`.
//!
//! S03 needs several members.

use std::time::Duration;

use super::{World, is_expired, is_timed_out, ms, tell};
use crate::{
    concurrency::{Election, LockError, Mutex, Session, SessionEnd, SessionOptions},
    etcd::{
        Client,
        server::{Harm, RequestKind},
    },
    history::{LeaseChange, NodeName},
    time::{Instant, sleep, timeout},
};

impl World {
    /// Several sessions on one client of etcd.
    async fn sessions(&self, client: u8, ttls: &'static [i64]) -> Vec<Session> {
        let endpoints = self.cluster.etcd_endpoints();
        self.on(client, async move {
            let client = Client::connect(&endpoints, None).await.expect("an address");
            let mut sessions = Vec::new();
            for &ttl_s in ttls {
                let request_timeout = ms(500);
                let options = SessionOptions { ttl_s, request_timeout, ..Default::default() };
                sessions.push(Session::new(&client, options).await.expect("granted"));
            }
            sessions
        })
        .await
    }

    /// A session on a lease that is there already.
    async fn adopt(&self, client: u8, lease: i64) -> Result<Session, LockError> {
        let endpoints = self.cluster.etcd_endpoints();
        let options = SessionOptions {
            lease: Some(lease),
            request_timeout: ms(500),
            ..SessionOptions::default()
        };
        self.on(client, async move {
            let client = Client::connect(&endpoints, None).await.expect("an address");
            Session::new(&client, options).await
        })
        .await
    }

    /// The longest time that a lease went without a renewal, up to now, since this time.
    fn longest_gap(&self, lease: i64, since: Duration) -> Duration {
        let renewals = self.changes(lease, LeaseChange::Renewed);
        let mut last = since;
        let mut longest = Duration::ZERO;
        for at in renewals.into_iter().filter(|at| *at > since).chain([self.now()]) {
            longest = longest.max(at - last);
            last = at;
        }
        longest
    }
}

/// S02: a renewal meets a member without a leader, long enough to be refused, and then its stream
/// breaks; a session made on the same client afterwards, too, is renewed as the first is (etcd
/// #6922, #8618).
#[test]
fn s02_renewal_goes_on_after_a_change_of_the_leader() {
    tell(1, |world| async move {
        let sessions = world.sessions(1, &[30]).await;
        let begun = world.now();
        sleep(ms(9000)).await;
        assert!(world.cluster.member().lose_leadership());
        sleep(ms(9000)).await;
        assert!(world.cluster.member().win_leadership());
        world.harm(RequestKind::KeepAlive, Harm::Lost, 1);
        let again = world.now();
        let more = world.sessions(1, &[9]).await;
        sleep(ms(60_000)).await;
        for session in sessions.iter().chain(&more) {
            assert!(session.is_live(), "{session:?}");
            assert!(world.changes(session.lease(), LeaseChange::Expired).is_empty());
        }
        assert!(world.longest_gap(sessions[0].lease(), begun) < ms(30_000));
        assert!(world.longest_gap(more[0].lease(), again) < ms(4500));
    });
}

/// S04: one renewal is lost, then one reply, then the stream is reset: each time a new one is out
/// before half the TTL is gone (etcd #7357).
#[test]
fn s04_one_lost_renewal_does_not_cost_the_lease() {
    tell(1, |world| async move {
        let session = world.session(1, 9).await;
        let begun = world.now();
        // The first renewal opens the stream, the later ones are sent on the open one.
        for harm in [Harm::Lost, Harm::ReplyLost, Harm::Lost, Harm::Twice] {
            world.harm(RequestKind::KeepAlive, harm, 1);
            sleep(ms(9000)).await;
        }
        // Lost without a sign: the link holds it back.
        let renewed = world.changes(session.lease(), LeaseChange::Renewed);
        let next = *renewed.last().expect("renewed") + ms(3000);
        sleep(next + ms(2900) - world.now()).await;
        world.cut(1);
        sleep(ms(300)).await;
        world.mend(1);
        sleep(ms(10_000)).await;
        let gap = world.longest_gap(session.lease(), begun);
        assert!(session.is_live() && gap < ms(4500), "{gap:?}");
    });
}

/// S05: nobody reads any replies; the rate of renewals is that of the TTL (etcd #9952).
#[test]
fn s05_the_rate_of_renewals_is_that_of_the_ttl() {
    tell(1, |world| async move {
        let session = world.session(1, 30).await;
        sleep(ms(200_000)).await;
        assert!(session.is_live());
        let sent = world.received(RequestKind::KeepAlive);
        assert!((19..=21).contains(&sent), "{sent} renewals in 200 s");
    });
}

/// S06: `close` with etcd out of reach ends within the granted TTL, and the session is over before
/// it does (etcd #6681).
#[test]
fn s06_close_is_bounded_by_the_ttl() {
    tell(1, |world| async move {
        let session = world.session(1, 5).await;
        world.cut(1);
        let closed = session.clone();
        let closing = world.cluster.spawn(NodeName::Client(1), async move {
            let begun = Instant::now();
            (closed.close().await, begun.elapsed())
        });
        timeout(ms(1), session.done()).await.expect("over before the first request");
        assert_eq!(session.ended(), Some(SessionEnd::Closed));
        let (outcome, took) = closing.await.expect("no panic");
        assert!(is_timed_out(&outcome), "{outcome:?}");
        assert!(took <= ms(5001), "{took:?}");
    });
}

/// S08: a lease that was revoked ends its session with the next renewal, and cannot be adopted; nor
/// can one that never was (etcd-client #87).
#[test]
fn s08_a_lease_that_is_gone_ends_its_session() {
    tell(1, |world| async move {
        let session = world.session(1, 9).await;
        let lease = session.lease();
        assert!(world.cluster.member().revoke(lease));
        timeout(ms(3100), session.done()).await.expect("the next renewal");
        assert_eq!(session.ended(), Some(SessionEnd::LeaseGone));
        for gone in [lease, 4711] {
            let adopted = world.adopt(1, gone).await;
            assert!(is_expired(&adopted), "{adopted:?}");
        }
    });
}

/// S09: a campaign fails and its session is not closed: the next campaign of the process, with
/// another session, does not wait behind a ghost of the first (etcd #17470). Behind one that was
/// *won* it has to wait, until that session is closed.
#[test]
fn s09_no_ghost_of_an_earlier_campaign() {
    tell(1, |world| async move {
        let leader = world.mutex(2, 60, "e").await;
        world.lock(2, &leader).await;
        let sessions = world.sessions(1, &[60, 60]).await;
        let (first, second) = (sessions[0].clone(), sessions[1].clone());
        let campaign = |session: &Session, limit| {
            let election = Election::new(session, "e");
            world.on(1, async move { election.campaign_for("n", limit).await })
        };
        assert!(campaign(&first, ms(100)).await.is_err());
        sleep(ms(50)).await;
        world.unlock(2, &leader).await.expect("held");
        campaign(&second, ms(100)).await.expect("nobody else");
        assert!(campaign(&first, ms(2000)).await.is_err(), "the process leads already");
        let closing = second.clone();
        world.on(1, async move { closing.close().await }).await.expect("closed");
        campaign(&first, ms(100)).await.expect("nobody else");
    });
}

/// The first reason for which a session is over stays: a close of a lease that is gone has nothing
/// to do, and one of a session that has expired does not make it a closed one.
#[test]
fn the_first_end_of_a_session_stays() {
    tell(1, |world| async move {
        let session = world.session(1, 9).await;
        assert!(world.cluster.member().revoke(session.lease()));
        session.done().await;
        let closing = session.clone();
        world.on(1, async move { closing.close().await }).await.expect("it is gone already");
        session.orphan();
        assert_eq!(session.ended(), Some(SessionEnd::LeaseGone));
        let session = world.session(1, 5).await;
        world.cut(1);
        sleep(ms(5000)).await;
        session.orphan();
        let closing = session.clone();
        let closed = world.on(1, async move { closing.close().await }).await;
        assert!(is_timed_out(&closed), "{closed:?}");
        assert_eq!(session.ended(), Some(SessionEnd::Expired));
    });
}

/// Two sessions on one client: the one's lease is revoked, or its stream breaks, and the other
/// lives on.
#[test]
fn sessions_of_one_client_are_independent() {
    tell(1, |world| async move {
        let sessions = world.sessions(1, &[9, 30]).await;
        let begun = world.now();
        world.harm(RequestKind::KeepAlive, Harm::Lost, 1);
        sleep(ms(9000)).await;
        assert!(sessions.iter().all(Session::is_live));
        world.cluster.member().revoke(sessions[0].lease());
        sleep(ms(3100)).await;
        assert_eq!(sessions[0].ended(), Some(SessionEnd::LeaseGone));
        sleep(ms(60_000)).await;
        assert!(sessions[1].is_live());
        assert!(world.longest_gap(sessions[1].lease(), begun) < ms(15_000));
    });
}

/// An adopted lease counts from its first acknowledged renewal; while none gets through there is no
/// session.
#[test]
fn an_adopted_lease_counts_from_its_first_renewal() {
    tell(1, |world| async move {
        let lease = world.outsider().await.lease_grant(10, None).await.expect("granted").id();
        sleep(ms(5000)).await;
        world.harm(RequestKind::KeepAlive, Harm::Lost, 1);
        let adopted = world.adopt(1, lease).await;
        assert!(is_timed_out(&adopted), "{adopted:?}");
        assert!(world.changes(lease, LeaseChange::Renewed).is_empty());
        let session = world.adopt(1, lease).await.expect("renewed");
        let renewed = world.changes(lease, LeaseChange::Renewed);
        assert_eq!((renewed.len(), session.ttl_s()), (1, 10));
        let deadline = world.now() + session.remaining();
        let latest = renewed[0] + ms(10_000);
        assert!(deadline < latest && deadline > latest - ms(10), "{deadline:?}");
    });
}

/// Dropping the last handle orphans the session: no more renewals, and the lease runs out with its
/// keys. A lock handle is a handle of its session too.
#[test]
fn a_dropped_session_is_an_orphan() {
    tell(1, |world| async move {
        let session = world.session(1, 3).await;
        let lease = session.lease();
        let mutex = world.on(1, async move { Mutex::new(&session, "l") }).await;
        sleep(ms(9000)).await;
        assert!(mutex.session().is_live());
        let held = world.on(1, async move { mutex.acquire().await }).await.expect("it is free");
        sleep(ms(9000)).await;
        assert!(held.is_live());
        drop(held);
        let dropped = world.now();
        sleep(ms(4000)).await;
        let renewed = world.changes(lease, LeaseChange::Renewed);
        assert!(renewed.iter().all(|at| *at <= dropped));
        assert_eq!(world.changes(lease, LeaseChange::Expired).len(), 1);
        assert_eq!(world.owner("l"), None);
    });
}

/// L07: etcd grants more than was asked, and all times follow what it granted.
#[test]
fn l07_times_follow_the_granted_ttl() {
    tell(1, |world| async move {
        for (asked, granted) in [(1, 2), (0, 2), (-1, 2), (7, 7)] {
            let session = world.session(1, asked).await;
            assert_eq!(session.ttl_s(), granted);
            let ttl = Duration::from_secs(granted as u64);
            assert!(session.remaining() <= ttl && session.remaining() > ttl - ms(20));
            let begun = world.now();
            sleep(ttl).await;
            let renewed = world.changes(session.lease(), LeaseChange::Renewed);
            let expected = begun + ttl / 3;
            assert!(renewed[0].abs_diff(expected) < ms(20), "{:?} {expected:?}", renewed[0]);
        }
    });
}

/// The warning comes as long before the deadline as it was asked for, once renewals fail; not
/// while they get through.
#[test]
fn expires_within_warns_before_the_deadline() {
    tell(1, |world| async move {
        let mutex = world.mutex(1, 9, "l").await;
        let held = world.on(1, async move { mutex.acquire().await }).await.expect("it is free");
        let warned = held.expires_within(ms(4000));
        assert!(timeout(ms(20_000), warned).await.is_err(), "renewals get through");
        world.cut(1);
        held.expires_within(ms(4000)).await;
        assert!(held.is_live());
        let left = held.remaining();
        assert!(left <= ms(4000) && left > ms(3990), "{left:?}");
        held.lost().await;
        assert_eq!((held.is_live(), held.remaining()), (false, Duration::ZERO));
        assert!(held.unlock().await.is_err(), "etcd is out of reach");
    });
}

/// L09: the wall clocks of the member and of the holder jump ahead and back: neither the lease nor
/// the session notices, and once the holder is cut off both end when they would have.
#[test]
fn l09_wall_clocks_play_no_part() {
    tell(1, |world| async move {
        let session = world.session(1, 6).await;
        let (node, etcd) = world.link(1);
        for step in [3_600_000, -7_200_000] {
            world.cluster.clocks().step_wall(etcd, step);
            world.cluster.clocks().step_wall(node, step);
            sleep(ms(10_000)).await;
            assert!(session.is_live());
        }
        world.cut(1);
        let left = session.remaining();
        world.cluster.clocks().step_wall(node, 3_600_000);
        let cut = world.now();
        session.done().await;
        assert!((world.now() - cut).abs_diff(left) < ms(2));
        sleep(ms(1000)).await;
        assert_eq!(world.changes(session.lease(), LeaseChange::Expired).len(), 1);
    });
}

/// D9: a holder whose clock runs a tenth slow, and which is cut off, is over before its lease if it
/// counts nine tenths of the TTL, and not if it counts all of it.
#[test]
fn a_slow_clock_is_covered_by_a_shorter_deadline() {
    for (deadline_permille, in_time) in [(900, true), (1000, false)] {
        tell(1, move |world| async move {
            let (node, _) = world.link(1);
            world.cluster.clocks().add_rate(node, 900);
            let endpoints = world.cluster.etcd_endpoints();
            let beginning = async move {
                let client = Client::connect(&endpoints, None).await.expect("an address");
                let options = SessionOptions { ttl_s: 30, deadline_permille, ..Default::default() };
                Session::new(&client, options).await.expect("granted")
            };
            let session = world.on(1, beginning).await;
            // What was granted counts as what is renewed does.
            sleep(ms(12_000)).await;
            assert_eq!(world.changes(session.lease(), LeaseChange::Renewed).len(), 1);
            world.cut(1);
            let done = session.done();
            world.on(1, done).await;
            let over = world.now();
            sleep(ms(35_000)).await;
            let expired = world.changes(session.lease(), LeaseChange::Expired);
            assert_eq!(over <= expired[0], in_time, "{over:?} {expired:?}");
        });
    }
}
