//! Whether a failure comes again: what does not is no case to keep, and no test to paste.

use crate::{
    case::Case, cluster::quiet::quietly, explore::Outcome, judge::RunClass, shrink::Symptom,
};

/// Runs the case of an outcome once more, and says what is different, if anything is.
pub(super) fn not_again(outcome: &Outcome, run: &dyn Fn(&Case) -> Outcome) -> Option<String> {
    let symptom = Symptom::of(outcome)?;
    let case = match outcome {
        Ok(judged) => &judged.run.case,
        Err(broken) => &broken.0,
    };
    let again = quietly(|| run(case));
    let gives = match (&again, outcome) {
        (Ok(again), Ok(first)) if again.run.hash == first.run.hash => return None,
        (Err(_), Err(_)) if symptom.is_in(&again) => return None,
        (Err(broken), _) => broken.1.to_string(),
        (Ok(again), _) if again.class() == RunClass::Pass => "pass".to_owned(),
        (Ok(again), _) => {
            let finding = again.worst();
            let found = finding.map(|found| format!("{} by {}", found.verdict, found.checker));
            format!("{}, in another run", found.unwrap_or_default())
        }
    };
    Some(format!(
        "not reproducible: run again, seed {} gives {gives}\nCode under test keeps state outside \
         of the run (a static, say), reads a clock, or iterates a hash map: make each run start \
         anew. check_determinism() finds such a run before it is judged. There is no smallest \
         case, no test and no file of what does not come again",
        case.seed
    ))
}
