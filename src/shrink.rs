//! Makes a case that does not pass smaller, as long as it still shows the same: a rule broken, a
//! checker that cannot decide, a panic.
//!
//! First the faults by delta debugging, then each by a simpler one and all towards the beginning,
//! then how many holdings a client attempts, then the numbers of each fault towards small round
//! values, then the clients; round after round until nothing gets smaller. It works on the case and
//! never on the random streams. It relies on a function of the caller's that runs and judges a
//! case, so that own storages shrink as well; it knows no clock: the caller's limits say when to
//! stop. The same case and function give the same result.

mod fault;
mod search;
mod size;
mod source;
mod symptom;

pub use self::symptom::{NoRun, Symptom};
use crate::{case::Case, explore::Outcome, judge::Judged};

/// After so many runs shrinking stops by default, with the smallest case so far.
pub const RUNS_MAX: u64 = 600;
/// What does not settle in so many rounds goes round in circles.
const ROUNDS_MAX: u32 = 5;

/// How far shrinking may go.
pub struct Limits<'a> {
    /// The most runs.
    pub runs_max: u64,
    /// Asked before each run: true ends it, with the smallest case so far. A wall clock goes here.
    pub stop: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").field("runs_max", &self.runs_max).finish_non_exhaustive()
    }
}

impl Default for Limits<'_> {
    /// [`RUNS_MAX`] runs, however long they take.
    fn default() -> Self {
        Limits { runs_max: RUNS_MAX, stop: &|| false }
    }
}

/// The smallest case that was found.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// What it still shows.
    pub symptom: Symptom,
    /// Its run, or why there is none.
    pub outcome: Outcome,
    /// What it was made from.
    pub original: Case,
    /// How many runs that took.
    pub runs: u64,
    /// Whether nothing was left to try; otherwise a limit was met.
    pub finished: bool,
}

impl Shrunk {
    /// The small case.
    pub fn case(&self) -> &Case {
        case_of(&self.outcome)
    }

    /// Its run with the verdict, if there is one.
    pub fn judged(&self) -> Option<&Judged> {
        self.outcome.as_ref().ok()
    }

    /// From what to what, in how many runs: one line.
    pub fn summary(&self) -> String {
        let (from, to) = (&self.original, self.case());
        let holdings = |case: &Case| match case.options.holdings {
            0 => "no limit".to_owned(),
            n => n.to_string(),
        };
        format!(
            "{} faults to {}, holdings of a client from {} to {}, {} clients to {}, in {} runs{}",
            from.plan.faults.len(),
            to.plan.faults.len(),
            holdings(from),
            holdings(to),
            from.options.clients,
            to.options.clients,
            self.runs,
            if self.finished { "" } else { ", when a limit was met" }
        )
    }
}

/// Shrinks the case of a run that shows this, by running smaller ones.
///
/// The result shows the same. It is the case itself if nothing smaller does, or if the run did not
/// show it.
pub fn shrink(
    outcome: Outcome,
    symptom: &Symptom,
    run: &dyn Fn(&Case) -> Outcome,
    limits: &Limits<'_>,
) -> Shrunk {
    let original = case_of(&outcome).clone();
    let mut search = search::Search::new(outcome, symptom, run, limits);
    for round in 0..ROUNDS_MAX {
        let before = search.case().clone();
        fault::fewer(&mut search);
        if round == 0 {
            fault::fewest_of(&mut search, &original.plan.faults);
        }
        fault::simpler(&mut search);
        fault::earlier(&mut search);
        size::holdings(&mut search);
        fault::milder(&mut search);
        size::clients(&mut search);
        size::usual(&mut search);
        if *search.case() == before {
            break;
        }
    }
    search.finish(original)
}

/// What was run.
fn case_of(outcome: &Outcome) -> &Case {
    match outcome {
        Ok(judged) => &judged.run.case,
        Err(broken) => &broken.0,
    }
}

#[cfg(test)]
mod tests;
