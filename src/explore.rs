//! Runs many seeds in parallel and adds up what they showed.
//!
//! The sum does not depend on the number of jobs: results are added in the order of their seeds.

mod coverage;
mod summary;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

pub use coverage::{Coverage, LockPhase, unreachable};
pub use summary::{EXPECTED, Failure, REACHED_FROM_RUNS, Summary, replay_token};

use crate::{
    case::{Case, CaseOptions},
    judge::{Judged, judge},
    runner::{self, RunError},
    scenario::{self, ChoiceError},
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
    /// Which seeds.
    pub seeds: Range<u64>,
    /// How many runs at a time.
    pub jobs: usize,
    /// Whether to stop at the first seed that does not pass.
    pub fail_fast: bool,
    /// Other parts than the scenario's.
    pub change: Option<Change>,
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
    let first = scenario.case(Seed(options.seeds.start), options.options.clone());
    scenario::resolve(&first)?;
    let mut summary = Summary::new(
        first.scenario.clone(),
        options.options.clone(),
        !scenario::is_control(&first),
    );
    summary.own_parts = options.change.is_some();
    let count = options.seeds.end.saturating_sub(options.seeds.start);
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
                    if place >= count {
                        return;
                    }
                    let seed = options.seeds.start + place;
                    let case = scenario.case(Seed(seed), options.options.clone());
                    let outcome = run_and_judge(&case, options.change.as_ref());
                    if results.send((seed, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut waiting = BTreeMap::new();
        let mut expected = options.seeds.start;
        for (seed, outcome) in incoming {
            waiting.insert(seed, outcome);
            while let Some(outcome) = waiting.remove(&expected) {
                expected += 1;
                if done.load(Ordering::Relaxed) {
                    continue;
                }
                summary.add(outcome);
                progress(&summary);
                let failed = options.fail_fast && !summary.failures.is_empty();
                if failed || summary.harness_errors >= HARNESS_ERRORS_MAX {
                    done.store(true, Ordering::Relaxed);
                }
            }
        }
    });
    summary.interrupted = stop.load(Ordering::Relaxed);
    Ok(summary)
}
