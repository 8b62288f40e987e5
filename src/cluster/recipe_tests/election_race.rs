//! Races of the election: each with 200 seeds that draw the moments, and both orders seen. Those of
//! E01 and E02 are beside their stories, in `election`.

use std::{collections::BTreeSet, time::Duration};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{World, both, draw, election::expired, ms, race, tell};
use crate::{
    concurrency::{ElectionError, Leadership, Observer},
    etcd::{
        Client,
        server::{Harm, RequestKind},
    },
    history::NodeName,
    time::{sim::true_ns, sleep, timeout},
};

/// Elections whose names begin alike. Not "job" and "job/": the queue of the one contains that of
/// the other, here as in etcd.
const ALIKE: [(&str, &str); 4] =
    [("job10", "job1"), ("job/", "job/1"), ("", "a"), ("a\u{ff}", "a")];

impl World {
    /// Begins to observe an election on a client's node.
    fn observing(&self, client: u8, name: &'static str) -> UnboundedReceiver<Leadership> {
        let endpoints = self.cluster.etcd_endpoints();
        let (told, news) = unbounded_channel();
        self.cluster.spawn(NodeName::Client(client), async move {
            let client = Client::connect(&endpoints, None).await.expect("an address");
            let mut observer = Observer::new(&client, name, ms(500));
            loop {
                let next = observer.next().await.expect("readable");
                if told.send(next).is_err() {
                    return;
                }
            }
        });
        news
    }
}

/// What was told so far.
fn told(news: &mut UnboundedReceiver<Leadership>) -> Vec<Leadership> {
    std::iter::from_fn(|| news.try_recv().ok()).collect()
}

/// E05: the store goes on and is compacted while an observer is between its read and its watch, or
/// before or after that. It reads once more if its watch came too late, and never again and again;
/// it tells each word of the leader once (etcd #7815).
#[test]
fn e05_race_of_compaction_and_the_watch() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 60, "e").await;
            world.campaign(1, &p, "p").await.expect("nobody else");
            let (node, etcd) = world.link(3);
            world.cluster.net().add_delay(node, etcd, ms(60));
            let count = |world: &World| {
                [RequestKind::Range, RequestKind::WatchCreate].map(|kind| world.received(kind))
            };
            let before = count(&world);
            let mut news = world.observing(3, "e");
            let mut outsider = world.outsider().await;
            sleep(ms(draw(seed, 150))).await;
            let mut revision = 0;
            for _ in 0..3 {
                let reply = outsider.put("other", "x", None).await.expect("put");
                revision = reply.header().expect("a header").revision();
            }
            outsider.compact(revision, None).await.expect("compacted");
            sleep(ms(1000)).await;
            let settled = count(&world);
            let [reads, watches] = [settled[0] - before[0], settled[1] - before[1]];
            assert!(reads == watches && (1..=2).contains(&reads), "{reads} {watches}");
            sleep(ms(10_000)).await;
            assert_eq!(count(&world), settled);
            let election = p.clone();
            world.on(1, async move { election.proclaim("again").await }).await.expect("it leads");
            sleep(ms(100)).await;
            let values: Vec<Vec<u8>> = told(&mut news)
                .into_iter()
                .map(|news| match news {
                    Leadership::Leader(leader) => leader.value,
                    Leadership::Vacant => b"nobody".to_vec(),
                })
                .collect();
            assert_eq!(values, [&b"p"[..], b"again"]);
            reads == 2
        })
    }));
}

/// E06: the leader's lease ends while another begins to stand. The observer tells that nobody leads
/// only if that was so, certainly if it was so for longer than it takes to look, and then the new
/// leader.
#[test]
fn e06_race_of_the_leaders_end_and_a_new_candidate() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 10, "e").await;
            let q = world.candidate(2, 10, "e").await;
            let older = world.campaign(1, &p, "p").await.expect("nobody else");
            let mut news = world.observing(3, "e");
            sleep(ms(50)).await;
            let (election, delay) = (q.clone(), ms(draw(seed + 1000, 40)));
            let standing = world.cluster.spawn(NodeName::Client(2), async move {
                sleep(delay).await;
                election.campaign("q").await
            });
            sleep(ms(draw(seed, 40))).await;
            assert!(world.cluster.member().revoke(p.session().lease()));
            let newer = standing.await.expect("no panic").expect("P is gone");
            sleep(ms(100)).await;
            let told = told(&mut news);
            let leaders: Vec<_> = told
                .iter()
                .filter_map(|news| match news {
                    Leadership::Leader(leader) => Some(leader.token),
                    Leadership::Vacant => None,
                })
                .collect();
            assert_eq!(leaders, [older, newer]);
            assert!(told.len() == 2 || (told.len() == 3 && told[1] == Leadership::Vacant));
            let (left_at, left) = world.deletions(p.key())[0];
            let vacant = left < newer.get();
            let vacancy = world.committed_at(newer.get()).saturating_sub(left_at);
            assert!(vacant || told.len() == 2, "{told:?}");
            // A delivery of the watch and one of the read.
            assert!(vacancy < ms(11) || told.len() == 3, "{vacancy:?} {told:?}");
            assert!(!told.is_empty() && world.owner("e").as_deref() == Some(q.key()));
            vacant
        })
    }));
}

/// E07: nobody but the leader is renewed, and it resigns about when the leases of the others lapse.
/// Who is told that it won has its key, and no two at once (etcd-client #14).
#[test]
fn e07_race_of_resignation_and_lapsing_leases() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 60, "e").await;
            world.campaign(1, &p, "p").await.expect("nobody else");
            world.harm(RequestKind::KeepAlive, Harm::Lost, 1000);
            let mut standing = Vec::new();
            for client in [2, 3, 2, 3] {
                let q = world.candidate(client, 2, "e").await;
                standing.push(world.cluster.spawn(NodeName::Client(client), async move {
                    let outcome = q.campaign("q").await;
                    (outcome, Duration::from_nanos(true_ns()), q)
                }));
            }
            sleep(ms(1200 + draw(seed, 900))).await;
            world.resign(1, &p).await;
            let mut outcomes = Vec::new();
            for standing in standing {
                let outcome = timeout(ms(3000), standing).await.expect("its session is over");
                outcomes.push(outcome.expect("no panic"));
            }
            sleep(ms(2000)).await;
            let mut led = BTreeSet::new();
            for (outcome, at, q) in &outcomes {
                assert_eq!(world.incarnations(q.key()).len(), 1);
                match outcome {
                    Ok(_) => _ = led.insert((*at, world.deletions(q.key())[0].0)),
                    Err(_) => assert!(expired(outcome), "{outcome:?}"),
                }
            }
            let led: Vec<_> = led.into_iter().collect();
            assert!(led.iter().all(|(told, gone)| told < gone), "{led:?}");
            assert!(led.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{led:?}");
            assert_eq!(p.leader().await.expect("readable"), None);
            !led.is_empty()
        })
    }));
}

/// E08: two elections whose names begin alike are stood for at about the same time. Both are won at
/// once, whichever key came first, and what becomes of the one is nothing to the other (etcd
/// #6278).
#[test]
fn e08_race_of_two_elections_named_alike() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let (one, other) = ALIKE[draw(seed + 2000, 4) as usize];
            let x = world.candidate(1, 10, one).await;
            let y = world.candidate(2, 10, other).await;
            let [x_wins, y_wins] = [(1, &x), (2, &y)].map(|(client, election)| {
                let delay = ms(draw(seed + 1000 * u64::from(client - 1), 8));
                let election = election.clone();
                world.cluster.spawn(NodeName::Client(client), async move {
                    sleep(delay).await;
                    timeout(ms(50), election.campaign(election.key())).await
                })
            });
            let x_won = x_wins.await.expect("no panic").expect("at once").expect("alone");
            let y_won = y_wins.await.expect("no panic").expect("at once").expect("alone");
            for (election, token) in [(&x, x_won), (&y, y_won)] {
                let leader = election.leader().await.expect("readable").expect("it was won");
                assert_eq!(
                    (leader.key.as_slice(), leader.token),
                    (election.key().as_bytes(), token)
                );
            }
            let (client, first, second) = if x_won < y_won { (1, &x, &y) } else { (2, &y, &x) };
            world.resign(client, first).await;
            assert_eq!(first.leader().await.expect("readable"), None);
            let leader = second.leader().await.expect("readable").expect("it leads still");
            assert_eq!(leader.key, second.key().as_bytes());
            x_won < y_won
        })
    }));
}

/// E09: an operator deletes the leader's key while the leader stands again on the same lease. If
/// the call met the old key it may say so, with the old token; if not, it waits behind who won in
/// between, and gets a newer token (etcd #11777).
#[test]
fn e09_race_of_the_delete_and_standing_again() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 10, "e").await;
            let q = world.candidate(2, 10, "e").await;
            let first = world.campaign(1, &p, "p").await.expect("nobody else");
            let next = world.stand(2, &q, "q");
            sleep(ms(50)).await;
            let mut outsider = world.outsider().await;
            // With another value it has to be told, which is one more moment to find the key gone.
            let value = ["p", "again"][draw(seed + 2000, 2) as usize];
            let (election, delay) = (p.clone(), ms(draw(seed + 1000, 12)));
            let again = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                election.campaign(value).await
            });
            sleep(ms(draw(seed, 12))).await;
            outsider.delete(p.key(), None).await.expect("deleted");
            let second = next.await.expect("no panic").expect("Q is first now");
            sleep(ms(50)).await;
            let met = world.incarnations(p.key()) == [first.get()];
            assert_eq!(again.is_finished(), met);
            if met {
                let outcome = again.await.expect("no panic");
                let kept = outcome.as_ref().is_ok_and(|token| *token == first);
                assert!(kept || (value == "again" && expired(&outcome)), "{outcome:?}");
                let election = p.clone();
                let gone = world.on(1, async move { election.proclaim("still?").await }).await;
                assert!(matches!(gone, Err(ElectionError::NotLeader)), "{gone:?}");
            } else {
                world.resign(2, &q).await;
                let third = again.await.expect("no panic").expect("P is first now");
                assert!(first < second && second < third, "{first} {second} {third}");
                assert_eq!(world.incarnations(p.key()), [first.get(), third.get()]);
            }
            met
        })
    }));
}

/// E09 while it waits: the operator deletes the candidate's key between its creation and its wait,
/// or before or after that, and the leader resigns meanwhile. It never wins without a key.
#[test]
fn e09_race_of_the_delete_and_the_wait() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 10, "e").await;
            let q = world.candidate(2, 10, "e").await;
            world.campaign(2, &q, "q").await.expect("nobody else");
            let mut outsider = world.outsider().await;
            world.pause_at(1, "queue.before_wait", ms(1 + draw(seed + 2000, 20)));
            let standing = world.stand(1, &p, "p");
            let (election, delay) = (q.clone(), ms(20 + draw(seed + 1000, 30)));
            let resigning = world.cluster.spawn(NodeName::Client(2), async move {
                sleep(delay).await;
                election.resign().await
            });
            sleep(ms(draw(seed, 60))).await;
            outsider.delete(p.key(), None).await.expect("deleted");
            resigning.await.expect("no panic").expect("it led");
            let outcome = timeout(ms(200), standing).await.expect("Q has left").expect("no panic");
            let left = world.deletions(q.key())[0].1;
            let deleted = world.deletions(p.key()).first().map(|(_, revision)| *revision);
            match &outcome {
                Ok(token) => {
                    assert_eq!(world.incarnations(p.key()), [token.get()]);
                    assert!(deleted.is_none_or(|deleted| left < deleted), "{left} {deleted:?}");
                }
                Err(_) => assert!(expired(&outcome) && deleted.is_some(), "{outcome:?}"),
            }
            outcome.is_ok()
        })
    }));
}
