//! Proclamations whose answers are lost and that land late: they must not undo a newer value. Go's
//! `Proclaim` compares the create revision only, and there they do.

use super::{both, draw, ms, race, tell};
use crate::{
    concurrency::{Election, Session, SessionOptions},
    etcd::{
        Client,
        server::{Harm, RequestKind},
    },
    history::NodeName,
    time::{sleep, timeout},
};

/// A proclamation is lost, answered in vain, or delivered twice, and another follows at once: each
/// has its effect once, in this order.
#[test]
fn a_proclamation_lost_or_delivered_twice_has_its_effect_once() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 60, "e").await;
            let token = world.campaign(1, &p, "p").await.expect("nobody else");
            let harms = [Harm::Lost, Harm::ReplyLost, Harm::Twice];
            let harm = harms[draw(seed, 3) as usize];
            world.harm(RequestKind::Txn, harm, 1 + draw(seed + 1000, 2));
            let (one, two) = (p.clone(), p.clone());
            // Two calls at once: told in the order of the calls.
            let first =
                world.cluster.spawn(NodeName::Client(1), async move { one.proclaim("one").await });
            sleep(ms(draw(seed + 2000, 8))).await;
            let second =
                world.cluster.spawn(NodeName::Client(1), async move { two.proclaim("two").await });
            first.await.expect("no panic").expect("it leads");
            second.await.expect("no panic").expect("it leads");
            sleep(ms(1500)).await;
            let leader = p.leader().await.expect("readable").expect("P leads");
            assert_eq!((leader.value.as_slice(), leader.token), (&b"two"[..], token));
            assert_eq!(world.puts(p.key()), 3, "{harm:?}");
            harm == Harm::Lost
        })
    }));
}

/// A handle knows its last word: each proclamation costs one request.
#[test]
fn a_proclamation_costs_one_request() {
    tell(1, |world| async move {
        let p = world.candidate(1, 60, "e").await;
        world.campaign(1, &p, "p").await.expect("nobody else");
        let before = world.received(RequestKind::Txn);
        for value in ["one", "two", "three"] {
            let election = p.clone();
            world.on(1, async move { election.proclaim(value).await }).await.expect("it leads");
        }
        assert_eq!(world.received(RequestKind::Txn) - before, 3);
        let leader = p.leader().await.expect("readable").expect("P leads");
        // On its lease still: a put that names none takes a key off it.
        assert_eq!((leader.value.as_slice(), leader.lease), (&b"three"[..], p.session().lease()));
        assert_eq!(world.puts(p.key()), 4);
    });
}

/// A proclamation is given up while it is held back; meanwhile another process with the same lease
/// proclaims something newer. When the old one lands, before or after that, the newer stays.
#[test]
fn a_late_proclamation_does_not_undo_a_newer_one() {
    both(race(|seed| {
        tell(seed, move |world| async move {
            let p = world.candidate(1, 60, "e").await;
            let token = world.campaign(1, &p, "p").await.expect("nobody else");
            let endpoints = world.cluster.etcd_endpoints();
            let lease = p.session().lease();
            let other = world.on(2, async move {
                let client = Client::connect(&endpoints, None).await.expect("an address");
                let options = SessionOptions { lease: Some(lease), ..SessionOptions::default() };
                let session = Session::new(&client, options).await.expect("adopted");
                Election::resume(&session, "e", token).await.expect("it leads")
            });
            let other = other.await;
            world.cut(1);
            let late = p.clone();
            let given_up =
                world.on(1, async move { timeout(ms(200), late.proclaim("old")).await }).await;
            assert!(given_up.is_err());
            // What was held back is sent again some time after the link is mended.
            let delay = ms(draw(seed + 1000, 1200));
            let newer = world.cluster.spawn(NodeName::Client(2), async move {
                sleep(delay).await;
                other.proclaim("new").await
            });
            sleep(ms(draw(seed, 25))).await;
            world.mend(1);
            newer.await.expect("no panic").expect("it leads");
            sleep(ms(1500)).await;
            let leader = p.leader().await.expect("readable").expect("P leads");
            assert_eq!((leader.value.as_slice(), leader.token), (&b"new"[..], token));
            let landed = world.puts(p.key()) == 3;
            // The handle that was overtaken goes on from there.
            let again = p.clone();
            world.on(1, async move { again.proclaim("newest").await }).await.expect("it leads");
            let leader = p.leader().await.expect("readable").expect("P leads");
            assert_eq!(leader.value, b"newest");
            landed
        })
    }));
}
