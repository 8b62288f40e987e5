//! How small the first catch of each bug becomes: faults, runs, and wall time.

use std::time::{Duration, Instant};

use super::super::{out, smallest};
use crate::{
    bug::KnownBug,
    case::Case,
    explore::{Outcome, run_and_judge},
    judge::BrokenRule,
    shrink::Symptom,
};

/// The median small case has no more faults, or shrinking has become worse.
const FAULTS_MAX: usize = 3;

/// What shrinking made of the catches so far.
#[derive(Default)]
pub(super) struct Smallest {
    faults: Vec<usize>,
    runs: Vec<u64>,
    walls: Vec<Duration>,
}

impl Smallest {
    /// Shrinks one catch, as long as the checker that must catch the bug finds the same rule
    /// broken, and tells what is left.
    pub(super) fn add(&mut self, bug: &'static KnownBug, case: &Case) {
        let change = bug.change();
        let run = |case: &Case| -> Outcome { run_and_judge(case, Some(&change)) };
        let outcome = run(case);
        let broken: Vec<BrokenRule> =
            outcome.as_ref().map(|judged| judged.broken_rules()).unwrap_or_default();
        let Some(broken) = broken.into_iter().find(|broken| broken.checker == bug.caught_by) else {
            return;
        };
        let began = Instant::now();
        let shrunk = smallest::of_symptom(outcome, &Symptom::Broken(broken), &run);
        self.walls.push(began.elapsed());
        self.faults.push(shrunk.case().plan.faults.len());
        self.runs.push(shrunk.runs);
        out(format_args!("{:<22} smallest: {}", "", shrunk.case().sentence()));
    }

    /// The medians in one line; whether they are as small as they are to be. No catch at all is
    /// not.
    pub(super) fn verdict(mut self) -> bool {
        let (faults, runs) = (middle(&mut self.faults), middle(&mut self.runs));
        let wall = middle(&mut self.walls);
        let (Some(faults), Some(runs), Some(wall)) = (faults, runs, wall) else { return false };
        out(format_args!(
            "smallest   median of {} catches: {} faults (most {}), {} runs (most {}), {:.1} s \
             (most {:.1} s)",
            self.faults.len(),
            faults.0,
            faults.1,
            runs.0,
            runs.1,
            wall.0.as_secs_f64(),
            wall.1.as_secs_f64()
        ));
        faults.0 <= FAULTS_MAX
    }
}

/// The middle one and the greatest.
fn middle<T: Ord + Copy>(values: &mut [T]) -> Option<(T, T)> {
    values.sort_unstable();
    Some((*values.get(values.len() / 2)?, *values.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Too many faults in the middle are no success, and neither is no catch at all.
    #[test]
    fn a_large_median_is_told() {
        let of = |faults: &[usize]| Smallest {
            faults: faults.to_vec(),
            runs: vec![1; faults.len()],
            walls: vec![Duration::ZERO; faults.len()],
        };
        assert!(of(&[0, 3, 9]).verdict());
        assert!(!of(&[0, 4, 9]).verdict());
        assert!(!of(&[]).verdict());
    }
}
