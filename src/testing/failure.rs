//! What a failing check says: what failed, why, the smallest case that shows it, and where it is.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::again::not_again;
use crate::{
    case::Case,
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
/// So many cases may have the same name, but for a number.
const SAVED_MAX: u32 = 100;
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
    let mut text = told(summary);
    if let Some(Failure::Judged(judged)) = summary.first_failure() {
        text += &how_to_replay(summary, judged);
    }
    text
}

/// What failed, and why.
fn told(summary: &Summary) -> String {
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
            format!("{failed} of {runs} runs did not pass\n{}", judged_text(judged))
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
    let chosen = &options.options;
    let choices = format!(
        "\noptions: scenario {}, guard {}, token {}, {} clients",
        options.scenario, chosen.guard, chosen.token, chosen.clients
    );
    let Some(failure) = summary.first_failure() else { return explain(summary) + &choices };
    let outcome = failure.outcome();
    // A case that cannot be run has nothing to show.
    let Some(symptom) = Symptom::of(&outcome) else { return explain(summary) + &choices };
    let run = |case: &Case| options.run(case);
    if let Some(why) = not_again(&outcome, &run) {
        return format!("{}{choices}\n{why}", told(summary));
    }
    let text = explain(summary) + &choices;
    let began = Instant::now();
    let limits = Limits { stop: &|| began.elapsed() > SHRINK_MAX, ..Limits::default() };
    let shrunk = shrink(outcome, &symptom, &run, &limits);
    if let Some(why) = not_again(&shrunk.outcome, &run) {
        return format!("{text}\n{why}");
    }
    let own = OwnParts::of(options.change.as_ref());
    text + &shrunk_text(&shrunk, own) + &saved_text(&shrunk, own)
}

/// Where the small case was saved, or why not.
fn saved_text(shrunk: &Shrunk, own: OwnParts) -> String {
    if shrunk.is_of_demand() {
        return "\nnot saved: a file of a case asks for its verdict only; keep the test".to_owned();
    }
    let symptom = &shrunk.symptom;
    let entry = Entry::of(shrunk.case(), symptom.class(), symptom.broken().cloned(), own);
    // A seed more in the name: failures of several tests lie side by side.
    let name = format!("{}-seed-{}", entry.name, entry.case.seed);
    let dir = save_dir();
    match save(&dir, entry.called(name)) {
        Ok(path) => format!("\nsaved as: {}", path.display()),
        Err(error) => {
            let (dir, remedy) = (dir.display(), "another folder can be given");
            format!("\nnot saved: {dir}: {error}; {remedy} in {SAVE_DIR}")
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

/// Writes the entry into a file of its name. A file that holds another case stays: then both get a
/// number behind the name.
fn save(dir: &Path, entry: Entry) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    let name = entry.name.clone();
    let mut entry = entry;
    for number in 2..=SAVED_MAX {
        let path = dir.join(format!("{}.json", entry.name));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(entry.to_json().as_bytes())?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let there = std::fs::read_to_string(&path).ok().and_then(|t| Entry::from_json(&t).ok());
        let same = |there: Entry| {
            (&there.case, &there.expect, there.own) == (&entry.case, &entry.expect, entry.own)
        };
        if there.is_some_and(same) {
            return Ok(path);
        }
        entry = entry.called(format!("{name}-{number}"));
    }
    Err(std::io::Error::other(format!("too many cases are called {name} already: remove some")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{case::CaseOptions, judge::RunClass, scenario, seed::Seed};

    /// A file that is there is kept; the same case is not written twice, and another one gets a
    /// number, in its name too.
    #[test]
    fn nothing_is_overwritten() {
        let dir = std::env::temp_dir().join(format!("leasehold-save-{}", std::process::id()));
        let entry = |clients| {
            let options = CaseOptions { clients, ..CaseOptions::default() };
            let case = scenario::CATALOG[0].case(Seed(3), options);
            let entry = Entry::of(&case, RunClass::HarnessError, None, OwnParts::NONE);
            entry.called("same".to_owned())
        };
        let saved = |clients| {
            let path = save(&dir, entry(clients)).expect("it can be written");
            let text = std::fs::read_to_string(&path).expect("it is there");
            let read = Entry::from_json(&text).expect("an entry");
            assert_eq!(path.file_stem(), Some(read.name.as_ref()));
            assert_eq!(read.case, entry(clients).case);
            read.name
        };
        let names = [2, 3, 2, 4, 3].map(saved);
        std::fs::remove_dir_all(&dir).expect("the folder of this test");
        assert_eq!(names, ["same", "same-2", "same", "same-3", "same-2"]);
    }
}
