//! The sum of many runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{Coverage, LockPhase, Outcome, Strategy};
use crate::{
    case::{Case, CaseOptions, ReplayToken},
    checker::{self, Checker, Classes, Idle, Property, Reached},
    fault::{CATALOG, family_of, profile},
    history::hash::RunHash,
    judge::{FaultCount, Judged, RunClass},
    runner::RunError,
    seed::Seed,
};

/// From so many runs on, what was not reached counts against the exploration.
pub const REACHED_FROM_RUNS: u64 = 200;
/// What an exploration with faults must have reached: the dangerous things, or its pass is idle.
pub const EXPECTED: [Property; 8] = [
    Property::Overlap,
    Property::StaleRefusedWrite,
    Property::StaleRefusedByReadOnly,
    Property::ExpiryWhileHeld,
    Property::HandOverByExpiry,
    Property::KeepAliveLostToCut,
    Property::PauseBeforeWrite,
    Property::OverlapBySuspend,
];
/// The families that bring a property about: it is expected of a profile with one of them.
fn brought_by(property: Property) -> &'static [&'static str] {
    match property {
        Property::KeepAliveLostToCut => &["cut"],
        Property::PauseBeforeWrite | Property::StaleRefusedByReadOnly => &["point-pause"],
        Property::OverlapBySuspend => &["suspend"],
        Property::HandOverByExpiry => &["pause", "suspend", "point-pause", "cut", "kill"],
        _ => &["pause", "suspend", "point-pause"],
    }
}

/// More failures than this are counted and not kept.
const FAILURES_KEPT: usize = 100;

/// A run that did not pass.
#[derive(Debug, Clone)]
pub enum Failure {
    /// It was judged; the history is there.
    Judged(Box<Judged>),
    /// It gave no history.
    Broken {
        /// What was run.
        case: Box<Case>,
        /// Why there is none.
        error: RunError,
    },
}

impl From<Outcome> for Failure {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(judged) => Failure::Judged(Box::new(judged)),
            Err(broken) => {
                let (case, error) = *broken;
                Failure::Broken { case: Box::new(case), error }
            }
        }
    }
}

impl Failure {
    /// The case that failed.
    pub fn case(&self) -> &Case {
        match self {
            Failure::Judged(judged) => &judged.run.case,
            Failure::Broken { case, .. } => case,
        }
    }

    /// The run as it came out.
    pub fn outcome(&self) -> Outcome {
        match self {
            Failure::Judged(judged) => Ok((**judged).clone()),
            Failure::Broken { case, error } => Err(Box::new(((**case).clone(), error.clone()))),
        }
    }
}

/// A run that did not pass, in a few words: what the results of an exploration keep of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its seed.
    pub seed: u64,
    /// Its class.
    pub class: RunClass,
    /// The checker that decided; none if it gave no history.
    pub checker: Option<String>,
    /// The broken rule; none if it broke none.
    pub rule: Option<String>,
    /// What was said.
    pub message: String,
    /// The token that replays it; none if it gave no history.
    pub replay: Option<String>,
}

impl Failed {
    fn of(failure: &Failure) -> Failed {
        let seed = failure.case().seed.0;
        match failure {
            Failure::Judged(judged) => {
                let worst = judged.worst();
                let violation = worst.and_then(|finding| finding.verdict.violation());
                Failed {
                    seed,
                    class: judged.class(),
                    checker: worst.map(|finding| finding.checker.to_owned()),
                    rule: violation.map(|violation| violation.rule.to_owned()),
                    message: worst.map_or_else(String::new, |f| f.verdict.to_string()),
                    replay: Some(replay_token(judged)),
                }
            }
            Failure::Broken { error, .. } => {
                let (class, message) = (RunClass::HarnessError, error.to_string());
                Failed { seed, class, checker: None, rule: None, message, replay: None }
            }
        }
    }
}

/// The sum of many runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// The scenario.
    pub scenario: String,
    /// Guard, token, clients.
    pub options: CaseOptions,
    /// How the plans were found.
    #[serde(default)]
    pub strategy: Strategy,
    /// Runs that ended, well or not.
    pub runs: u64,
    /// Simulated time of all runs.
    pub simulated: Duration,
    /// Requests that etcd and the storage answered.
    pub requests: u64,
    /// History events.
    pub events: u64,
    /// Write classes.
    pub classes: Classes,
    /// Properties reached, by how often.
    pub reached: Reached,
    /// In how many runs each property was reached.
    pub reached_runs: BTreeMap<Property, u64>,
    /// Faults by family.
    pub faults: BTreeMap<String, FaultCount>,
    /// In which phase of a client's lock they began.
    pub coverage: Coverage,
    /// How many runs each checker found a violation in, and the first seed.
    pub caught: BTreeMap<String, (u64, u64)>,
    /// How much each checker has judged.
    pub judged: BTreeMap<String, u64>,
    /// Runs that broke.
    pub harness_errors: u64,
    /// Runs without an answer.
    pub unknown: u64,
    /// Runs that violated a rule.
    pub violations: u64,
    /// The first runs that did not pass, and the first that broke each rule, in the order of their
    /// seeds.
    #[serde(skip)]
    pub failures: Vec<Failure>,
    /// The run that was added last, if it did not pass.
    #[serde(skip)]
    pub last_failed: Option<Failed>,
    /// The seed and run hash of the run that was added last, if it was judged.
    #[serde(skip)]
    pub last_hash: Option<(Seed, RunHash)>,
    /// Whether the storage was the caller's own: then a token alone does not replay a run.
    pub own_parts: bool,
    /// Whether somebody stopped it early.
    pub interrupted: bool,
    /// Whether the scenario is meant to reach the properties (it has faults).
    pub has_faults: bool,
}

impl Summary {
    pub(super) fn new(scenario: String, options: CaseOptions, has_faults: bool) -> Self {
        Summary {
            scenario,
            options,
            strategy: Strategy::default(),
            runs: 0,
            simulated: Duration::ZERO,
            requests: 0,
            events: 0,
            classes: Classes::default(),
            reached: Reached::default(),
            reached_runs: BTreeMap::new(),
            faults: CATALOG.iter().map(|row| (row.name.into(), FaultCount::default())).collect(),
            coverage: Coverage::default(),
            caught: BTreeMap::new(),
            judged: BTreeMap::new(),
            harness_errors: 0,
            unknown: 0,
            violations: 0,
            failures: Vec::new(),
            last_failed: None,
            last_hash: None,
            own_parts: false,
            interrupted: false,
            has_faults,
        }
    }

    pub(super) fn add(&mut self, outcome: Outcome) {
        self.runs += 1;
        self.last_hash = outcome.as_ref().ok().map(|j| (j.run.case.seed, j.run.hash));
        let failure = match outcome {
            Ok(judged) => self.add_judged(judged),
            Err(broken) => {
                self.harness_errors += 1;
                Some(Failure::from(Err(broken)))
            }
        };
        self.last_failed = failure.as_ref().map(Failed::of);
        if self.failures.len() < FAILURES_KEPT || failure.as_ref().is_some_and(|f| self.is_new(f)) {
            self.failures.extend(failure);
        }
    }

    /// Whether a failure broke a rule that none of the kept ones broke.
    fn is_new(&self, failure: &Failure) -> bool {
        let broken = |failure: &Failure| match failure {
            Failure::Judged(judged) => judged.broken_rules(),
            Failure::Broken { .. } => Vec::new(),
        };
        let known: BTreeSet<_> = self.failures.iter().flat_map(broken).collect();
        broken(failure).iter().any(|rule| !known.contains(rule))
    }

    /// Adds what other runs of the same exploration gave. Only the sums: kept failures stay.
    pub(super) fn absorb(&mut self, other: &Summary) {
        self.runs += other.runs;
        self.simulated += other.simulated;
        self.requests += other.requests;
        self.events += other.events;
        self.classes += other.classes;
        self.reached += &other.reached;
        for (property, runs) in &other.reached_runs {
            *self.reached_runs.entry(*property).or_default() += runs;
        }
        for (family, count) in &other.faults {
            *self.faults.entry(family.clone()).or_default() += *count;
        }
        for (checker, (runs, first)) in &other.caught {
            let caught = self.caught.entry(checker.clone()).or_insert((0, *first));
            *caught = (caught.0 + runs, caught.1.min(*first));
        }
        self.coverage += &other.coverage;
        for (checker, judged) in &other.judged {
            *self.judged.entry(checker.clone()).or_default() += judged;
        }
        self.harness_errors += other.harness_errors;
        self.unknown += other.unknown;
        self.violations += other.violations;
        self.interrupted |= other.interrupted;
    }

    fn add_judged(&mut self, judged: Judged) -> Option<Failure> {
        self.simulated += judged.run.simulated;
        self.requests += judged.run.requests;
        self.events += judged.run.history.events.len() as u64;
        self.classes += judged.judgement.classes;
        self.reached += &judged.judgement.reached;
        for (property, count) in judged.judgement.reached.rows() {
            *self.reached_runs.entry(property).or_default() += u64::from(count > 0);
        }
        for (family, count) in &judged.faults {
            *self.faults.entry((*family).to_owned()).or_default() += *count;
        }
        for finding in &judged.judgement.findings {
            *self.judged.entry(finding.checker.to_owned()).or_default() += finding.judged;
        }
        let plan = (0..).zip(&judged.run.case.plan.faults);
        let families = plan.map(|(index, fault)| (index, family_of(&fault.kind).name)).collect();
        self.coverage += &Coverage::of(&judged.run.history, &families);
        let seed = judged.run.case.seed.0;
        for checker in judged.violated() {
            self.caught.entry(checker.to_owned()).or_insert((0, seed)).0 += 1;
        }
        match judged.class() {
            RunClass::Pass => None,
            RunClass::Violation => {
                self.violations += 1;
                Some(Failure::Judged(Box::new(judged)))
            }
            RunClass::Unknown | RunClass::HarnessError => {
                self.unknown += 1;
                Some(Failure::Judged(Box::new(judged)))
            }
        }
    }

    /// Cells of the coverage matrix that the profile should have reached and did not.
    pub fn not_covered(&self) -> Vec<(&'static str, LockPhase)> {
        let profile = profile::find(&self.options.profile);
        let families = profile.map(|profile| profile.families()).unwrap_or_default();
        self.coverage.missing(families.iter().map(|(family, _)| family.name))
    }

    /// How many runs did not pass.
    pub fn failures_total(&self) -> u64 {
        self.harness_errors + self.unknown + self.violations
    }

    /// Whether what was reached counts: with faults, enough runs, somebody to contend with, and
    /// leases and operations of all kinds.
    pub fn judges_reached(&self) -> bool {
        let CaseOptions { clients, ttl_s, readers, .. } = self.options;
        let is_usual = clients > 1 && ttl_s == 0 && readers == 0;
        self.has_faults && self.runs >= REACHED_FROM_RUNS && is_usual
    }

    /// What this exploration is to reach: as far as its profile has the faults for it.
    pub fn expected(&self) -> Vec<Property> {
        let profile = profile::find(&self.options.profile);
        let brought = |property: &Property| {
            let families = brought_by(*property);
            profile.is_some_and(|profile| families.iter().any(|family| profile.has(family)))
        };
        EXPECTED.into_iter().filter(brought).collect()
    }

    /// Properties that enough runs should have reached and none did; none below
    /// [`REACHED_FROM_RUNS`] runs.
    pub fn not_reached(&self) -> Vec<Property> {
        if !self.judges_reached() {
            return Vec::new();
        }
        self.expected().into_iter().filter(|property| !self.reached.contains(*property)).collect()
    }

    /// Checkers that had nothing to judge in all of enough runs, although a suite with every family
    /// of faults must have it.
    pub fn idle(&self) -> Vec<&'static str> {
        if !self.judges_reached() || self.options.profile != "all" {
            return Vec::new();
        }
        let idle = |checker: &&&dyn Checker| {
            checker.idle() != Idle::InASuite
                && self.judged.get(checker.name()).is_none_or(|n| *n == 0)
        };
        checker::all().iter().filter(idle).map(|checker| checker.name()).collect()
    }

    /// The class of the exploration: the worst of its runs. An exploration that ran nothing, or did
    /// not reach what it should, is no pass.
    pub fn class(&self) -> RunClass {
        let mut class = RunClass::Pass;
        let unreached = !self.not_reached().is_empty() || !self.idle().is_empty();
        if self.runs == 0 || unreached || self.unknown > 0 {
            class = class.worse(RunClass::Unknown);
        }
        if self.violations > 0 {
            class = class.worse(RunClass::Violation);
        }
        if self.harness_errors > 0 {
            class = class.worse(RunClass::HarnessError);
        }
        class
    }

    /// The first failure of the worst class.
    pub fn first_failure(&self) -> Option<&Failure> {
        let class_of = |failure: &&Failure| match failure {
            Failure::Judged(judged) => judged.class(),
            Failure::Broken { .. } => RunClass::HarnessError,
        };
        let worst = self.class();
        self.failures.iter().find(|failure| class_of(failure) == worst).or(self.failures.first())
    }
}

/// The token that replays a run.
pub fn replay_token(judged: &Judged) -> String {
    let token = ReplayToken {
        crate_version: env!("CARGO_PKG_VERSION").to_owned(),
        case: judged.run.case.clone(),
        run_hash: judged.run.hash,
    };
    token.encode()
}
