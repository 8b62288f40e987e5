//! The judge: pure functions from a history to a verdict.
//!
//! Checkers read the history alone: what clients saw, etcd's commit log, the storage's apply log.
//! They never ask a guard for its opinion, and know nothing of the cluster, so an old history can
//! be judged again. To add one: a file here and a row in [`CATALOG`], with golden histories, good
//! and bad, under `sim-tests/histories/`.
//!
//! A verdict is one of four, and only [`Verdict::Pass`] is green: a checker that judged nothing is
//! [`Verdict::NotRun`].

mod assumptions;
mod classes;
mod control;
mod grant;
mod honesty;
mod index;
mod lost_update;
mod reached;
mod stale;
mod token_order;

pub use classes::{Class, ClassedWrite, Classes, classes, classify};
pub use control::control_arm;
pub use index::{Holding, Incarnation, Index, Op, Row, Tenure};
pub use reached::{FaultInfo, PROPERTIES, Reached, reached};

/// What a checker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rule held wherever it applied, and it applied somewhere.
    Pass,
    /// The rule was broken.
    Violation(Violation),
    /// The history does not allow an answer, and why.
    Unknown(String),
    /// There was nothing to judge, and what was missing.
    NotRun(String),
}

/// A broken rule, with the least set of events that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What happened, in one sentence.
    pub message: String,
    /// The events that show it, by `seq`, in order.
    pub events: Vec<u64>,
}

/// A checker's verdict on one history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The checker.
    pub checker: &'static str,
    /// Its verdict.
    pub verdict: Verdict,
    /// How many things it judged.
    pub judged: u64,
}

/// A rule that histories must keep.
pub struct Checker {
    /// Its name.
    pub name: &'static str,
    /// The rule, in one line.
    pub help: &'static str,
    /// Gives the number of things judged and the first violation.
    check: fn(&Index<'_>) -> (u64, Result<(), Verdict>),
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All checkers. Assumptions come first: a verdict means little if they fail.
pub static CATALOG: [Checker; 6] = [
    assumptions::ASSUMPTIONS,
    stale::NO_STALE_WRITE,
    grant::GRANT_VALIDITY,
    token_order::TOKEN_ORDER,
    lost_update::LOST_UPDATE,
    honesty::SESSION_HONESTY,
];

/// The checker of this name.
pub fn find(name: &str) -> Option<&'static Checker> {
    CATALOG.iter().find(|checker| checker.name == name)
}

impl Checker {
    /// Judges a history.
    pub fn judge(&self, index: &Index<'_>) -> Finding {
        let (judged, result) = (self.check)(index);
        let verdict = match result {
            Err(verdict) => verdict,
            Ok(()) if judged == 0 => Verdict::NotRun("nothing to judge".to_owned()),
            Ok(()) => Verdict::Pass,
        };
        Finding { checker: self.name, verdict, judged }
    }
}

/// A violation shown by these events; equal ones are named once.
fn violation(message: String, events: impl IntoIterator<Item = u64>) -> Verdict {
    let mut events: Vec<u64> = events.into_iter().collect();
    events.sort_unstable();
    events.dedup();
    Verdict::Violation(Violation { message, events })
}
