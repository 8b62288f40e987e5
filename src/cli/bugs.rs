//! `leasehold bugs`: hunts known bugs and says how many seeds it took to catch each.

mod compare;
mod small;

use std::thread;

use self::small::Smallest;
use super::{BugsArguments, explore::strategy, out, usage};
use crate::{
    bug::{self, CATALOG, KnownBug},
    explore::{JOBS_MAX, Strategy},
    hunt::{Hunt, hunt},
    judge::RunClass,
};

/// The profile with every family of faults.
const ALL: &str = "all";
/// More seeds a bug and profile are refused.
const SEEDS_MAX: u64 = 1_000_000;

/// What a hunt is for.
struct Terms {
    seeds: u64,
    all_seeds: u64,
    enough: u64,
    jobs: usize,
    strategy: Strategy,
}

pub(super) fn run(arguments: &BugsArguments) -> u8 {
    let terms = match terms(arguments) {
        Ok(terms) => terms,
        Err(message) => return usage(format_args!("{message}")),
    };
    let bugs: Vec<&'static KnownBug> = match &arguments.name {
        None => CATALOG.iter().collect(),
        Some(name) => match bug::find(name) {
            Ok(bug) => vec![bug],
            Err(error) => return usage(format_args!("{error}")),
        },
    };
    if arguments.list {
        list(&bugs);
        return 0;
    }
    if arguments.compare {
        return match compare::run(&bugs, &terms) {
            Ok(()) => 0,
            Err(message) => usage(format_args!("{message}")),
        };
    }
    out(format_args!(
        "{:<22} {:<18} {:<8} {:<8} {:>7} {:>7} {:>7}",
        "bug", "caught by", "needs", "profile", "median", "95 %", "runs"
    ));
    let mut missed = Vec::new();
    let mut smallest = arguments.shrink.then(Smallest::default);
    for bug in &bugs {
        match both(bug, &terms, smallest.as_mut()) {
            Ok(true) => {}
            Ok(false) => missed.push(bug.name),
            Err(message) => return usage(format_args!("{message}")),
        }
    }
    if smallest.is_some_and(|smallest| !smallest.verdict()) {
        out(format_args!("verdict    the catches do not shrink as they should"));
        return RunClass::Violation.exit_status();
    }
    if missed.is_empty() {
        out(format_args!("verdict    all {} bugs are caught", bugs.len()));
        return 0;
    }
    out(format_args!(
        "verdict    {} of {} not caught: {}",
        missed.len(),
        bugs.len(),
        missed.join(", ")
    ));
    RunClass::Violation.exit_status()
}

fn terms(arguments: &BugsArguments) -> Result<Terms, String> {
    let jobs =
        arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    if !(1..=JOBS_MAX).contains(&jobs) {
        return Err(format!("--jobs is {jobs}, expected 1 to {JOBS_MAX}"));
    }
    for (flag, value) in [("--seeds", arguments.seeds), ("--all-seeds", arguments.all_seeds)] {
        if !(1..=SEEDS_MAX).contains(&value) {
            return Err(format!("{flag} is {value}, expected 1 to {SEEDS_MAX}"));
        }
    }
    if arguments.enough == 0 {
        return Err("--enough is 0, expected 1 or more".to_owned());
    }
    let BugsArguments { seeds, all_seeds, enough, .. } = *arguments;
    let strategy = strategy(&arguments.strategy)?;
    Ok(Terms { seeds, all_seeds, enough, jobs, strategy })
}

fn list(bugs: &[&KnownBug]) {
    for bug in bugs {
        out(format_args!("{:<22} {}", bug.name, bug.help));
        out(format_args!(
            "{:<22} needs {}, caught by {}; {}",
            "",
            bug.needs.name(),
            bug.caught_by,
            bug.source
        ));
    }
}

/// Hunts in the narrowest profile and in the one with every family; whether both caught it. The
/// first catch of the former is shrunk, if that is asked for.
fn both(
    bug: &'static KnownBug,
    terms: &Terms,
    mut smallest: Option<&mut Smallest>,
) -> Result<bool, String> {
    let mut all_caught = true;
    for (profile, seeds) in [(bug.profile, terms.seeds), (ALL, terms.all_seeds)] {
        let found = hunt(bug, (terms.strategy, profile), 0..seeds, terms.jobs, terms.enough);
        let found = found.map_err(|error| error.to_string())?;
        print(bug, profile, &found);
        if let (Some(smallest), Some((case, _))) = (smallest.take(), &found.first) {
            smallest.add(bug, case);
        }
        all_caught &= !found.caught.is_empty();
    }
    Ok(all_caught)
}

fn print(bug: &KnownBug, profile: &str, found: &Hunt) {
    let figure = |permille| {
        found.seeds_to_catch(permille).map_or_else(|| "-".to_owned(), |seeds| seeds.to_string())
    };
    out(format_args!(
        "{:<22} {:<18} {:<8} {profile:<8} {:>7} {:>7} {:>7}",
        bug.name,
        bug.caught_by,
        bug.needs.name(),
        figure(500),
        figure(950),
        found.runs
    ));
    let others: Vec<String> =
        found.others.iter().map(|(checker, runs)| format!("{checker} {runs}")).collect();
    if !others.is_empty() {
        out(format_args!("{:<22} also: {}", "", others.join(", ")));
    }
    if found.broken > 0 {
        out(format_args!("{:<22} {} runs broke", "", found.broken));
    }
    match &found.first {
        Some((case, token)) => {
            out(format_args!("{:<22} seed {}: leasehold replay {token}", "", case.seed));
        }
        None => out(format_args!(
            "{:<22} NOT CAUGHT in {} runs; its wrong code ran {} times",
            "", found.runs, found.hits
        )),
    }
}
