//! `leasehold merge --results`: the shares of an exploration, joined.
//!
//! The printout is that of `explore` without wall time. The first failure is run again for its
//! timeline: the same version gives the same run. Seeds that nobody ran are named, and then there
//! is no pass.

use std::path::PathBuf;

use super::{USAGE, err, explore, failure, merge::read, smallest};
use crate::{
    case::ReplayToken,
    explore::{Failure, Summary, results::Results, run_and_judge},
    scenario,
    seed::Seed,
};

/// Joins the results in these files, prints the sum and the verdict, and gives the exit status.
pub(super) fn join(files: &[PathBuf]) -> u8 {
    let joined = match joined(files) {
        Ok(joined) => joined,
        Err(message) => {
            err(format_args!("error: {message}"));
            return USAGE;
        }
    };
    let summary = joined.summary();
    explore::print(summary, &joined.seeds(), None);
    if let Some(failed) = joined.first_failed() {
        let failure = again(summary, failed.seed, failed.replay.as_deref());
        if let Some(failure) = failure {
            let run = |case: &_| run_and_judge(case, None);
            let shrunk = smallest::of_outcome(failure.outcome(), &run);
            failure::print(&failure, shrunk.as_ref());
        }
    }
    explore::print_verdict(summary, &joined.missing());
    joined.class().exit_status()
}

fn joined(files: &[PathBuf]) -> Result<Results, String> {
    let mut parts = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let results = Results::decode(&read(file)?).map_err(|error| format!("{name}: {error}"))?;
        parts.push((name, results));
    }
    let joined = Results::join(parts).map_err(|error| error.to_string())?;
    joined.ok_or_else(|| "no results: name the files that `explore --json` wrote".to_owned())
}

/// The failure of this seed; none if its case cannot be told any more.
fn again(summary: &Summary, seed: u64, replay: Option<&str>) -> Option<Failure> {
    let case = match replay {
        Some(token) => ReplayToken::decode(token).ok()?.case,
        None => {
            let scenario = scenario::find(&summary.scenario).ok()?;
            summary.strategy.case(scenario, Seed(seed), summary.options.clone(), None)
        }
    };
    Some(run_and_judge(&case, None).into())
}
