//! The election service through the facade, and the stories that people have had with it.

use std::pin::pin;

use super::{
    lock::{is_blocked, keys, unknown, with_lease},
    world::{run, s},
};
use crate::{
    etcd::{Client, Error, LeaderKey, LeaderResponse, ProclaimOptions, ResignOptions},
    time::{sleep, timeout},
};

async fn lead(client: &mut Client, name: &str, value: &str, lease: i64) -> LeaderKey {
    let won = timeout(s(0.1), client.campaign(name, value, lease)).await.expect("at once");
    won.expect("elected").take_leader().expect("there")
}

fn seen(message: Result<Option<LeaderResponse>, Error>) -> (String, String, i64) {
    let message = message.expect("no error").expect("no end");
    let kv = message.kv().expect("a pair");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (text(kv.key()), text(kv.value()), message.header().expect("there").revision())
}

/// An observer sees the leader, what it proclaims, and the leader after it, but no candidate.
#[test]
fn an_observer_sees_each_leader() {
    run(async |_| {
        let (mut p, mut q) = (with_lease(1, 60).await, with_lease(2, 60).await);
        let mut observer = with_lease(3, 60).await;
        let mut opening = pin!(observer.observe("e"));
        assert!(is_blocked(opening.as_mut()).await, "the reply begins with a leader");
        let leader = lead(&mut p, "e", "p1", 1).await;
        let mut stream = opening.await.expect("a leader is there");
        assert_eq!(seen(stream.message().await), ("e/1".into(), "p1".into(), 2));
        let mut waiting = pin!(q.campaign("e", "q1", 2));
        assert!(is_blocked(waiting.as_mut()).await);
        let options = ProclaimOptions::new().with_leader(leader.clone());
        p.proclaim("p2", Some(options)).await.expect("it leads");
        assert_eq!(seen(stream.message().await), ("e/1".into(), "p2".into(), 4));
        p.resign(Some(ResignOptions::new().with_leader(leader))).await.expect("resigned");
        assert_eq!(seen(stream.message().await), ("e/2".into(), "q1".into(), 5));
        let won = waiting.await.expect("elected");
        assert_eq!(won.header().expect("there").revision(), 3, "of its own put");
        assert_eq!(won.leader().expect("there").rev(), 3);
        drop(stream);
        assert!(timeout(s(0.25), p.observe("other")).await.is_err());
    });
}

/// Only the key of the right create revision proclaims; without a leader key nothing does.
#[test]
fn a_wrong_leader_key_does_not_proclaim() {
    run(async |_| {
        let mut p = with_lease(1, 60).await;
        let none = p.leader("e").await.expect_err("nobody leads");
        assert_eq!(unknown(none), "election: no leader");
        let leader = lead(&mut p, "e", "v", 1).await;
        assert_eq!((leader.name(), leader.key(), leader.lease()), (&b"e"[..], &b"e/1"[..], 1));
        for wrong in [leader.clone().with_rev(9), leader.clone().with_key("e/2")] {
            let options = ProclaimOptions::new().with_leader(wrong);
            let refused = p.proclaim("w", Some(options)).await.expect_err("not the leader");
            assert_eq!(unknown(refused), "election: not leader");
        }
        let missing = "\"leader\" field must be provided";
        assert_eq!(unknown(p.proclaim("w", None).await.expect_err("no key")), missing);
        assert_eq!(unknown(p.resign(None).await.expect_err("no key")), missing);
        let still = p.leader("e").await.expect("it leads");
        assert_eq!(still.kv().expect("a pair").value(), b"v");
    });
}

/// A campaign that is dropped while it waits is withdrawn.
#[test]
fn a_dropped_campaign_is_withdrawn() {
    run(async |_| {
        let (mut p, mut q) = (with_lease(1, 60).await, with_lease(2, 60).await);
        lead(&mut p, "e", "p", 1).await;
        assert!(timeout(s(0.5), q.campaign("e", "q", 2)).await.is_err());
        sleep(s(0.1)).await;
        assert_eq!(keys(&mut p, "e/").await, ["e/1"]);
    });
}

/// A campaign again on one lease keeps its place, and its value becomes the leader's.
#[test]
fn a_second_campaign_on_one_lease_proclaims() {
    run(async |_| {
        let mut p = with_lease(1, 60).await;
        let first = lead(&mut p, "e", "v1", 1).await;
        assert_eq!(lead(&mut p, "e", "v2", 1).await, first);
        let leader = p.leader("e").await.expect("it leads");
        let kv = leader.kv().expect("a pair");
        assert_eq!((kv.value(), kv.create_revision(), kv.mod_revision()), (&b"v2"[..], 2, 3));
    });
}

/// E08: elections whose names begin alike are independent, whatever the name ends with.
#[test]
fn e08_a_name_that_is_a_prefix_of_another() {
    run(async |_| {
        let mut p = with_lease(1, 60).await;
        for name in ["job10", "job1", "job1/", "job1//", "", "/"] {
            assert_eq!(lead(&mut p, name, name, 1).await.key(), format!("{name}/1").as_bytes());
        }
        let odd = p.campaign([b'j', 0xff], "odd", 1).await.expect("at once");
        assert_eq!(odd.leader().expect("there").key(), [b'j', 0xff, b'/', b'1']);
        for name in ["job10", "job1"] {
            let leader = p.leader(name).await.expect("it leads");
            assert_eq!(leader.kv().expect("a pair").value(), name.as_bytes());
        }
        let none = p.leader("job").await.expect_err("the slash belongs to the name");
        assert_eq!(unknown(none), "election: no leader");
    });
}

/// E09: the leader's key is deleted from outside and its lease campaigns again: it is behind who
/// came in between. If that key is deleted too while it waits, etcd tells it that it leads, though
/// no key says so; the simulated member does the same.
#[test]
fn e09_a_campaign_after_the_key_was_deleted() {
    run(async |world| {
        let (mut p, mut q) = (with_lease(1, 60).await, with_lease(2, 60).await);
        let first = lead(&mut p, "e", "p", 1).await;
        q.delete("e/1", None).await.expect("an operator may");
        let second = lead(&mut q, "e", "q", 2).await;
        let mut waiting = pin!(p.campaign("e", "p", 1));
        assert!(is_blocked(waiting.as_mut()).await);
        q.delete("e/1", None).await.expect("an operator may");
        assert!(is_blocked(waiting.as_mut()).await);
        q.resign(Some(ResignOptions::new().with_leader(second.clone()))).await.expect("resigned");
        let told = waiting.await.expect("told that it leads").take_leader().expect("there");
        assert!(first.rev() < second.rev() && second.rev() < told.rev());
        assert_eq!(world.state.owner("e"), None);
    });
}
