//! What a run that did not pass shows, and a smaller one must show too.

use std::fmt;

use crate::{
    checker::Verdict,
    explore::Outcome,
    judge::{BrokenRule, RunClass},
    runner::{HarnessError, RunError},
};

/// What a run shows that is no pass: what shrinking keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Symptom {
    /// It breaks a rule.
    Broken(BrokenRule),
    /// This checker cannot decide, or has nothing to judge: a client hangs, say.
    Undecided(String),
    /// There is no history: code under test panics, or nothing can go on.
    NoRun(NoRun),
}

/// An error that left no history. Two are the same if they differ only in words with digits, which
/// differ from run to run.
#[derive(Debug, Clone)]
pub struct NoRun {
    text: String,
}

impl NoRun {
    fn of(error: &RunError) -> Option<NoRun> {
        match error {
            // Neither is worth a run more: this case cannot be run, that one does not end.
            RunError::Case(_) | RunError::Harness(HarnessError::Stuck { .. }) => None,
            RunError::Harness(error) => Some(NoRun { text: error.to_string() }),
        }
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.text.split_whitespace().filter(|word| !word.contains(char::is_numeric))
    }
}

impl PartialEq for NoRun {
    fn eq(&self, other: &Self) -> bool {
        self.words().eq(other.words())
    }
}

impl Eq for NoRun {}

impl fmt::Display for NoRun {
    /// The error as it was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Symptom {
    /// What decides about this run; none if it passes, or if its case cannot be run at all.
    pub fn of(outcome: &Outcome) -> Option<Symptom> {
        let judged = match outcome {
            Ok(judged) => judged,
            Err(broken) => return NoRun::of(&broken.1).map(Symptom::NoRun),
        };
        if judged.class() == RunClass::Pass {
            return None;
        }
        match judged.broken_rules().into_iter().next() {
            Some(broken) => Some(Symptom::Broken(broken)),
            None => judged.worst().map(|finding| Symptom::Undecided(finding.checker.to_owned())),
        }
    }

    /// Whether a run shows it.
    pub fn is_in(&self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Symptom::Broken(broken), Ok(judged)) => broken.is_in(judged),
            (Symptom::Undecided(checker), Ok(judged)) => {
                let undecided =
                    |verdict: &Verdict| !matches!(verdict, Verdict::Pass | Verdict::Violation(_));
                let mut findings = judged.judgement.findings.iter();
                // A violation is another thing, and the greater one.
                judged.class() == RunClass::Unknown
                    && findings.any(|f| f.checker == checker && undecided(&f.verdict))
            }
            (Symptom::NoRun(error), Err(broken)) => NoRun::of(&broken.1).as_ref() == Some(error),
            (Symptom::Broken(_) | Symptom::Undecided(_), Err(_)) | (Symptom::NoRun(_), Ok(_)) => {
                false
            }
        }
    }

    /// The rule, if that is what it shows.
    pub fn broken(&self) -> Option<&BrokenRule> {
        match self {
            Symptom::Broken(broken) => Some(broken),
            Symptom::Undecided(_) | Symptom::NoRun(_) => None,
        }
    }

    /// The class of a run that shows it.
    pub fn class(&self) -> RunClass {
        match self {
            Symptom::Broken(_) => RunClass::Violation,
            Symptom::Undecided(_) => RunClass::Unknown,
            Symptom::NoRun(_) => RunClass::HarnessError,
        }
    }

    /// In a few words that can be a part of a name.
    pub(super) fn words(&self) -> String {
        match self {
            Symptom::Broken(BrokenRule { checker, rule }) => format!("{checker} {rule}"),
            Symptom::Undecided(checker) => format!("{checker} unknown"),
            Symptom::NoRun(_) => "no run".to_owned(),
        }
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Symptom::Broken(broken) => broken.fmt(f),
            Symptom::Undecided(checker) => write!(f, "{checker} cannot decide"),
            Symptom::NoRun(error) => write!(f, "no run: {error}"),
        }
    }
}
