//! The one place that makes runtimes.
//!
//! A run needs an operating-system thread of its own, and the runtime must be the first thing on
//! it: the standard library's hash keys are per thread and are drawn once.

use std::{any::Any, future::Future, thread, time::Duration};

use madsim::{Config, runtime::Runtime};

use super::quiet::{inherit, is_quiet};
use crate::{net::NetSim, point::PointSim, seed::Seed, time::sim::ClockSim};

/// A simulated run that goes on longer than this is stuck.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

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
    let quiet = is_quiet();
    let body = move || {
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
}
