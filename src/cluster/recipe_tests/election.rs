//! Elections: E01, E02, E05 to E09 as stories; the races of E05 to E09 are in `election_race`.

use std::sync::Arc;

use madsim::task::JoinHandle;

use super::{World, ms, race, tell};
use crate::{
    concurrency::{Election, ElectionError, FencingToken, Leadership, LockError, Observer},
    history::NodeName,
    seed::Seed,
    time::{sleep, timeout},
};

pub(super) type Campaign = Result<FencingToken, ElectionError>;

pub(super) fn expired(campaign: &Campaign) -> bool {
    matches!(campaign, Err(ElectionError::Lock(LockError::SessionExpired)))
}

impl World {
    /// A candidate with a session of its own.
    pub(super) async fn candidate(&self, client: u8, ttl_s: i64, name: &str) -> Arc<Election> {
        let session = self.session(client, ttl_s).await;
        Arc::new(Election::new(&session, name))
    }

    /// Begins to campaign; the handle waits for the outcome.
    pub(super) fn stand(
        &self,
        client: u8,
        election: &Arc<Election>,
        value: &'static str,
    ) -> JoinHandle<Campaign> {
        let election = election.clone();
        let campaign = async move { election.campaign(value).await };
        self.cluster.spawn(NodeName::Client(client), campaign)
    }

    /// Campaigns to the end.
    pub(super) async fn campaign(
        &self,
        client: u8,
        election: &Arc<Election>,
        value: &'static str,
    ) -> Campaign {
        let election = election.clone();
        self.on(client, async move { election.campaign(value).await }).await
    }

    pub(super) async fn resign(&self, client: u8, election: &Arc<Election>) {
        let election = election.clone();
        self.on(client, async move { election.resign().await }).await.expect("it leads");
    }
}

/// E01: a candidate whose lease is revoked while it waits fails at once, not when the leader goes;
/// afterwards nobody leads, and a third wins.
#[test]
fn e01_a_candidate_without_lease_is_no_leader() {
    tell(1, |world| async move {
        let p = world.candidate(1, 10, "e").await;
        let q = world.candidate(2, 10, "e").await;
        world.campaign(1, &p, "p").await.expect("nobody else");
        let standing = world.stand(2, &q, "q");
        sleep(ms(100)).await;
        assert_eq!(world.queue("e/").await, [p.key(), q.key()]);
        assert!(world.cluster.member().revoke(q.session().lease()));
        let lost = timeout(ms(100), standing).await.expect("while P leads").expect("no panic");
        assert!(expired(&lost), "{lost:?}");
        assert!(p.is_leading());
        world.resign(1, &p).await;
        assert_eq!(p.leader().await.expect("readable"), None);
        let r = world.candidate(3, 10, "e").await;
        let token = world.campaign(3, &r, "r").await.expect("nobody else");
        let leader = p.leader().await.expect("readable").expect("R leads");
        assert_eq!((leader.value, leader.token), (b"r".to_vec(), token));
    });
}

/// E01 as a race: the leader resigns and the waiter's lease is revoked at about the same time. The
/// waiter either wins, and was first in the queue when it did, or is told that it is out.
#[test]
fn e01_race_of_resignation_and_revoke() {
    let won = |seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 10, "e").await;
            let q = world.candidate(2, 10, "e").await;
            world.campaign(1, &p, "p").await.expect("nobody else");
            let standing = world.stand(2, &q, "q");
            sleep(ms(100)).await;
            let resigning = {
                let p = p.clone();
                world.cluster.spawn(NodeName::Client(1), async move { p.resign().await })
            };
            sleep(ms(Seed(seed).stream("race").below(25))).await;
            world.cluster.member().revoke(q.session().lease());
            resigning.await.expect("no panic").expect("it led");
            let outcome = standing.await.expect("no panic");
            assert!(outcome.is_ok() || expired(&outcome), "{outcome:?}");
            sleep(ms(50)).await;
            assert!(world.queue("e/").await.is_empty());
            outcome.is_ok()
        })
    };
    let (won, lost) = race(won);
    assert!(won > 10 && lost > 10, "won {won}, lost {lost}");
}

/// E02: a campaign that ends with an error leaves no candidate behind: the next in line leads. Here
/// its deadline passes, while it is cut off for some of the time.
#[test]
fn e02_a_failed_campaign_leaves_no_candidate() {
    let cleaned = |seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 10, "e").await;
            let q = world.candidate(2, 10, "e").await;
            let r = world.candidate(3, 10, "e").await;
            world.campaign(1, &p, "p").await.expect("nobody else");
            let (etcd, node) =
                (world.cluster.id(NodeName::Etcd(1)), world.cluster.id(NodeName::Client(2)));
            let late = Seed(seed).stream("race").below(2) == 0;
            if late {
                world.cluster.net().add_delay(node, etcd, ms(150));
            }
            let standing = q.clone();
            let outcome =
                world.on(2, async move { standing.campaign_for("q", ms(100)).await }).await;
            assert!(matches!(outcome, Err(ElectionError::Lock(LockError::TimedOut(_)))));
            // Longer than the delay: the late enqueue has landed and was swept.
            sleep(ms(1500)).await;
            assert_eq!(world.queue("e/").await, [p.key()]);
            assert!(q.session().is_live());
            world.resign(1, &p).await;
            world.campaign(3, &r, "r").await.expect("nobody else");
            assert!(q.token().is_none());
            late
        })
    };
    let (late, prompt) = race(cleaned);
    assert!(late > 10 && prompt > 10, "late {late}, prompt {prompt}");
}

/// E05: an observer that starts after a compaction beyond the leader's last word tells that word
/// once, and then waits: it does not read again and again.
#[test]
fn e05_observe_does_not_spin_after_compaction() {
    tell(1, |world| async move {
        let p = world.candidate(1, 60, "e").await;
        world.campaign(1, &p, "p").await.expect("nobody else");
        let mut outsider = world.outsider().await;
        let mut revision = 0;
        for _ in 0..50 {
            let reply = outsider.put("other", "x", None).await.expect("put");
            revision = reply.header().expect("a header").revision();
        }
        outsider.compact(revision, None).await.expect("compacted");
        let mut observer = p.observe();
        let news = observer.next().await.expect("readable");
        assert!(matches!(news, Leadership::Leader(leader) if leader.value == b"p"));
        let (before, _) = world.cluster.requests();
        assert!(timeout(ms(10_000), observer.next()).await.is_err());
        let (after, _) = world.cluster.requests();
        // The session's renewals, at a third of a minute.
        assert!(after - before <= 2, "{} requests in 10 s", after - before);
        let election = p.clone();
        world.on(1, async move { election.proclaim("again").await }).await.expect("it leads");
        let news = observer.next().await.expect("readable");
        assert!(matches!(news, Leadership::Leader(leader) if leader.value == b"again"));
    });
}

/// E06: when the leader's lease ends and nobody else stands, the observer is told that nobody
/// leads; Go's observer is told nothing.
#[test]
fn e06_observe_tells_that_nobody_leads() {
    tell(1, |world| async move {
        let p = world.candidate(1, 3, "e").await;
        let token = world.campaign(1, &p, "p").await.expect("nobody else");
        let mut observer = Observer::new(&world.outsider().await, "e", ms(500));
        let first = observer.next().await.expect("readable");
        assert!(matches!(&first, Leadership::Leader(leader) if leader.token == token));
        world.cluster.pause(NodeName::Client(1));
        let news = timeout(ms(4000), observer.next()).await.expect("within TTL and a tick");
        assert_eq!(news.expect("readable"), Leadership::Vacant);
        world.cluster.resume(NodeName::Client(1));
        let q = world.candidate(2, 3, "e").await;
        let newer = world.campaign(2, &q, "q").await.expect("nobody else");
        let news = observer.next().await.expect("readable");
        assert!(matches!(news, Leadership::Leader(leader) if leader.token == newer));
        assert!(newer > token);
        assert!(!p.is_leading());
    });
}

/// E07: two candidates are cut off while they wait, so their leases lapse; when the leader goes,
/// neither is told that it won.
#[test]
fn e07_losers_whose_leases_lapse_do_not_win() {
    tell(1, |world| async move {
        let p = world.candidate(1, 10, "e").await;
        world.campaign(1, &p, "p").await.expect("nobody else");
        let etcd = world.cluster.id(NodeName::Etcd(1));
        let mut standing = Vec::new();
        for client in [2, 3] {
            let q = world.candidate(client, 2, "e").await;
            let campaign = async move { q.campaign("q").await };
            standing.push(world.cluster.spawn(NodeName::Client(client), campaign));
            sleep(ms(50)).await;
            let node = world.cluster.id(NodeName::Client(client));
            world.cluster.net().cut(node, etcd);
            world.cluster.net().cut(etcd, node);
        }
        for standing in standing {
            let outcome = timeout(ms(3000), standing).await.expect("its deadline has passed");
            assert!(expired(&outcome.expect("no panic")));
        }
        sleep(ms(1000)).await;
        assert_eq!(world.queue("e/").await, [p.key()]);
        world.resign(1, &p).await;
        assert_eq!(p.leader().await.expect("readable"), None);
    });
}

/// E08: elections whose names begin alike are strangers, also with odd names.
#[test]
fn e08_a_name_that_begins_another_is_another_election() {
    tell(1, |world| async move {
        for (one, other) in [("job10", "job1"), ("job", "job/"), ("", "a"), ("a\u{ff}", "a")] {
            let x = world.candidate(1, 10, one).await;
            let y = world.candidate(2, 10, other).await;
            world.campaign(1, &x, "x").await.expect("nobody else");
            let won = timeout(ms(500), world.campaign(2, &y, "y")).await;
            won.unwrap_or_else(|_| panic!("{other:?} waits behind {one:?}")).expect("alone");
            world.resign(2, &y).await;
            assert_eq!(y.leader().await.expect("readable"), None, "{other:?}");
            world.resign(1, &x).await;
        }
    });
}

/// E09: an operator deletes the leader's key and another wins; the old leader stands again on the
/// same lease, gets a newer token and waits behind.
#[test]
fn e09_standing_again_after_the_key_was_deleted() {
    tell(1, |world| async move {
        let p = world.candidate(1, 10, "e").await;
        let q = world.candidate(2, 10, "e").await;
        let first = world.campaign(1, &p, "p").await.expect("nobody else");
        let standing = world.stand(2, &q, "q");
        sleep(ms(50)).await;
        world.outsider().await.delete(p.key(), None).await.expect("deleted");
        let second = standing.await.expect("no panic").expect("Q is first now");
        let election = p.clone();
        let gone = world.on(1, async move { election.proclaim("still?").await }).await;
        assert!(matches!(gone, Err(ElectionError::NotLeader)), "{gone:?}");
        let again = world.stand(1, &p, "p");
        sleep(ms(50)).await;
        assert!(!again.is_finished());
        // And once more while it waits: it must not win without a key.
        world.outsider().await.delete(p.key(), None).await.expect("deleted");
        let outcome = again.await.expect("no panic");
        assert!(expired(&outcome), "{outcome:?}");
        let third = world.stand(1, &p, "p");
        sleep(ms(50)).await;
        world.resign(2, &q).await;
        let third = third.await.expect("no panic").expect("P is first now");
        assert!(first < second && second < third, "{first} {second} {third}");
    });
}

/// The leader's key is deleted from outside, and another handle of the session wins anew, under the
/// same key. The old handle does not speak for the new leadership, not even with its very words.
#[test]
fn e09_an_old_handle_does_not_proclaim_for_a_newer_one() {
    tell(1, |world| async move {
        let old = world.candidate(1, 10, "e").await;
        let first = world.campaign(1, &old, "p").await.expect("nobody else");
        world.outsider().await.delete(old.key(), None).await.expect("deleted");
        let new = Arc::new(Election::new(old.session(), "e"));
        let second = world.campaign(1, &new, "p").await.expect("nobody else");
        assert!(first < second);
        for value in ["p", "other"] {
            let election = old.clone();
            let told = world.on(1, async move { election.proclaim(value).await });
            let told = timeout(ms(100), told).await.expect("at once");
            assert!(matches!(told, Err(ElectionError::NotLeader)), "{told:?}");
        }
        assert_eq!((old.token(), new.token()), (None, Some(second)));
        assert_eq!(world.puts(new.key()), 2);
        let leader = new.leader().await.expect("readable").expect("it leads");
        assert_eq!((leader.value.as_slice(), leader.token), (&b"p"[..], second));
    });
}

/// Standing again with another value keeps the token and tells the value; a resumed handle goes on
/// with it, and resigns for all.
#[test]
fn campaign_again_and_resume() {
    tell(1, |world| async move {
        let p = world.candidate(1, 10, "e").await;
        let token = world.campaign(1, &p, "one").await.expect("nobody else");
        assert_eq!(world.campaign(1, &p, "two").await.expect("it leads"), token);
        let leader = p.leader().await.expect("readable").expect("P leads");
        assert_eq!((leader.value.as_slice(), leader.token), (&b"two"[..], token));
        let session = p.session().clone();
        let resumed = world
            .on(1, async move {
                let wrong = Election::resume(&session, "e", FencingToken::new(1)).await;
                assert!(matches!(wrong, Err(ElectionError::NotLeader)));
                let resumed = Election::resume(&session, "e", token).await?;
                resumed.proclaim("three").await?;
                resumed.resign().await?;
                Ok::<_, ElectionError>(resumed)
            })
            .await
            .expect("it led");
        assert_eq!((resumed.token(), p.token()), (None, None));
        assert_eq!(p.leader().await.expect("readable"), None);
        let election = p.clone();
        let over = world.on(1, async move { election.resign().await }).await;
        assert!(matches!(over, Err(ElectionError::NotLeader)));
    });
}
