//! The clocks: each test changes one and looks at it from inside a node.

use std::time::Duration;

use madsim::{runtime::Handle, task::NodeId};

use super::sim;
use crate::{
    seed::Seed,
    time::{
        Instant, interval,
        sim::{ClockSim, true_ns},
        sleep, timeout, wall_ms,
    },
};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Runs `work` on a node of its own and `harm` beside it; gives what the work gave.
fn on_node<T, H, W>(harm: fn(NodeId) -> H, work: fn() -> W) -> T
where
    T: Send + 'static,
    H: Future<Output = ()> + 'static,
    W: Future<Output = T> + Send + 'static,
{
    sim::run(Seed(1), move || async move {
        let node = Handle::current().create_node().build();
        let work = node.spawn(async move { work().await });
        harm(node.id()).await;
        work.await.expect("the work is not aborted")
    })
    .expect("the run has no harness error")
}

fn near(measured: Duration, expected: Duration) -> bool {
    measured.abs_diff(expected) < Duration::from_millis(5)
}

/// At half rate a sleep of 2 s takes 4 s of true time, and the node's own clock says 2 s.
#[test]
fn a_rate_moves_sleeps() {
    let (local, truly) = on_node(
        |node| async move { ClockSim::current().add_rate(node, 500) },
        || async {
            let (began, truly) = (Instant::now(), true_ns());
            sleep(Duration::from_millis(1)).await;
            sleep(secs(2)).await;
            (began.elapsed(), Duration::from_nanos(true_ns() - truly))
        },
    );
    assert!(near(local, secs(2)) && near(truly, secs(4)), "{local:?} {truly:?}");
}

/// A rate that changes while a sleep waits re-arms it: 1 s at rate 1, then 1 s left at rate 2.
#[test]
fn a_changed_rate_re_arms_a_waiting_sleep() {
    let truly = on_node(
        |node| async move {
            sleep(secs(1)).await;
            ClockSim::current().add_rate(node, 2000);
        },
        || async {
            sleep(secs(2)).await;
            Duration::from_nanos(true_ns())
        },
    );
    assert!(near(truly, Duration::from_millis(1500)), "{truly:?}");
}

/// During a suspend the monotonic clock stands still: a time-out of 2 s does not notice 10 s.
#[test]
fn a_suspend_is_not_noticed_by_the_monotonic_clock() {
    let (elapsed, truly, wall) = on_node(
        |node| async move {
            sleep(secs(1)).await;
            ClockSim::current().suspend(node);
            sleep(secs(10)).await;
            ClockSim::current().wake_up(node);
        },
        || async {
            let (began, wall) = (Instant::now(), wall_ms());
            let ended = timeout(secs(2), std::future::pending::<()>()).await;
            assert!(ended.is_err());
            (began.elapsed(), Duration::from_nanos(true_ns()), wall_ms() - wall)
        },
    );
    assert!(near(elapsed, secs(2)) && near(truly, secs(12)), "{elapsed:?} {truly:?}");
    assert!((11_990..12_010).contains(&wall), "the wall clock goes on: {wall} ms");
}

/// A step of the wall clock moves no sleep, and is counted only where the wall clock is read.
#[test]
fn a_wall_clock_step_moves_no_sleep() {
    let (elapsed, wall) = on_node(
        |node| async move {
            sleep(secs(1)).await;
            ClockSim::current().step_wall(node, -3_600_000);
        },
        || async {
            let wall = wall_ms();
            sleep(secs(2)).await;
            (Duration::from_nanos(true_ns()), wall_ms() - wall)
        },
    );
    assert!(near(elapsed, secs(2)), "{elapsed:?}");
    assert!((-3_598_010..-3_597_990).contains(&wall), "{wall}");
}

/// A pause lets the clock go on: the sleep ends late, and the sleep is counted as overdue.
#[test]
fn a_pause_holds_sleeps_back() {
    let (elapsed, overdue) = sim::run(Seed(1), || async {
        let handle = Handle::current();
        let node = handle.create_node().build();
        let work = node.spawn(async {
            sleep(secs(1)).await;
            Duration::from_nanos(true_ns())
        });
        sleep(Duration::from_millis(500)).await;
        handle.pause(node.id());
        sleep(secs(3)).await;
        let overdue = ClockSim::current().overdue(node.id());
        handle.resume(node.id());
        (work.await.expect("the work is not aborted"), overdue)
    })
    .expect("the run has no harness error");
    assert!(near(elapsed, Duration::from_millis(3500)), "{elapsed:?}");
    assert_eq!(overdue, 1);
}

/// An interval keeps its rhythm.
#[test]
fn an_interval_keeps_its_rhythm() {
    let ticks = on_node(
        |_| async {},
        || async {
            let mut ticks = interval(secs(1));
            let first = ticks.tick().await;
            sleep(Duration::from_millis(300)).await;
            let second = ticks.tick().await;
            (second - first, second.elapsed())
        },
    );
    assert!(near(ticks.0, secs(1)) && near(ticks.1, Duration::ZERO), "{ticks:?}");
}
