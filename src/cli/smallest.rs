//! The smallest case that shows a failure: found, told, and written into a corpus.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::err;
use crate::{
    case::Case,
    corpus::Entry,
    explore::{ExploreOptions, Failure, Outcome, Summary},
    shrink::{Limits, Shrunk, Symptom, shrink},
    system::OwnParts,
};

/// Shrinking one failure takes no longer, in wall time.
const SHRINK_MAX: Duration = Duration::from_secs(20);

/// The smallest case that shows the same.
pub(super) fn of(failure: &Failure, options: &ExploreOptions) -> Option<Shrunk> {
    of_outcome(failure.outcome(), &|case| options.run(case))
}

/// The smallest case that shows the same; none if this one passed.
pub(super) fn of_outcome(outcome: Outcome, run: &dyn Fn(&Case) -> Outcome) -> Option<Shrunk> {
    let symptom = Symptom::of(&outcome)?;
    Some(of_symptom(outcome, &symptom, run))
}

/// The smallest case that shows this.
pub(super) fn of_symptom(
    outcome: Outcome,
    symptom: &Symptom,
    run: &dyn Fn(&Case) -> Outcome,
) -> Shrunk {
    let began = Instant::now();
    let limits = Limits { stop: &|| began.elapsed() > SHRINK_MAX, ..Limits::default() };
    shrink(outcome, symptom, run, &limits)
}

/// Writes the first failure of each kind into a folder; without `smallest` as it is. False if one
/// could not be written, which is told; the others are.
pub(super) fn save(dir: &Path, summary: &Summary, smallest: Option<&ExploreOptions>) -> bool {
    let mut all_written = true;
    let mut saved: Vec<Symptom> = Vec::new();
    for failure in &summary.failures {
        for symptom in symptoms(failure) {
            if saved.contains(&symptom) {
                continue;
            }
            let outcome = failure.outcome();
            let small =
                smallest.map(|options| of_symptom(outcome, &symptom, &|case| options.run(case)));
            let case = small.as_ref().map_or(failure.case(), Shrunk::case);
            let entry = Entry::of(case, symptom.class(), symptom.broken().cloned(), OwnParts::NONE);
            match written(dir, &entry) {
                Ok(told) => err(format_args!("{told}")),
                Err(error) => {
                    err(format_args!("error: {error}"));
                    all_written = false;
                }
            }
            saved.push(symptom);
        }
    }
    all_written
}

/// Each rule that it broke, or else what it shows.
fn symptoms(failure: &Failure) -> Vec<Symptom> {
    let broken = match failure {
        Failure::Judged(judged) => judged.broken_rules(),
        Failure::Broken { .. } => Vec::new(),
    };
    match broken.is_empty() {
        true => Symptom::of(&failure.outcome()).into_iter().collect(),
        false => broken.into_iter().map(Symptom::Broken).collect(),
    }
}

/// Somebody may have given a file a better sentence: what is there stays.
fn written(dir: &Path, entry: &Entry) -> Result<String, String> {
    let path: PathBuf = dir.join(format!("{}.json", entry.name));
    if path.exists() {
        return Ok(format!("kept       {}: it is there already", path.display()));
    }
    match fs::write(&path, entry.to_json()) {
        Ok(()) => Ok(format!("saved      {}: {}", path.display(), entry.shows)),
        Err(error) => Err(format!("--save {}: {error}", path.display())),
    }
}
