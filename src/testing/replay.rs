//! One case again: what a pasted test calls.

use std::time::Duration;

use super::{
    LockUnderTest, StorageUnderTest, after, again::not_again, failure, known_checker, own_lock,
    own_storage,
};
use crate::{
    case::{Case, ReplayToken},
    corpus::{self, Entry},
    explore::{Demands, Outcome, run_and_judge},
    judge::{BrokenRule, Judged, RunClass},
    shrink::{Shrunk, Symptom},
    system::{Change, OwnParts},
};

/// A case to be run again.
#[derive(Clone)]
pub struct CaseCheck {
    case: Case,
    change: Option<Change>,
    /// The own parts that it needs.
    own: OwnParts,
    demands: Demands,
}

impl std::fmt::Debug for CaseCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaseCheck").field("case", &self.case).finish_non_exhaustive()
    }
}

/// The case of a JSON text (as a failure prints it, or a file of a corpus) or of a replay token.
///
/// ```
/// # use leasehold::{case::CaseOptions, scenario, seed::Seed};
/// # let json = scenario::CATALOG[0].case(Seed(5), CaseOptions::default()).to_json();
/// leasehold::testing::replay_case(&json).assert_passes();
/// ```
///
/// A case of a storage or a lock of your own needs those: give them before it is run.
///
/// # Panics
/// If the text is neither; what is wrong with it is said.
#[track_caller]
pub fn replay_case(text: &str) -> CaseCheck {
    let case = if text.trim_start().starts_with('{') {
        let own = |entry: Option<Entry>| entry.map_or(OwnParts::NONE, |entry| entry.own);
        let read = corpus::read_case(text).map(|(case, entry)| (case, own(entry)));
        read.map_err(|error| error.to_string())
    } else {
        let token = ReplayToken::decode(text).map(|token| (token.case, OwnParts::NONE));
        token.map_err(|error| error.to_string())
    };
    match case {
        Ok((case, own)) => CaseCheck { own, ..check_case(&case) },
        Err(error) => panic!("{error}"),
    }
}

/// A case to be run: one that a strategy drew, or that you made by hand.
///
/// ```
/// use leasehold::{case::CaseOptions, scenario, seed::Seed, testing::check_case};
/// let case = scenario::CATALOG[0].case(Seed(5), CaseOptions::default());
/// check_case(&case).assert_passes();
/// ```
pub fn check_case(case: &Case) -> CaseCheck {
    let (own, demands) = (OwnParts::NONE, Demands::default());
    CaseCheck { case: case.clone(), change: None, own, demands }
}

/// Why a case does not pass, with the same words as a failing assertion, and the test to paste.
///
/// It is an error, so that `?` does the rest in a property test.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct CaseFailure {
    text: String,
    class: RunClass,
    broken: Option<BrokenRule>,
}

impl CaseFailure {
    fn of(outcome: Outcome, own: OwnParts, run: &dyn Fn(&Case) -> Outcome) -> Self {
        let (mut text, class, original) = match &outcome {
            Ok(judged) => (failure::judged_text(judged), judged.class(), judged.run.case.clone()),
            Err(broken) => {
                let text = format!("seed {}: {}", broken.0.seed, broken.1);
                (text, RunClass::HarnessError, broken.0.clone())
            }
        };
        let symptom = Symptom::of(&outcome);
        let broken = symptom.as_ref().and_then(|symptom| symptom.broken().cloned());
        if let Some(why) = not_again(&outcome, run) {
            text += &format!("\n{why}");
        } else if let Some(symptom) = symptom {
            let shrunk = Shrunk { symptom, outcome, original, runs: 0, finished: true };
            text += &format!("\nas a test:\n\n{}", shrunk.test_source(own));
        }
        CaseFailure { text, class, broken }
    }

    /// The class of the run.
    pub fn class(&self) -> RunClass {
        self.class
    }

    /// The rule that it broke first, and the checker that says so; none if it broke none.
    pub fn broken(&self) -> Option<&BrokenRule> {
        self.broken.as_ref()
    }
}

impl CaseCheck {
    /// On a storage of your own, made anew for each run.
    pub fn storage<S: StorageUnderTest>(
        mut self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.change = Some(after(self.change.take(), own_storage(make)));
        self
    }

    /// With a lock recipe of your own.
    pub fn lock<L: LockUnderTest>(mut self) -> Self {
        self.change = Some(after(self.change.take(), own_lock::<L>()));
        self
    }

    /// A run that takes longer, in simulated time, is a harness error.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.demands.time_limit = Some(limit);
        self
    }

    /// Runs it twice: two different runs are a harness error.
    pub fn check_determinism(mut self) -> Self {
        self.demands.twice = true;
        self
    }

    /// Runs it and gives its run with the verdict, or why there is none.
    ///
    /// # Panics
    /// If it is a case of a storage or a lock of your own, which was not given.
    #[track_caller]
    pub fn run(&self) -> Outcome {
        let missing = self.own.without(OwnParts::of(self.change.as_ref()));
        assert!(
            !missing.any(),
            "this is a case of a {} of your own: give it with replay_case(…){}",
            missing.names().join(" and "),
            missing.calls()
        );
        let run = |case: &Case| run_and_judge(case, self.change.as_ref());
        self.demands.hold(&self.case, &run)
    }

    /// Runs it and gives an error unless it passes: for a property test, where a panic would print
    /// its message for each of the many cases that shrinking tries.
    ///
    /// # Errors
    /// With checker, plan and timeline, if it does not pass.
    pub fn passes(&self) -> Result<Judged, CaseFailure> {
        match self.run() {
            Ok(judged) if judged.class() == RunClass::Pass => Ok(judged),
            outcome => {
                let own = OwnParts::of(self.change.as_ref());
                Err(CaseFailure::of(outcome, own, &|_| self.run()))
            }
        }
    }

    /// Runs it and panics unless it passes.
    ///
    /// # Panics
    /// With checker, plan and timeline, if it does not pass.
    #[track_caller]
    pub fn assert_passes(&self) -> Judged {
        match self.run() {
            Ok(judged) if judged.class() == RunClass::Pass => judged,
            Ok(judged) => panic!("{}", failure::judged_text(&judged)),
            Err(broken) => panic!("seed {}: {}", broken.0.seed, broken.1),
        }
    }

    /// Runs it and panics unless this checker finds this rule broken: for a scheme that is wrong,
    /// and is to stay caught.
    ///
    /// # Panics
    /// If the rule is not broken, or if there is no such checker.
    #[track_caller]
    pub fn assert_violates(&self, checker: &str, rule: &str) -> Judged {
        known_checker(checker);
        let broken = BrokenRule { checker: checker.to_owned(), rule: rule.to_owned() };
        match self.run() {
            Ok(judged) if broken.is_in(&judged) => judged,
            Ok(judged) => {
                let found = judged.broken_rules();
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                let (class, case) = (judged.class().name(), &self.case);
                panic!(
                    "{broken} is not broken: {class} {found:?}, by {}\nIf the scheme was mended, \
                     use assert_passes() from now on",
                    case.sentence()
                )
            }
            Err(error) => panic!("seed {}: {}", error.0.seed, error.1),
        }
    }
}
