//! Runs many seeds in parallel and adds up what they showed.
//!
//! The sum does not depend on the number of jobs: results are added in the order of their seeds.

mod coverage;
mod guide;
pub mod results;
mod shard;
mod strategy;
mod summary;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

pub use coverage::{Coverage, LockPhase, unreachable};
pub use shard::{SHARDS_MAX, Shard, ShardError};
pub use strategy::Strategy;
pub use summary::{EXPECTED, Failed, Failure, REACHED_FROM_RUNS, Summary, replay_token};

use crate::{
    case::{Case, CaseOptions},
    judge::{Judged, judge},
    runner::{self, HarnessError, RunError},
    scenario::{self, ChoiceError, Scenario},
    seed::Seed,
    system::Change,
};

/// A panicked run leaks its memory: after so many of them there is no point in going on.
pub const HARNESS_ERRORS_MAX: u64 = 10;
/// More jobs than this are refused.
pub const JOBS_MAX: usize = 1024;

/// What to explore.
#[derive(Clone)]
pub struct ExploreOptions {
    /// The name of the scenario.
    pub scenario: String,
    /// Guard, token, clients.
    pub options: CaseOptions,
    /// How the plans are found.
    pub strategy: Strategy,
    /// Which seeds.
    pub seeds: Range<u64>,
    /// Which share of them.
    pub shard: Shard,
    /// How many runs at a time.
    pub jobs: usize,
    /// Whether to stop at the first seed that does not pass.
    pub fail_fast: bool,
    /// Other parts than the scenario's.
    pub change: Option<Change>,
    /// What is asked of a run beside its verdict.
    pub demands: Demands,
}

/// What is asked of a run beside its verdict. A run that falls short of it is a harness error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Demands {
    /// The longest that a run may last, in simulated time.
    pub time_limit: Option<Duration>,
    /// Whether each case is run twice, and must give the same run.
    pub twice: bool,
}

impl std::fmt::Debug for ExploreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExploreOptions")
            .field("scenario", &self.scenario)
            .field("options", &self.options)
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}

/// One run and what the judge said of it.
pub type Outcome = Result<Judged, Box<(Case, RunError)>>;

/// Runs a case and judges it.
pub fn run_and_judge(case: &Case, change: Option<&Change>) -> Outcome {
    let run = match change {
        Some(change) => runner::run_changed(case, change.as_ref()),
        None => runner::run(case),
    };
    run.map(judge).map_err(|error| Box::new((case.clone(), error)))
}

impl ExploreOptions {
    /// The case of a seed, by the strategy.
    fn case(&self, scenario: &Scenario, seed: Seed) -> Case {
        self.strategy.case(scenario, seed, self.options.clone(), self.change.as_ref())
    }

    /// Runs a case on what the exploration runs on, and judges it.
    pub fn run(&self, case: &Case) -> Outcome {
        self.demands.hold(case, &|case| run_and_judge(case, self.change.as_ref()))
    }
}

impl Demands {
    /// Runs a case by this function, and holds its run against what is asked of it.
    pub fn hold(&self, case: &Case, run: &dyn Fn(&Case) -> Outcome) -> Outcome {
        let judged = run(case)?;
        let fails = |error| Err(Box::new((case.clone(), RunError::Harness(error))));
        let simulated = judged.run.simulated;
        if let Some(limit) = self.time_limit.filter(|limit| simulated > *limit) {
            return fails(HarnessError::TooLong { simulated, limit });
        }
        if self.twice {
            let (first, second) = (judged.run.hash, run(case)?.run.hash);
            if first != second {
                return fails(HarnessError::NotDeterministic { first, second });
            }
        }
        Ok(judged)
    }
}

/// Runs all seeds. `progress` is told after each run, in the order of the seeds; `stop` ends the
/// exploration early, with the sum so far.
pub fn explore(
    options: &ExploreOptions,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Summary),
) -> Result<Summary, ChoiceError> {
    let scenario = scenario::find(&options.scenario)?;
    if options.seeds.is_empty() {
        let std::ops::Range { start, end } = options.seeds;
        return Err(ChoiceError::Seeds { start, end });
    }
    let Some(first) = options.shard.seed(&options.seeds, 0) else {
        let (shard, std::ops::Range { start, end }) = (options.shard, options.seeds.clone());
        return Err(ChoiceError::Shard { shard: shard.to_string(), start, end });
    };
    let first = scenario.case(Seed(first), options.options.clone());
    scenario::resolve(&first)?;
    let mut summary = Summary::new(
        first.scenario.clone(),
        options.options.clone(),
        !scenario::is_control(&first),
    );
    summary.own_parts = options.change.is_some();
    summary.strategy = options.strategy;
    let next = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let over = || done.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
    let (results, incoming) = mpsc::sync_channel::<(u64, Outcome)>(64);
    thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, JOBS_MAX) {
            let (results, next) = (results.clone(), &next);
            scope.spawn(move || {
                while !over() {
                    // Places and not seeds are counted: a range may end at the greatest number.
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(seed) = options.shard.seed(&options.seeds, place) else { return };
                    let case = options.case(scenario, Seed(seed));
                    if results.send((place, options.run(&case))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut waiting = BTreeMap::new();
        let mut expected = 0;
        for (place, outcome) in incoming {
            waiting.insert(place, outcome);
            while let Some(outcome) = waiting.remove(&expected) {
                expected += 1;
                if done.load(Ordering::Relaxed) {
                    continue;
                }
                let stuck = is_stuck(&outcome);
                summary.add(outcome);
                progress(&summary);
                let failed = options.fail_fast && !summary.failures.is_empty();
                if failed || stuck || summary.harness_errors >= HARNESS_ERRORS_MAX {
                    done.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    summary.interrupted = stop.load(Ordering::Relaxed);
    Ok(summary)
}

/// Such a run leaves a thread that spins, and the next would leave another.
fn is_stuck(outcome: &Outcome) -> bool {
    let error = outcome.as_ref().err().map(|broken| &broken.1);
    matches!(error, Some(RunError::Harness(HarnessError::Stuck { .. })))
}
