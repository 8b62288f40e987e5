//! The judge: a history goes in, verdicts come out.
//!
//! Each checker decides one property of D4 to D9 (`semantics.md`) from the truth in a history:
//! etcd's commit log, the storage's apply log, what the clients were told; never from a guard's
//! opinion. A checker is one file and one row in [`all`]. Checkers share one [`Index`] of the
//! history, built in one pass; [`judge`](fn@judge) runs them all and weighs their verdicts against
//! the assumptions.
//!
//! Pure functions over [`crate::history`]: no clock, no I/O, no randomness, so that an old history
//! can be judged again. What happened at all (so that an empty run is no pass): [`mod@reached`].

pub mod assumption;
pub mod call_deadline;
pub mod class;
mod course;
pub mod durability;
pub mod finding;
pub mod grant_validity;
pub mod index;
pub mod judge;
pub mod lease_atomicity;
pub mod lease_safety;
pub mod linearizability;
pub mod liveness;
pub mod lost_update;
pub mod no_stale_write;
pub mod reached;
pub mod release_validity;
pub mod search;
pub mod session_honesty;
pub mod session_survival;
mod spec;
pub mod tenure_kept;
pub mod token_order;
mod value;

pub use assumption::Assumption;
pub use class::{Class, Classes};
pub use finding::{Finding, Verdict, Violation};
pub use index::Index;
pub use judge::{Judgement, judge};
pub use reached::{Property, Reached, control_arm, reached};

/// When a checker may have nothing to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Never: a run that gives it nothing to judge is no pass.
    Never,
    /// In a single run, which may lack what it judges, such as a lease that ran out. A suite of
    /// many runs with every family of faults in which it judged nothing is no pass.
    InARun,
    /// In a whole suite: what it judges exists under some settings only, such as a storage that is
    /// restarted.
    InASuite,
}

/// One property that a history must have.
pub trait Checker: Sync {
    /// Its name on the command line, in reports and in the corpus.
    fn name(&self) -> &'static str;

    /// What it demands, in one sentence.
    fn help(&self) -> &'static str;

    /// The assumptions without which its verdict, even a violation, means nothing.
    fn leans_on(&self) -> &'static [Assumption];

    /// When it may have nothing to judge without making a run unknown.
    fn idle(&self) -> Idle {
        Idle::Never
    }

    /// Judges a history.
    fn check(&self, index: &Index<'_>) -> Finding;
}

/// Every checker, in the order in which reports name them.
pub fn all() -> &'static [&'static dyn Checker] {
    &[
        &assumption::Assumptions,
        &no_stale_write::NoStaleWrite,
        &grant_validity::GrantValidity,
        &release_validity::ReleaseValidity,
        &tenure_kept::TenureKept,
        &token_order::TokenOrder,
        &lost_update::LostUpdate,
        &linearizability::Linearizability,
        &durability::Durability,
        &session_honesty::SessionHonesty,
        &lease_safety::LeaseSafety,
        &lease_atomicity::LeaseAtomicity,
        &session_survival::SessionSurvival,
        &call_deadline::CallDeadline,
        &liveness::Liveness,
    ]
}

/// The checker of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Checker> {
    all().iter().copied().find(|checker| checker.name() == name)
}
