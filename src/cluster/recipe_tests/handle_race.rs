//! Races between handles of one session, between processes on one lease, and of calls with the end
//! of their session: each with 200 seeds that draw the moments, and both orders seen.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{World, both, draw, is_expired, is_timed_out, ms, race, tell};
use crate::{
    concurrency::{
        Election, ElectionError, FencingToken, LockError, Mutex, Session, SessionEnd,
        SessionOptions, WaitProfile,
    },
    etcd::{
        Client, PutOptions,
        server::{Harm, RequestKind},
    },
    history::NodeName,
    time::{sim::true_ns, sleep, timeout},
};

/// What a session can be first in: a lock or an election.
enum Post {
    Lock(Mutex),
    Lead(Election),
}

impl Post {
    /// One or the other, as the seed draws it.
    fn drawn(seed: u64, session: &Session) -> Arc<Self> {
        Arc::new(match draw(seed + 9000, 2) {
            0 => Post::Lock(Mutex::new(session, "l")),
            _ => Post::Lead(Election::new(session, "l")),
        })
    }

    async fn take(&self) -> FencingToken {
        match self {
            Post::Lock(mutex) => mutex.lock().await.expect("its turn comes"),
            Post::Lead(election) => election.campaign("p").await.expect("its turn comes"),
        }
    }

    /// Whether it was given back.
    async fn give_back(&self) -> bool {
        match self {
            Post::Lock(mutex) => mutex.unlock().await.is_ok(),
            Post::Lead(election) => election.resign().await.is_ok(),
        }
    }

    fn key(&self) -> &str {
        match self {
            Post::Lock(mutex) => mutex.key(),
            Post::Lead(election) => election.key(),
        }
    }
}

impl World {
    async fn take(&self, client: u8, post: &Arc<Post>) -> FencingToken {
        let post = post.clone();
        self.on(client, async move { post.take().await }).await
    }

    /// Another process with the lease of this session.
    async fn twin(&self, client: u8, session: &Session) -> Session {
        let endpoints = self.cluster.etcd_endpoints();
        let options = SessionOptions { lease: Some(session.lease()), ..Default::default() };
        self.on(client, async move {
            let client = Client::connect(&endpoints, None).await.expect("an address");
            Session::new(&client, options).await.expect("adopted")
        })
        .await
    }
}

/// D9: the node stands still, for longer than its lease lives, from about when a request is
/// answered. A call says "ok" only while its session is live, whatever answer it has got.
#[test]
fn d09_race_of_a_pause_and_the_answer() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 2).await;
            let election = Arc::new(Election::new(&session, "e"));
            let token = world.campaign(1, &election, "p").await.expect("nobody else");
            let endpoints = world.cluster.etcd_endpoints();
            let call = draw(seed + 1000, 6);
            let answered = world.cluster.spawn(NodeName::Client(1), async move {
                let go = WaitProfile::GoCompatible;
                let ok = match call {
                    0 => Mutex::new(&session, "l").lock().await.is_ok(),
                    1 => Mutex::with_profile(&session, "l", go).lock().await.is_ok(),
                    2 => Election::new(&session, "f").campaign("p").await.is_ok(),
                    3 => Election::resume(&session, "e", token).await.is_ok(),
                    4 => election.proclaim("again").await.is_ok(),
                    _ => {
                        let client = Client::connect(&endpoints, None).await.expect("an address");
                        let options = SessionOptions { ttl_s: 2, ..Default::default() };
                        let another = Session::new(&client, options).await;
                        let live = another.as_ref().is_ok_and(Session::is_live);
                        return (another.is_ok(), live);
                    }
                };
                (ok, session.is_live())
            });
            sleep(ms(draw(seed, 14))).await;
            world.cluster.pause(NodeName::Client(1));
            sleep(ms(3000)).await;
            world.cluster.resume(NodeName::Client(1));
            let (ok, live) = answered.await.expect("no panic");
            assert_eq!(ok, live, "call {call}");
            ok
        })
    }));
}

/// M11 while they wait: two handles of a session wait for one turn, and the first to have it gives
/// it back at once. The other has the same token if it was told before that; if not, it queues
/// again and has a newer one.
#[test]
fn m11_race_of_two_waiting_handles() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(2, 30, "l").await;
            world.lock(2, &a).await;
            let session = world.session(1, 30).await;
            let [one, other] = [Post::drawn(seed, &session), Post::drawn(seed, &session)];
            let given_up = Arc::new(AtomicBool::new(false));
            let (post, giving_up) = (one.clone(), given_up.clone());
            let briefly = Duration::from_micros(draw(seed, 4000));
            let first = world.cluster.spawn(NodeName::Client(1), async move {
                let token = post.take().await;
                sleep(briefly).await;
                giving_up.store(true, Ordering::Relaxed);
                assert!(post.give_back().await);
                token
            });
            let post = other.clone();
            let second = world.cluster.spawn(NodeName::Client(1), async move {
                let token = post.take().await;
                (token, given_up.load(Ordering::Relaxed))
            });
            sleep(ms(50)).await;
            world.unlock(2, &a).await.expect("held");
            let first = first.await.expect("no panic");
            let (second, after) = second.await.expect("no panic");
            sleep(ms(50)).await;
            if after {
                assert!(first < second, "{first} {second}");
                assert_eq!(world.incarnations(one.key()), [first.get(), second.get()]);
                assert_eq!(world.owner("l").as_deref(), Some(one.key()));
            } else {
                assert_eq!(first, second);
                assert_eq!(world.owner("l"), None);
            }
            after
        })
    }));
}

/// M09: an operator deletes the key of a held lock, and another handle of the session locks anew.
/// The unlock through the old handle, before or during or after that of the new one, deletes
/// nothing of the new holding, and costs it no unlock of its own.
#[test]
fn m09_race_of_an_old_and_a_new_unlock() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let m1 = world.mutex(1, 60, "l").await;
            let m2 = Arc::new(Mutex::new(m1.session(), "l"));
            let old = world.lock(1, &m1).await;
            world.outsider().await.delete(m1.key(), None).await.expect("deleted");
            let new = world.lock(1, &m2).await;
            let [old_first, new_first] = [(&m1, 0), (&m2, 1000)].map(|(handle, n)| {
                let (handle, delay) = (handle.clone(), ms(draw(seed + n, 12)));
                world.cluster.spawn(NodeName::Client(1), async move {
                    sleep(delay).await;
                    let invoked = Duration::from_nanos(true_ns());
                    (handle.unlock().await, invoked)
                })
            });
            let (old_outcome, _) = old_first.await.expect("no panic");
            let (new_outcome, invoked) = new_first.await.expect("no panic");
            assert!(new_outcome.is_ok(), "{new_outcome:?}");
            let first = old_outcome.is_ok();
            assert!(first || matches!(old_outcome, Err(LockError::Released)), "{old_outcome:?}");
            sleep(ms(50)).await;
            let deletions = world.deletions(m1.key());
            assert!(deletions.len() == 2 && deletions[1].0 > invoked, "{deletions:?} {invoked:?}");
            assert_eq!(world.incarnations(m1.key()), [old.get(), new.get()]);
            assert_eq!(world.owner("l"), None);
            first
        })
    }));
}

/// An operator replaces a waiter's key by another one of the same name and lease, about when the
/// holder unlocks. Whatever its profile, the waiter acquires only with the key that it created.
#[test]
fn m01_race_of_a_replaced_key_and_unlock() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 10, "l").await;
            world.lock(1, &a).await;
            let session = world.session(2, 10).await;
            let profile = [WaitProfile::Strict, WaitProfile::GoCompatible];
            let profile = profile[draw(seed + 2000, 2) as usize];
            let b = Arc::new(Mutex::with_profile(&session, "l", profile));
            let waiting = world.locking(2, &b);
            sleep(ms(50)).await;
            let mut outsider = world.outsider().await;
            let (handle, delay) = (a.clone(), ms(draw(seed + 1000, 40)));
            let unlocking = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                handle.unlock().await
            });
            sleep(ms(draw(seed, 20))).await;
            outsider.delete(b.key(), None).await.expect("deleted");
            let leased = PutOptions::new().with_lease(session.lease());
            outsider.put(b.key(), "", Some(leased)).await.expect("put");
            unlocking.await.expect("no panic").expect("held");
            let outcome = timeout(ms(100), waiting).await.expect("A has left").expect("no panic");
            let (left, replaced) = (world.deletions(a.key())[0].1, world.deletions(b.key())[0].1);
            match &outcome {
                Ok(token) => {
                    assert_eq!(world.incarnations(b.key())[0], token.get());
                    assert!(left < replaced, "{profile:?} {left} {replaced}");
                }
                Err(_) => assert!(is_expired(&outcome), "{outcome:?}"),
            }
            outcome.is_ok()
        })
    }));
}

/// M03 at its beginning: the lease of a call is revoked before its key is in the queue, or between
/// that and its first look at the queue. The call ends at once although the holder stays.
#[test]
fn m03_race_of_revoke_and_the_first_look() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 60, "l").await;
            world.lock(1, &a).await;
            let (handle, delay) = (b.clone(), ms(draw(seed + 1000, 8)));
            let waiting = world.cluster.spawn(NodeName::Client(2), async move {
                sleep(delay).await;
                handle.lock().await
            });
            sleep(ms(draw(seed, 16))).await;
            assert!(world.cluster.member().revoke(b.session().lease()));
            let outcome = timeout(ms(60), waiting).await.expect("at once").expect("no panic");
            assert!(is_expired(&outcome), "{outcome:?}");
            let entered = !world.incarnations(b.key()).is_empty();
            if !entered {
                // Etcd has said so.
                assert_eq!(b.session().ended(), Some(SessionEnd::LeaseGone));
            }
            assert_eq!(world.queue("l/").await, [a.key()]);
            entered
        })
    }));
}

/// M13 twice: a call is given up before or after etcd's answer, and another one follows at once and
/// is given up too. Whichever of them the key in the queue is from, it is taken away.
#[test]
fn m13_race_of_two_calls_that_give_up() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 60, "l").await;
            world.lock(1, &a).await;
            let first = world.lock_for(2, &b, ms(1 + draw(seed, 10))).await;
            let second = world.lock_for(2, &b, ms(100)).await;
            assert!(is_timed_out(&first) && is_timed_out(&second), "{first:?} {second:?}");
            sleep(ms(1500)).await;
            assert_eq!(world.queue("l/").await, [a.key()]);
            assert!(b.session().is_live());
            world.incarnations(b.key()).len() == 2
        })
    }));
}

/// W07 of a call that gives up: its enqueue is lost before its effect, or the reply after it. In
/// both cases the key in the queue is its own work, and it takes it away.
#[test]
fn w07_race_of_a_lost_reply_and_giving_up() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 60, "l").await;
            let b = world.mutex(2, 60, "l").await;
            world.lock(1, &a).await;
            let harm = [Harm::Lost, Harm::ReplyLost][draw(seed, 2) as usize];
            world.harm(RequestKind::Txn, harm, 1);
            let outcome = world.lock_for(2, &b, ms(80 + draw(seed + 1000, 200))).await;
            assert!(is_timed_out(&outcome), "{outcome:?}");
            assert_eq!(world.incarnations(b.key()).len(), 1);
            sleep(ms(1500)).await;
            assert_eq!(world.queue("l/").await, [a.key()]);
            assert!(b.session().is_live());
            harm == Harm::Lost
        })
    }));
}

/// A try-lock while the holder unlocks: it has the lock, or it is told that another has it, and its
/// key is gone again by then.
#[test]
fn try_lock_race_of_a_loser_and_unlock() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let a = world.mutex(1, 10, "l").await;
            let b = world.mutex(2, 10, "l").await;
            world.lock(1, &a).await;
            let (handle, delay) = (a.clone(), ms(draw(seed + 1000, 8)));
            let unlocking = world.cluster.spawn(NodeName::Client(1), async move {
                sleep(delay).await;
                handle.unlock().await
            });
            sleep(ms(draw(seed, 8))).await;
            let handle = b.clone();
            let outcome = world.on(2, async move { handle.try_lock().await }).await;
            let left = world.deletions(b.key()).len();
            match &outcome {
                Ok(token) => {
                    assert_eq!(world.incarnations(b.key()), [token.get()]);
                    assert_eq!((world.owner("l").as_deref(), left), (Some(b.key()), 0));
                }
                Err(_) => assert!(matches!(outcome, Err(LockError::Locked)) && left == 1),
            }
            unlocking.await.expect("no panic").expect("held");
            outcome.is_ok()
        })
    }));
}

/// Another process with a candidate's lease resumes its candidacy about when the leader resigns: it
/// leads if the candidate was first by then, and not before. And never with the token of a
/// leadership that was given back, although the same key leads again.
#[test]
fn resume_race_of_a_candidate_and_resignation() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 60, "e").await;
            let q = world.candidate(2, 60, "e").await;
            world.campaign(1, &p, "p").await.expect("nobody else");
            let standing = world.stand(2, &q, "q");
            sleep(ms(50)).await;
            let token = FencingToken::new(world.incarnations(q.key())[0]);
            let twin = world.twin(3, q.session()).await;
            let (session, delay) = (twin.clone(), ms(draw(seed + 1000, 12)));
            let resuming = world.cluster.spawn(NodeName::Client(3), async move {
                sleep(delay).await;
                let begun = Duration::from_nanos(true_ns());
                let outcome = Election::resume(&session, "e", token).await;
                (outcome, begun, Duration::from_nanos(true_ns()))
            });
            sleep(ms(draw(seed, 12))).await;
            world.resign(1, &p).await;
            let (outcome, begun, ended) = resuming.await.expect("no panic");
            let left = world.deletions(p.key())[0].0;
            match &outcome {
                Ok(resumed) => assert!(left < ended && resumed.token() == Some(token)),
                Err(ElectionError::NotLeader) => assert!(begun < left),
                Err(other) => panic!("{other}"),
            }
            assert_eq!(standing.await.expect("no panic").expect("P has left"), token);
            world.resign(2, &q).await;
            let newer = world.campaign(2, &q, "q").await.expect("nobody else");
            assert!(token < newer);
            let stale = async move { Election::resume(&twin, "e", token).await };
            let stale = world.on(3, stale).await;
            assert!(matches!(stale, Err(ElectionError::NotLeader)), "{stale:?}");
            outcome.is_ok()
        })
    }));
}

/// D6: an unlock or a resignation is lost on its way, and the caller gives it up, or not before it
/// was sent again. It never comes back: the delete is sent again in the background, and the next in
/// line has its turn.
#[test]
fn d06_race_of_an_abandoned_unlock_and_the_next() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let session = world.session(1, 60).await;
            let a = Post::drawn(seed, &session);
            let b = Post::drawn(seed, &world.session(2, 60).await);
            let first = world.take(1, &a).await;
            let waiter = b.clone();
            let next = world.cluster.spawn(NodeName::Client(2), async move { waiter.take().await });
            sleep(ms(50)).await;
            let harm = [Harm::Lost, Harm::ReplyLost][draw(seed + 1000, 2) as usize];
            world.harm(RequestKind::Txn, harm, 1);
            let (post, limit) = (a.clone(), ms(1 + draw(seed, 120)));
            let giving_up = async move { timeout(limit, post.give_back()).await.is_ok() };
            let given_back = world.on(1, giving_up).await;
            let second = timeout(ms(2000), next).await.expect("A has left").expect("no panic");
            assert!(first < second && session.is_live());
            assert_eq!(world.deletions(a.key()).len(), 1);
            given_back
        })
    }));
}
