//! What a failing check says: what failed, why, the smallest case that shows it, and where it is.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    corpus::Entry,
    explore::{ExploreOptions, Failure, Summary, replay_token},
    judge::Judged,
    report::Timeline,
    shrink::{Limits, Shrunk, Symptom, shrink},
    system::OwnParts,
};

/// Shrinking takes no longer, in wall time.
const SHRINK_MAX: Duration = Duration::from_secs(20);
/// Where failing cases go instead of the target folder.
const SAVE_DIR: &str = "LEASEHOLD_SAVE_DIR";
/// The most lines of a timeline.
const LINES_MAX: usize = 60;

/// The verdict of a run, its plan, and the events around what shows the violation.
pub(super) fn judged_text(judged: &Judged) -> String {
    let finding = judged.worst();
    let checker = finding.map_or("", |finding| finding.checker);
    let verdict = finding.map(|finding| finding.verdict.to_string()).unwrap_or_default();
    let violation = finding.and_then(|finding| finding.verdict.violation());
    let evidence = violation.map(|found| found.events.as_slice()).unwrap_or_default();
    let sentences = judged.fault_sentences();
    let plan: String = sentences.values().map(|fault| format!("  {fault}\n")).collect();
    let faults = sentences.iter().map(|(at, text)| (*at, text.as_str())).collect();
    let timeline = Timeline::new(&judged.run.history)
        .families(&faults)
        .evidence(evidence)
        .window()
        .max_lines(LINES_MAX);
    format!("seed {}, checker {checker}: {verdict}\nplan:\n{plan}{timeline}", judged.run.case.seed)
}

/// What a failing check says: what failed, why, and how to see it again.
pub fn explain(summary: &Summary) -> String {
    let runs = summary.runs;
    let Some(failure) = summary.first_failure() else {
        let mut missing: Vec<_> = summary.not_reached().iter().map(|p| p.name()).collect();
        missing.extend(summary.idle());
        let missing = missing.join(", ");
        return format!("{runs} runs: {}; not reached: {missing}", summary.class().name());
    };
    let failed = summary.failures_total();
    match failure {
        Failure::Broken { case, error } => format!("seed {}: {error}", case.seed),
        Failure::Judged(judged) => {
            let (text, replay) = (judged_text(judged), how_to_replay(summary, judged));
            format!("{failed} of {runs} runs did not pass\n{text}{replay}")
        }
    }
}

/// A token holds no storage of the caller's: such a run is replayed by the caller's own check.
fn how_to_replay(summary: &Summary, judged: &Judged) -> String {
    if summary.own_parts {
        format!("replay with: MADSIM_TEST_SEED={} and this same check", judged.run.case.seed)
    } else {
        format!("replay with: leasehold replay {}", replay_token(judged))
    }
}

/// What a failing check says, with the smallest case that shows the same; that case is saved.
pub(super) fn explain_smallest(summary: &Summary, options: &ExploreOptions) -> String {
    let mut text = explain(summary);
    let chosen = &options.options;
    text += &format!(
        "\noptions: scenario {}, guard {}, token {}, {} clients",
        options.scenario, chosen.guard, chosen.token, chosen.clients
    );
    let Some(failure) = summary.first_failure() else { return text };
    let outcome = failure.outcome();
    // A case that cannot be run has nothing to show.
    let Some(symptom) = Symptom::of(&outcome) else { return text };
    let began = Instant::now();
    let limits = Limits { stop: &|| began.elapsed() > SHRINK_MAX, ..Limits::default() };
    let shrunk = shrink(outcome, &symptom, &|case| options.run(case), &limits);
    text += &shrunk_text(&shrunk, OwnParts::of(options.change.as_ref()));
    let entry = Entry::of(shrunk.case(), symptom.class(), symptom.broken().cloned());
    let dir = save_dir();
    match save(&dir, &entry) {
        Ok(path) => text + &format!("\nsaved as: {}", path.display()),
        Err(error) => {
            let (dir, remedy) = (dir.display(), "another folder can be given");
            text + &format!("\nnot saved: {dir}: {error}; {remedy} in {SAVE_DIR}")
        }
    }
}

fn shrunk_text(shrunk: &Shrunk, own: OwnParts) -> String {
    let mut text = format!(
        "\nshrunk: {}\n  {}\nas a test:\n\n{}",
        shrunk.summary(),
        shrunk.case().sentence(),
        shrunk.test_source(own)
    );
    if let Some(judged) = shrunk.judged().filter(|_| !own.any()) {
        let token = replay_token(judged);
        text += &format!("\nreplay what was shrunk with: leasehold replay {token}");
    }
    text
}

/// The folder named by the environment, else one in the target folder of the running test.
fn save_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os(SAVE_DIR).filter(|dir| !dir.is_empty()) {
        return dir.into();
    }
    // Test programs are in target/<profile>/deps.
    let program = std::env::current_exe().unwrap_or_default();
    let deps = program.parent().filter(|dir| dir.ends_with("deps"));
    let target = deps.and_then(|dir| dir.parent()?.parent());
    target.unwrap_or(Path::new("target")).join("leasehold")
}

fn save(dir: &Path, entry: &Entry) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    // A seed more in the name: failures of several tests lie side by side.
    let path = dir.join(format!("{}-seed-{}.json", entry.name, entry.case.seed));
    std::fs::write(&path, entry.to_json())?;
    Ok(path)
}
