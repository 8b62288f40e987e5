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
    judge::{BrokenRule, Judged},
    shrink::{Limits, Shrunk, shrink},
};

/// Shrinking one failure takes no longer, in wall time.
const SHRINK_MAX: Duration = Duration::from_secs(20);

/// The smallest case that breaks the rule that decided; none if none was broken.
pub(super) fn of(failure: &Failure, options: &ExploreOptions) -> Option<Shrunk> {
    let Failure::Judged(judged) = failure else { return None };
    of_judged(judged, &|case| options.run(case))
}

/// The smallest case that breaks the rule that decided; none if none was broken.
pub(super) fn of_judged(judged: &Judged, run: &dyn Fn(&Case) -> Outcome) -> Option<Shrunk> {
    let broken = judged.broken_rules().into_iter().next()?;
    Some(of_rule(judged, &broken, run))
}

fn of_rule(judged: &Judged, broken: &BrokenRule, run: &dyn Fn(&Case) -> Outcome) -> Shrunk {
    let began = Instant::now();
    let limits = Limits { stop: &|| began.elapsed() > SHRINK_MAX, ..Limits::default() };
    shrink(judged, broken, run, &limits)
}

/// Writes the first failure of each broken rule into a folder; without `smallest` as it is.
pub(super) fn save(
    dir: &Path,
    summary: &Summary,
    smallest: Option<&ExploreOptions>,
) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| format!("--save {}: {error}", dir.display()))?;
    let mut saved: Vec<BrokenRule> = Vec::new();
    for failure in &summary.failures {
        let Failure::Judged(judged) = failure else { continue };
        for broken in judged.broken_rules() {
            if saved.contains(&broken) {
                continue;
            }
            let small = smallest.map(|options| of_rule(judged, &broken, &|case| options.run(case)));
            let judged = small.as_ref().map_or(&**judged, |shrunk| &shrunk.judged);
            let entry = Entry::of(&judged.run.case, judged.class(), Some(broken.clone()));
            err(format_args!("{}", written(dir, &entry)?));
            saved.push(broken);
        }
    }
    Ok(())
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
