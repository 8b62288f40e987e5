//! What you call from a `#[test]`: check a scenario, with your own storage if you like.
//!
//! ```
//! use leasehold::testing::{self, Check};
//!
//! // The crate's own storage under the scheme that holds.
//! let summary = Check::new().seeds(0..5).run()?;
//! assert_eq!(summary.violations, 0);
//! # Ok::<(), testing::CheckError>(())
//! ```
//!
//! The environment variables `MADSIM_TEST_SEED`, `MADSIM_TEST_NUM` and `MADSIM_TEST_JOBS` override
//! first seed, number of seeds and jobs, as in madsim. `MADSIM_TEST_TIME_LIMIT` is the longest that
//! a run may last, in simulated seconds; with `MADSIM_TEST_CHECK_DETERMINISM=1` each case is run
//! twice and must give the same run. `MADSIM_TEST_CONFIG` is refused. A failing check saves its
//! smallest case in `LEASEHOLD_SAVE_DIR`, or else in `leasehold` in the target folder.

mod again;
mod corpus;
mod failure;
mod replay;
#[cfg(feature = "proptest")]
pub mod strategy;

use std::{ops::Range, sync::Arc, sync::atomic::AtomicBool, time::Duration};

pub use corpus::{CorpusCheck, assert_corpus, corpus, read_corpus};
pub use failure::explain;
pub use replay::{CaseCheck, CaseFailure, check_case, replay_case};

use crate::{
    case::CaseOptions,
    explore::{self, Demands, ExploreOptions, Shard, Strategy, Summary},
    judge::RunClass,
    scenario::{self, ChoiceError},
    system::{Change, Hosted, MakeStorage, lock_maker},
};

pub use crate::system::{Answer, Grant, LockFailure, LockOptions, LockUnderTest, StorageUnderTest};

/// Why a check could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It names something that is not there.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// An environment variable has a value that makes no sense.
    #[error("{name} is {value:?}, expected {expected}")]
    Environment {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
}

/// A check of a scenario over seeds.
///
/// Each run starts anew: what your code keeps in a `static` goes from one run into the next, and
/// what was found then does not come again. A run that does not end within 60 s of wall time is
/// given up as a harness error that names the seed, and ends the check: code under test spins, or
/// blocks its thread. Wall time decides nothing else.
#[derive(Debug, Clone)]
pub struct Check {
    options: ExploreOptions,
}

impl Default for Check {
    fn default() -> Self {
        Check::new()
    }
}

impl Check {
    /// The default scenario, guard and token, over 100 seeds, with as many jobs as cores.
    pub fn new() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let options = ExploreOptions {
            scenario: scenario::CATALOG[0].name.to_owned(),
            options: CaseOptions::default(),
            strategy: Strategy::default(),
            seeds: 0..100,
            shard: Shard::WHOLE,
            jobs,
            fail_fast: false,
            change: None,
            demands: Demands::default(),
        };
        Check { options }
    }

    /// Another scenario.
    pub fn scenario(mut self, name: &str) -> Self {
        self.options.scenario = name.to_owned();
        self
    }

    /// Another profile of faults: `all`, `calm`, `gc`, `network`, `clocks`, `crash`, `restart` or
    /// `lease`.
    pub fn profile(mut self, name: &str) -> Self {
        self.options.options.profile = name.to_owned();
        self
    }

    /// Another guard of the crate's storage: `unfenced`, `equal` or `monotonic`.
    pub fn guard(mut self, name: &str) -> Self {
        self.options.options.guard = name.to_owned();
        self
    }

    /// Another token: `revision` or `lease`.
    pub fn token(mut self, name: &str) -> Self {
        self.options.options.token = name.to_owned();
        self
    }

    /// Another number of clients.
    pub fn clients(mut self, clients: u8) -> Self {
        self.options.options.clients = clients;
        self
    }

    /// The lifetime of the leases that clients ask for, in seconds; 0: each session draws its own.
    pub fn ttl_s(mut self, ttl_s: u16) -> Self {
        self.options.options.ttl_s = ttl_s;
        self
    }

    /// How many of 1,000 holdings only read.
    pub fn readers(mut self, readers: u16) -> Self {
        self.options.options.readers = readers;
        self
    }

    /// Another way to find the plans of faults.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.strategy = strategy;
        self
    }

    /// Other seeds.
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.options.seeds = seeds;
        self
    }

    /// Another number of runs at a time.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.options.jobs = jobs;
        self
    }

    /// Stops at the first seed that does not pass.
    pub fn fail_fast(mut self) -> Self {
        self.options.fail_fast = true;
        self
    }

    /// A run that takes longer, in simulated time, is a harness error.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options.demands.time_limit = Some(limit);
        self
    }

    /// Runs each case twice: one that gives two different runs is a harness error. Code under test
    /// that reads a clock, or iterates a hash map, is found so.
    pub fn check_determinism(mut self) -> Self {
        self.options.demands.twice = true;
        self
    }

    /// A storage of your own; it is made anew for each run.
    pub fn storage<S: StorageUnderTest>(
        self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.change(own_storage(make))
    }

    /// A lock recipe of your own, with its session.
    pub fn lock<L: LockUnderTest>(self) -> Self {
        self.change(own_lock::<L>())
    }

    /// One more change of the system's parts.
    fn change(mut self, change: Change) -> Self {
        self.options.change = Some(after(self.options.change.take(), change));
        self
    }

    /// Runs all seeds and gives the sum.
    ///
    /// # Errors
    /// If the check names something that is not there, or the environment makes no sense.
    pub fn run(self) -> Result<Summary, CheckError> {
        let options = with_environment(self.options)?;
        Ok(explore::explore(&options, &AtomicBool::new(false), |_| {})?)
    }

    /// Runs all seeds and panics unless all pass: for a `#[test]`.
    ///
    /// # Panics
    /// With seed, checker, plan, timeline and the way to replay, the smallest case that shows the
    /// same and where it was saved, if a run does not pass; and if the check itself makes no sense.
    #[track_caller]
    pub fn assert_passes(self) -> Summary {
        let checked = with_environment(self.options).and_then(|options| {
            let summary = explore::explore(&options, &AtomicBool::new(false), |_| {})?;
            Ok((summary, options))
        });
        match checked {
            Ok((summary, _)) if summary.class() == RunClass::Pass => summary,
            Ok((summary, options)) => panic!("{}", failure::explain_smallest(&summary, &options)),
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs all seeds and panics unless this checker catches a violation in one of them: for a
    /// scheme that is wrong, and is to stay caught.
    ///
    /// # Panics
    /// If it catches none, with what else was found; if there is no such checker; and if the check
    /// itself makes no sense.
    #[track_caller]
    pub fn assert_violates(self, checker: &str) -> Summary {
        known_checker(checker);
        match self.run() {
            Ok(summary) if summary.caught.contains_key(checker) => summary,
            Ok(summary) => {
                let (runs, class) = (summary.runs, summary.class().name());
                let others: Vec<&String> = summary.caught.keys().collect();
                panic!("{checker} caught nothing in {runs} runs: {class}, caught by {others:?}")
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Panics unless there is a checker of this name.
#[track_caller]
fn known_checker(name: &str) {
    if let Err(error) = scenario::find_checker(name) {
        panic!("{error}");
    }
}

/// Puts a storage of the caller's in the place of the crate's.
fn own_storage<S: StorageUnderTest>(make: impl Fn() -> S + Send + Sync + 'static) -> Change {
    let make: MakeStorage = Arc::new(move || Box::new(Hosted(make())));
    Arc::new(move |system| system.storage = make.clone())
}

/// Puts a lock of the caller's in the place of the crate's.
fn own_lock<L: LockUnderTest>() -> Change {
    let make = lock_maker(L::open);
    Arc::new(move |system| system.lock = make.clone())
}

/// One change after another.
fn after(before: Option<Change>, change: Change) -> Change {
    Arc::new(move |system| {
        if let Some(before) = &before {
            before(system);
        }
        change(system);
    })
}

fn with_environment(mut options: ExploreOptions) -> Result<ExploreOptions, CheckError> {
    if let Some(value) = std::env::var_os("MADSIM_TEST_CONFIG") {
        let value = value.to_string_lossy().into_owned();
        let expected = "it to be unset: plans come from the seed, not from a configuration";
        return Err(CheckError::Environment { name: "MADSIM_TEST_CONFIG", value, expected });
    }
    let number = |name| {
        let Some(value) = std::env::var_os(name) else { return Ok(None) };
        let value = value.to_string_lossy().into_owned();
        match value.parse::<u64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(CheckError::Environment { name, value, expected: "a number" }),
        }
    };
    let count = options.seeds.end.saturating_sub(options.seeds.start);
    let first = number("MADSIM_TEST_SEED")?;
    let count = number("MADSIM_TEST_NUM")?.unwrap_or(if first.is_some() { 1 } else { count });
    let none = |name, value: u64, expected| {
        Err(CheckError::Environment { name, value: value.to_string(), expected })
    };
    if number("MADSIM_TEST_NUM")? == Some(0) {
        return none("MADSIM_TEST_NUM", 0, "1 or more (unset it for the check's own number)");
    }
    if first == Some(u64::MAX) {
        return none("MADSIM_TEST_SEED", u64::MAX, "less than that, so that there is a next one");
    }
    let first = first.unwrap_or(options.seeds.start);
    options.seeds = first..first.saturating_add(count);
    if let Some(jobs) = number("MADSIM_TEST_JOBS")? {
        let jobs = usize::try_from(jobs).unwrap_or(usize::MAX);
        if !(1..=explore::JOBS_MAX).contains(&jobs) {
            let (name, value) = ("MADSIM_TEST_JOBS", jobs.to_string());
            return Err(CheckError::Environment { name, value, expected: "1 to 1024" });
        }
        options.jobs = jobs;
    }
    demands(&mut options.demands)?;
    Ok(options)
}

/// What the environment asks of a run beside its verdict.
fn demands(demands: &mut Demands) -> Result<(), CheckError> {
    let variable = |name| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    let name = "MADSIM_TEST_TIME_LIMIT";
    if let Some(value) = variable(name) {
        let seconds = value.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(limit) => demands.time_limit = Some(limit),
            None => {
                let expected = "simulated seconds, more than 0";
                return Err(CheckError::Environment { name, value, expected });
            }
        }
    }
    let name = "MADSIM_TEST_CHECK_DETERMINISM";
    match variable(name) {
        None => {}
        Some(value) if ["1", "true"].contains(&value.as_str()) => demands.twice = true,
        // In madsim any value turns it on; "0" looks like the opposite, so it is asked back.
        Some(value) => {
            let expected = "1 (unset it to run each case once)";
            return Err(CheckError::Environment { name, value, expected });
        }
    }
    Ok(())
}
