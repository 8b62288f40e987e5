//! `leasehold explore`: many seeds, one summary, one verdict.

use std::{
    ops::{Range, RangeInclusive},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use super::{ExploreArguments, failure, out, pages, progress::Progress, report, smallest, usage};
use crate::{
    case::CaseOptions,
    checker::Property,
    explore::{
        Demands, ExploreOptions, HARNESS_ERRORS_MAX, JOBS_MAX, LockPhase, Strategy, Summary,
        explore,
        results::{Results, failed_line},
        unreachable,
    },
    judge::RunClass,
    scenario::{CLIENTS_MAX, READERS_MAX, TTL_S_MAX},
};

/// More seeds in one exploration are refused.
const SEEDS_MAX: u64 = 1_000_000_000;
/// From so many runs on the rule of three bounds the share of seeds that fail.
const BOUND_FROM_RUNS: u64 = 30;
/// The exit status after Ctrl-C, as shells give it.
const INTERRUPTED: u8 = 130;

pub(super) fn run(arguments: &ExploreArguments) -> u8 {
    let options = match options(arguments) {
        Ok(options) => options,
        Err(message) => return usage(format_args!("{message}")),
    };
    let prepared = report::prepare("--report", arguments.report.as_ref())
        .and_then(|()| report::prepare("--save", arguments.save.as_ref()));
    if let Err(message) = prepared {
        return usage(format_args!("{message}"));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    // Without a handler Ctrl-C simply ends the program: there is nothing to lose.
    let _ = ctrlc::set_handler(move || told.store(true, Ordering::Relaxed));
    let mut progress = Progress::new(options.shard.len(&options.seeds));
    let began = Instant::now();
    let result = explore(&options, &stop, |summary| {
        if arguments.json
            && let Some(last) = &summary.last_failed
        {
            out(format_args!("{}", failed_line(last)));
        }
        if let Some((seed, hash)) = summary.last_hash.filter(|_| arguments.hashes) {
            out(format_args!("hash {seed} {hash}"));
        }
        progress.tell(summary);
    });
    let wall = began.elapsed();
    progress.finish();
    let mut summary = match result {
        Ok(summary) => summary,
        Err(error) => return usage(format_args!("{error}")),
    };
    // The results are sums: the histories of the failures are not copied, and their lines are out.
    let failures = std::mem::take(&mut summary.failures);
    let results = Results::new(summary.clone(), Vec::new(), &options.seeds, options.shard);
    summary.failures = failures;
    if arguments.json {
        out(format_args!("{}", results.summary_line()));
    } else {
        print(&summary, &results.seeds(), Some((wall.as_secs_f64(), options.jobs)));
    }
    if arguments.coverage && summary.has_faults && !arguments.json {
        print_coverage(&summary);
    }
    let smallest = (!arguments.no_shrink).then_some(&options);
    if let Some(failure) = summary.first_failure().filter(|_| !arguments.json) {
        let shrunk = smallest.and_then(|options| smallest::of(failure, options));
        failure::print(failure, shrunk.as_ref());
    }
    let saved = arguments.save.as_ref();
    let saved = saved.is_none_or(|dir| smallest::save(dir, &summary, smallest));
    let written =
        arguments.report.as_ref().is_none_or(|dir| pages::write_all(dir, &summary, arguments.json));
    let mut class = summary.class();
    if !saved || !written {
        class = class.worse(RunClass::HarnessError);
    }
    if !arguments.json {
        print_verdict(&summary, &[]);
    }
    if summary.interrupted { INTERRUPTED } else { class.exit_status() }
}

fn options(arguments: &ExploreArguments) -> Result<ExploreOptions, String> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or_else(cores);
    if !(1..=JOBS_MAX).contains(&jobs) {
        return Err(format!("--jobs is {jobs}, expected 1 to {JOBS_MAX}"));
    }
    Ok(ExploreOptions {
        scenario: arguments.scenario.clone(),
        options: CaseOptions {
            guard: arguments.guard.clone(),
            token: arguments.token.clone(),
            clients: clients(arguments.clients)?,
            profile: arguments.profile.clone(),
            ttl_s: match arguments.ttl {
                None => 0,
                Some(ttl) => within("--ttl", ttl, 1..=TTL_S_MAX)?,
            },
            readers: within("--readers", arguments.readers, 0..=READERS_MAX)?,
            ..CaseOptions::default()
        },
        strategy: strategy(&arguments.strategy)?,
        seeds: seeds(&arguments.seeds)?,
        shard: arguments.shard.parse().map_err(|error| format!("--shard {error}"))?,
        jobs,
        fail_fast: arguments.fail_fast,
        change: None,
        demands: Demands::default(),
    })
}

fn within(name: &str, value: i64, range: RangeInclusive<u16>) -> Result<u16, String> {
    let known = u16::try_from(value).ok().filter(|value| range.contains(value));
    known.ok_or_else(|| format!("{name} is {value}, expected {} to {}", range.start(), range.end()))
}

fn clients(clients: i64) -> Result<u8, String> {
    let known = u8::try_from(clients).ok().filter(|n| (1..=CLIENTS_MAX).contains(n));
    known.ok_or_else(|| format!("--clients is {clients}, expected 1 to {CLIENTS_MAX}"))
}

/// The strategy of this name.
pub(super) fn strategy(name: &str) -> Result<Strategy, String> {
    name.parse::<Strategy>().map_err(|error| error.to_string())
}

/// Reads `N` or `A..B`.
pub(super) fn seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |digits: &str| {
        digits.parse::<u64>().map_err(|_| {
            format!("--seeds is {text:?}, expected a number N or a range A..B of numbers")
        })
    };
    let range = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => 0..number(text)?,
    };
    if range.is_empty() {
        return Err(format!(
            "--seeds is {text:?}, which is no seed at all: give N of 1 or more, or A < B"
        ));
    }
    if range.end - range.start > SEEDS_MAX {
        return Err(format!(
            "--seeds is {text:?}, at most {SEEDS_MAX} seeds are allowed at a time"
        ));
    }
    Ok(range)
}

/// The sum. `wall` is how many seconds it took, with how many jobs, where that means something.
pub(super) fn print(summary: &Summary, seeds: &str, wall: Option<(f64, usize)>) {
    let Summary { runs, requests, events, .. } = *summary;
    let simulated = summary.simulated.as_secs_f64();
    let chosen = &summary.options;
    out(format_args!(
        "scenario   {} in profile {} with guard {}, token {}, {} clients; seeds {seeds}",
        summary.scenario, chosen.profile, chosen.guard, chosen.token, chosen.clients
    ));
    if chosen.ttl_s > 0 {
        out(format_args!("leases     of {} s", chosen.ttl_s));
    }
    if chosen.readers > 0 {
        out(format_args!("readers    {} of 1,000 holdings", chosen.readers));
    }
    if summary.strategy != Strategy::default() {
        out(format_args!("strategy   {}", summary.strategy));
    }
    match wall {
        Some((wall_s, jobs)) => {
            let rate = |n: f64| if wall_s > 0.0 { n / wall_s } else { 0.0 };
            out(format_args!(
                "runs       {runs} in {wall_s:.1} s with {jobs} jobs: {:.0} runs/s, \
                 {:.0} requests/s",
                rate(runs as f64),
                rate(requests as f64)
            ));
            out(format_args!(
                "simulated  {simulated:.0} s, {:.0} s a second; {requests} requests, \
                 {events} events",
                rate(simulated)
            ));
        }
        None => {
            out(format_args!("runs       {runs}"));
            out(format_args!("simulated  {simulated:.0} s; {requests} requests, {events} events"));
        }
    }
    if summary.has_faults {
        out(format_args!("faults     family          applied   with effect   not applied"));
        for (family, count) in &summary.faults {
            out(format_args!(
                "           {family:<14} {:>8} {:>13} {:>13}",
                count.applied, count.effective, count.skipped
            ));
        }
    }
    let judged: Vec<String> =
        summary.judged.iter().map(|(checker, count)| format!("{checker} {count}")).collect();
    out(format_args!("judged     {}", judged.join(", ")));
    let overlaps = summary.reached.count(Property::Overlap);
    out(format_args!("overlaps   {overlaps} of beliefs of two holders"));
    out(format_args!("writes     {} in classes", summary.classes.total()));
    for (class, count) in summary.classes.rows() {
        out(format_args!("           {:<14} {count:>8}", class.name()));
    }
    if summary.has_faults {
        print_reached(summary);
    }
}

fn print_reached(summary: &Summary) {
    let (judged, expected) = (summary.judges_reached(), summary.expected());
    let note = if judged { "" } else { " (not judged: fewer than 200 runs, or one client)" };
    out(format_args!("reached       times     runs  (* must be reached){note}"));
    for (property, times) in summary.reached.rows() {
        let runs = summary.reached_runs.get(&property).copied().unwrap_or(0);
        let star = if expected.contains(&property) { '*' } else { ' ' };
        out(format_args!("           {times:>8} {runs:>8} {star} {}", property.name()));
    }
}

/// A row a family, a column a phase; a dash where the phase cannot be reached.
fn print_coverage(summary: &Summary) {
    let names = LockPhase::ALL.map(|phase| format!("{:>15}", phase.name())).concat();
    out(format_args!("coverage   family        {names}"));
    for family in summary.faults.keys() {
        let cells = LockPhase::ALL.map(|phase| match unreachable(family, phase) {
            Some(_) => format!("{:>15}", "-"),
            None => format!("{:>15}", summary.coverage.count(family, phase)),
        });
        out(format_args!("           {family:<14}{}", cells.concat()));
    }
    let missing = summary.not_covered();
    for (family, phase) in &missing {
        out(format_args!("not met    {family} in phase {}", phase.name()));
    }
}

/// What counts against the exploration, and its class. `missing` is what was not run of it.
pub(super) fn print_verdict(summary: &Summary, missing: &[String]) {
    for (checker, (runs, first)) in &summary.caught {
        out(format_args!(
            "caught     {checker}: {runs} of {} runs, first seed {first}",
            summary.runs
        ));
    }
    if summary.failures_total() > 0 {
        out(format_args!(
            "not passed {} violations, {} unknown, {} harness errors",
            summary.violations, summary.unknown, summary.harness_errors
        ));
    }
    for property in summary.not_reached() {
        let (name, runs) = (property.name(), summary.runs);
        out(format_args!("not met    {name}: {runs} runs did not reach it"));
    }
    for checker in summary.idle() {
        out(format_args!("not met    {checker}: {} runs gave it nothing to judge", summary.runs));
    }
    for missing in missing {
        out(format_args!("missing    {missing}"));
    }
    let class = summary.class();
    if !missing.is_empty() && class == RunClass::Pass {
        let runs = summary.runs;
        out(format_args!("verdict    unknown: {runs} runs passed, but not all seeds were run"));
        return;
    }
    if summary.interrupted {
        let so_far = class.name();
        out(format_args!("verdict    interrupted: {so_far} in the {} runs so far", summary.runs));
        return;
    }
    if summary.harness_errors >= HARNESS_ERRORS_MAX {
        out(format_args!("stopped    after {HARNESS_ERRORS_MAX} harness errors"));
    }
    if class == RunClass::Pass {
        let runs = summary.runs;
        let bound = match runs {
            BOUND_FROM_RUNS.. => format!(
                "with 95 % confidence fewer than {:.3} % of the seeds of this profile fail (3/n)",
                300.0 / runs as f64
            ),
            _ => "too few to say how many seeds of this profile fail".to_owned(),
        };
        let unjudged = match summary.judges_reached() {
            true => "",
            false => "; what was reached is not judged",
        };
        let word = if runs == 1 { "run" } else { "runs" };
        out(format_args!("verdict    pass: {runs} {word}; {bound}{unjudged}"));
    } else {
        out(format_args!("verdict    {}", class.name()));
    }
}
