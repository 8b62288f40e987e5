//! Pauses, suspends, clocks, deaths at a code point.

use std::time::Duration;

use super::{CLIENT, ETCD, NodeName, ask, begin, ms, stored, tell, write};
use crate::{
    cluster::Cluster,
    fault::Injector,
    history::EventKind,
    plan::{Fault, FaultKind, Plan},
    point,
    storage::Request,
    time::{self, Instant, sim::true_ns, sleep},
};

const STORAGE: NodeName = NodeName::Storage;

/// A sleep on a client's node: what its own clock and true time say it took.
async fn slept(cluster: &Cluster, length: Duration) -> (Duration, Duration) {
    let asleep = cluster.spawn(CLIENT, async move {
        let (own, began) = (Instant::now(), true_ns());
        sleep(length).await;
        (own.elapsed(), Duration::from_nanos(true_ns() - began))
    });
    asleep.await.unwrap()
}

/// How far the client's wall clock is off, in milliseconds.
async fn wall_off(cluster: &Cluster) -> i64 {
    let own = cluster.spawn(CLIENT, async { time::wall_ms() }).await.unwrap();
    own - cluster.spawn(NodeName::Nemesis, async { time::wall_ms() }).await.unwrap()
}

/// Time passes between two readings, and both are cut off to milliseconds.
#[track_caller]
fn near(found: i64, expected: i64) {
    assert!((found - expected).abs() <= 10, "{found} is not about {expected}");
}

/// A paused client sleeps past its time, and its own clock knows; a suspended one does not know.
#[test]
fn a_pause_shows_on_the_own_clock_and_a_suspend_does_not() {
    tell(1, |cluster| async move {
        for (kind, own) in
            [(FaultKind::Pause { node: CLIENT }, 2000), (FaultKind::Suspend { node: CLIENT }, 500)]
        {
            let stopped = async {
                sleep(ms(100)).await;
                let end = begin(&cluster, 1900, kind);
                sleep(ms(1900)).await;
                end(&cluster)
            };
            let (took, effect) = tokio::join!(slept(&cluster, ms(500)), stopped);
            assert!(took.1 >= ms(2000), "{took:?}");
            assert!(took.0 >= ms(own) && took.0 < ms(own + 20), "{took:?}");
            assert!(effect > 0);
            let healed = slept(&cluster, ms(500)).await;
            assert!(healed.1 < ms(510), "{healed:?}");
        }
    });
}

/// A lease does not run out on a suspended member.
#[test]
fn a_suspended_member_keeps_its_leases() {
    tell(1, |cluster| async move {
        let lease = super::with_etcd(&cluster, CLIENT, |mut etcd| async move {
            let lease = etcd.lease_grant(2, None).await.unwrap().id();
            let on = crate::etcd::PutOptions::new().with_lease(lease);
            etcd.put("/lock/a", "", Some(on)).await.unwrap();
            lease
        });
        let lease = lease.await;
        let end = begin(&cluster, 6000, FaultKind::Suspend { node: ETCD });
        sleep(ms(6000)).await;
        assert!(end(&cluster) > 0);
        assert_eq!(cluster.member().owner("/lock").map(|(_, of)| of), Some(lease));
        sleep(ms(3000)).await;
        assert_eq!(cluster.member().owner("/lock"), None, "its clock goes on");
    });
}

/// At half the rate a sleep takes twice as long, and the own clock knows nothing of it.
#[test]
fn a_rate_stretches_sleeps() {
    tell(1, |cluster| async move {
        let end = begin(&cluster, 5000, FaultKind::ClockRate { node: CLIENT, permille: 500 });
        let took = slept(&cluster, ms(1000)).await;
        assert!(took.1 >= ms(2000) && took.1 < ms(2010) && took.0 < ms(1010), "{took:?}");
        assert!(end(&cluster) > 0);
        assert!(slept(&cluster, ms(1000)).await.1 < ms(1010));
    });
}

/// A wall clock is off, steps and is led back, and strobes; the monotonic clock does none of that.
#[test]
fn wall_clocks_are_moved_and_led_back() {
    tell(1, |cluster| async move {
        let end =
            begin(&cluster, 1000, FaultKind::ClockOffset { node: CLIENT, offset_ms: -60_000 });
        near(wall_off(&cluster).await, -60_000);
        assert_eq!(end(&cluster), 1);
        near(wall_off(&cluster).await, 0);

        let end = begin(&cluster, 4000, FaultKind::ClockStep { node: CLIENT, step_ms: 8000 });
        near(wall_off(&cluster).await, 8000);
        let took = slept(&cluster, ms(2000)).await;
        assert!(took.0 < ms(2010), "{took:?}");
        near(wall_off(&cluster).await, 4000);
        sleep(ms(2000)).await;
        near(wall_off(&cluster).await, 0);
        assert_eq!(end(&cluster), 2);

        let strobe = FaultKind::ClockStrobe { node: CLIENT, offset_ms: -500, period_ms: 100 };
        let end = begin(&cluster, 4000, strobe);
        for expected in [-500, 0, -500, 0] {
            near(wall_off(&cluster).await, expected);
            sleep(ms(100)).await;
        }
        assert_eq!(end(&cluster), 2);
        near(wall_off(&cluster).await, 0);
    });
}

/// Executes a plan of one fault while something else happens.
async fn execute<T>(cluster: &Cluster, kind: FaultKind, other: impl Future<Output = T>) -> T {
    let plan = Plan { faults: vec![Fault { start_ms: 0, length_ms: 1500, kind }] };
    let mut injector = Injector::new(cluster.clone(), &plan);
    let (told, ()) = tokio::join!(other, injector.run(ms(6000)));
    injector.heal();
    told
}

/// A storage that dies before the sync has answered nothing and lives again after the fault.
#[test]
fn a_death_at_a_point_is_there_and_then() {
    tell(1, |cluster| async move {
        assert!(write(&cluster, "first", 1).await.0);
        let kind = FaultKind::PointKill {
            node: STORAGE,
            point: "storage.before_sync".into(),
            occurrence: 1,
        };
        let story = async {
            sleep(ms(10)).await;
            let (written, took) = write(&cluster, "second", 2).await;
            assert!(!written && took < ms(100), "the connection ended: {took:?}");
            assert!(cluster.is_down(STORAGE));
            sleep(ms(2000)).await;
            assert!(!cluster.is_down(STORAGE));
            stored(&cluster).await
        };
        let found = execute(&cluster, kind, story).await;
        assert_eq!(found.as_deref(), Some("first"), "what was never appended is not there");
    });
}

/// A client that is paused at a point goes on from there.
#[test]
fn a_pause_at_a_point_is_there_and_then() {
    tell(1, |cluster| async move {
        let kind = FaultKind::PointPause {
            node: STORAGE,
            point: "storage.before_answer".into(),
            occurrence: 2,
        };
        let story = async {
            sleep(ms(10)).await;
            let first = ask(&cluster, CLIENT, Request::read("k")).await.1;
            let second = ask(&cluster, CLIENT, Request::read("k")).await.1;
            let third = ask(&cluster, CLIENT, Request::read("k")).await.1;
            (first, second, third)
        };
        let (first, second, third) = execute(&cluster, kind, story).await;
        assert!(first < ms(30) && third < ms(30), "{first:?} {third:?}");
        assert!(second >= ms(1500) && second < ms(1530), "{second:?}");
    });
}

/// A client stops at its point, and the server lives meanwhile; when the client goes on, the server
/// has died and started anew, and still has what it keeps.
#[test]
fn a_server_restarts_under_a_client_that_stands_still() {
    tell(1, |cluster| async move {
        assert!(write(&cluster, "kept", 1).await.0);
        let point = "client.before_write";
        let kind = FaultKind::RestartUnder {
            node: CLIENT,
            point: point.into(),
            occurrence: 1,
            server: STORAGE,
        };
        let restarts = |cluster: &Cluster| {
            let events = cluster.recorder().finish().0.events;
            let restarted = |event: &&crate::history::Event| event.kind == EventKind::Restarted;
            events.iter().filter(restarted).map(|event| event.node).collect::<Vec<_>>()
        };
        let story = async {
            sleep(ms(10)).await;
            let passing = async {
                let passing = cluster.spawn(CLIENT, async move {
                    let began = Instant::now();
                    point::reach(point).await;
                    began.elapsed()
                });
                passing.await.expect("its node is not killed")
            };
            let meanwhile = async {
                sleep(ms(1000)).await;
                stored(&cluster).await
            };
            let (took, meanwhile) = tokio::join!(passing, meanwhile);
            assert!(took >= ms(1500) && took < ms(1530), "{took:?}");
            assert_eq!(meanwhile.as_deref(), Some("kept"), "the server lives until then");
            cluster.storage_listens().await;
            assert_eq!(stored(&cluster).await.as_deref(), Some("kept"));
        };
        execute(&cluster, kind, story).await;
        assert_eq!(restarts(&cluster), [STORAGE]);
    });
}
