//! The smallest case so far, and the one way to put another in its place.

use std::collections::BTreeSet;

use super::{Limits, Shrunk, Symptom, case_of};
use crate::{case::Case, cluster::quiet::quietly, explore::Outcome, plan::Fault};

pub(super) struct Search<'a> {
    best: Outcome,
    symptom: &'a Symptom,
    run: &'a dyn Fn(&Case) -> Outcome,
    limits: &'a Limits<'a>,
    runs: u64,
    /// What was run already, as text; a second run would say the same.
    tried: BTreeSet<String>,
    limited: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        best: Outcome,
        symptom: &'a Symptom,
        run: &'a dyn Fn(&Case) -> Outcome,
        limits: &'a Limits<'a>,
    ) -> Self {
        let tried = BTreeSet::from([case_of(&best).to_json()]);
        Search { best, symptom, run, limits, runs: 0, tried, limited: false }
    }

    /// The smallest case so far.
    pub(super) fn case(&self) -> &Case {
        case_of(&self.best)
    }

    /// The faults of the smallest case so far.
    pub(super) fn faults(&self) -> &[Fault] {
        &self.case().plan.faults
    }

    /// Runs a case, and keeps it if it shows the symptom. A case that cannot be run does not.
    pub(super) fn keeps(&mut self, case: Case) -> bool {
        if self.limited || !self.tried.insert(case.to_json()) {
            return false;
        }
        if self.runs >= self.limits.runs_max || (self.limits.stop)() {
            self.limited = true;
            return false;
        }
        self.runs += 1;
        let outcome = quietly(|| (self.run)(&case));
        let shows = self.symptom.is_in(&outcome);
        if shows {
            self.best = outcome;
        }
        shows
    }

    /// The same with other faults, which are put in the order of their start.
    pub(super) fn keeps_faults(&mut self, faults: Vec<Fault>) -> bool {
        let mut case = self.case().clone();
        case.plan.faults = faults;
        case.plan.faults.sort_by_key(|fault| fault.start_ms);
        self.keeps(case)
    }

    /// Tries rising candidates by halving: if one that shows the symptom is followed by none
    /// that does not, the first of them is kept.
    pub(super) fn keeps_least<T>(
        &mut self,
        candidates: &[T],
        change: impl Fn(&Case, &T) -> Case,
    ) -> bool {
        let start = self.case().clone();
        let (mut low, mut high) = (0, candidates.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.keeps(change(&start, &candidates[middle])) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        *self.case() != start
    }

    pub(super) fn finish(self, original: Case) -> Shrunk {
        Shrunk {
            symptom: self.symptom.clone(),
            outcome: self.best,
            original,
            runs: self.runs,
            finished: !self.limited,
        }
    }
}
