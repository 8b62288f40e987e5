//! The one place that makes runtimes.
//!
//! A run needs an operating-system thread of its own, and the runtime must be the first thing on
//! it: the standard library's hash keys are per thread and are drawn once.

use std::{
    any::Any,
    future::Future,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use madsim::{Config, runtime::Runtime};

use super::quiet::{inherit, is_quiet};
use crate::{
    history::hash::RunHash, net::NetSim, point::PointSim, seed::Seed, time::sim::ClockSim,
};

/// A simulated run that goes on longer than this is stuck.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// A run that takes longer in wall time, in seconds, is stuck too: most take a tenth of one.
const WALL_MAX_S: u64 = 60;

/// The run ended without a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HarnessError {
    /// Some code of the run panicked.
    #[error("panic in the run: {0}")]
    Panic(String),
    /// Nothing in the run could go on.
    #[error("deadlock: every task of the run waits for ever")]
    Deadlock,
    /// The run did not end within its limit of simulated time.
    #[error("time limit: the run was not over after {} simulated seconds", TIME_LIMIT.as_secs())]
    TimeLimit,
    /// The run took more simulated time than was asked for.
    #[error(
        "time limit: the run took {:.3} simulated seconds of {:.3}",
        .simulated.as_secs_f64(),
        .limit.as_secs_f64()
    )]
    TooLong {
        /// How long it was.
        simulated: Duration,
        /// How long it may be.
        limit: Duration,
    },
    /// The same case gave two different runs.
    #[error("not deterministic: run hash {first}, and {second} when run again")]
    NotDeterministic {
        /// The hash of the first run.
        first: RunHash,
        /// And of the second.
        second: RunHash,
    },
    /// The run does not come to its next wait: code under test spins, or blocks its thread.
    #[error(
        "the run of seed {seed} did not end within {wall_s} s of wall time: code under test spins \
         or blocks its thread, which is left behind; look for a loop without an end in it"
    )]
    Stuck {
        /// The seed.
        seed: u64,
        /// How long it was waited for, in seconds.
        wall_s: u64,
    },
    /// The run could not be set up or finished, and why.
    #[error("{0}")]
    Failed(String),
}

/// Runs a future to its end in a fresh simulation on a fresh thread.
pub(crate) fn run<T, F>(
    seed: Seed,
    future: impl FnOnce() -> F + Send + 'static,
) -> Result<T, HarnessError>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    run_within(WALL_MAX_S, seed, future)
}

/// The same with another limit of wall time, which says nothing about runs that end.
fn run_within<T, F>(
    wall_s: u64,
    seed: Seed,
    future: impl FnOnce() -> F + Send + 'static,
) -> Result<T, HarnessError>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let quiet = is_quiet();
    let (alive, ended) = mpsc::channel::<()>();
    let body = move || {
        // Dropped when the thread ends, however it ends.
        let _alive = alive;
        inherit(quiet);
        let mut runtime = Runtime::with_seed_and_config(seed.0, Config::default());
        runtime.add_simulator::<ClockSim>();
        runtime.add_simulator::<NetSim>();
        runtime.add_simulator::<PointSim>();
        runtime.set_time_limit(TIME_LIMIT);
        runtime.block_on(async move { future().await })
    };
    let thread = thread::Builder::new()
        .name(format!("seed-{seed}"))
        .spawn(body)
        .map_err(|error| HarnessError::Failed(format!("no thread for the run: {error}")))?;
    // In seconds and not at once: a process that was stopped and goes on has lost one of them.
    let is_over = || ended.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout);
    if !(0..wall_s).any(|_| is_over()) {
        return Err(HarnessError::Stuck { seed: seed.0, wall_s });
    }
    thread.join().map_err(|panic| harness_error(panic.as_ref()))
}

fn harness_error(panic: &(dyn Any + Send)) -> HarnessError {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    };
    // The runtime tells these two by panicking with a fixed text.
    if message.starts_with("no events, all tasks will block forever") {
        HarnessError::Deadlock
    } else if message.starts_with("time limit exceeded") {
        HarnessError::TimeLimit
    } else {
        HarnessError::Panic(message)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    /// The three ways in which a run can break are told apart.
    #[test]
    fn harness_errors_are_told_apart() {
        let deadlock = run(Seed(1), || async { std::future::pending::<()>().await });
        assert_eq!(deadlock, Err(HarnessError::Deadlock));
        let late = run(Seed(1), || crate::time::sleep(TIME_LIMIT * 2));
        assert_eq!(late, Err(HarnessError::TimeLimit));
        let panic = run(Seed(1), || async { assert_eq!(1, 2, "on purpose") });
        let Err(HarnessError::Panic(message)) = panic else { panic!("{panic:?}") };
        assert!(message.contains("on purpose"));
    }

    /// A run that spins is given up, and its seed is named; one that is only slow is waited for.
    #[test]
    fn a_run_that_spins_is_given_up() {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let stuck = run_within(1, Seed(7), move || async move {
            while !told.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        over.store(true, Ordering::Relaxed);
        assert_eq!(stuck, Err(HarnessError::Stuck { seed: 7, wall_s: 1 }));
        let told = HarnessError::Stuck { seed: 7, wall_s: 60 }.to_string();
        assert!(told.starts_with("the run of seed 7 did not end within 60 s"), "{told}");
        let slow = run_within(20, Seed(7), || async {
            thread::sleep(Duration::from_millis(1500));
            5
        });
        assert_eq!(slow, Ok(5));
    }
}
