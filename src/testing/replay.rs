//! One case again: what a pasted test calls.

use super::{LockUnderTest, StorageUnderTest, after, failure, own_lock, own_storage};
use crate::{
    case::{Case, ReplayToken},
    corpus,
    explore::{Outcome, run_and_judge},
    judge::{BrokenRule, Judged, RunClass},
    system::Change,
};

/// A case to be run again.
#[derive(Clone)]
pub struct CaseCheck {
    case: Case,
    change: Option<Change>,
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
/// # Panics
/// If the text is neither; what is wrong with it is said.
#[track_caller]
pub fn replay_case(text: &str) -> CaseCheck {
    let case = if text.trim_start().starts_with('{') {
        corpus::read_case(text).map(|(case, _)| case).map_err(|error| error.to_string())
    } else {
        ReplayToken::decode(text).map(|token| token.case).map_err(|error| error.to_string())
    };
    match case {
        Ok(case) => CaseCheck { case, change: None },
        Err(error) => panic!("{error}"),
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

    /// Runs it and gives its run with the verdict, or why there is none.
    pub fn run(&self) -> Outcome {
        run_and_judge(&self.case, self.change.as_ref())
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
    /// If the rule is not broken.
    #[track_caller]
    pub fn assert_violates(&self, checker: &str, rule: &str) -> Judged {
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
