//! How a failure is told: seed, checker, the events that show it, a timeline, the way to replay.

use super::out;
use crate::{
    checker::Verdict,
    explore::{Failure, replay_token},
    judge::Judged,
    report::Timeline,
    shrink::Shrunk,
    system::OwnParts,
};

/// The most lines of a timeline in a failure's text.
const LINES_MAX: usize = 60;

/// The failure; where it was shrunk, with the timeline of the small run in place of its own.
pub(super) fn print(failure: &Failure, shrunk: Option<&Shrunk>) {
    match failure {
        Failure::Judged(judged) => {
            print_finding(judged);
            match shrunk {
                Some(shrunk) => print_shrunk(shrunk),
                None => print_timeline(judged, LINES_MAX),
            }
            out(format_args!("replay     leasehold replay {}", replay_token(judged)));
            out(format_args!("           (cargo run --release -- replay …)"));
        }
        Failure::Broken { case, error } => {
            out(format_args!("failure    seed {}: {error}", case.seed));
            match shrunk {
                Some(shrunk) => print_shrunk(shrunk),
                None => out(format_args!("as case\n{}", case.to_json())),
            }
            // A token holds a run hash, and there was no run.
            out(format_args!("replay     leasehold replay FILE.json, with the case in it"));
        }
    }
}

/// The smallest case: in a sentence, as timeline, as JSON, as a test, and as a command.
pub(super) fn print_shrunk(shrunk: &Shrunk) {
    out(format_args!("shrunk     {}", shrunk.summary()));
    out(format_args!("           {}", shrunk.case().sentence()));
    if let Some(judged) = shrunk.judged() {
        print_timeline(judged, LINES_MAX);
    }
    out(format_args!("as case\n{}", shrunk.case().to_json()));
    out(format_args!("as test\n{}", shrunk.test_source(OwnParts::NONE)));
    if let Some(judged) = shrunk.judged() {
        out(format_args!("small      leasehold replay {}", replay_token(judged)));
    }
}

/// What the worst checker says.
pub(super) fn print_finding(judged: &Judged) {
    let Some(finding) = judged.worst() else { return };
    let (word, message) = match &finding.verdict {
        Verdict::Violation(violation) => ("violation", violation.to_string()),
        Verdict::Unknown(why) => ("unknown", why.clone()),
        Verdict::NotRun(why) => ("not run", why.clone()),
        Verdict::Pass => return,
    };
    let seed = judged.run.case.seed;
    out(format_args!("failure    seed {seed}, checker {}: {word}", finding.checker));
    out(format_args!("           {message}"));
    let faults = &judged.run.case.plan.faults;
    for (index, fault) in faults.iter().enumerate() {
        out(format_args!("plan       {index}: {fault}"));
    }
}

/// The timeline around what shows the violation, or all of it.
pub(super) fn print_timeline(judged: &Judged, lines_max: usize) {
    let violation = judged.worst().and_then(|finding| finding.verdict.violation());
    let evidence = violation.map(|violation| violation.events.as_slice()).unwrap_or_default();
    if !evidence.is_empty() {
        let shown = evidence.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        out(format_args!("shown by   events {shown}, marked > below"));
    }
    let sentences = judged.fault_sentences();
    let faults = sentences.iter().map(|(index, text)| (*index, text.as_str())).collect();
    let timeline = Timeline::new(&judged.run.history).families(&faults).max_lines(lines_max);
    let timeline = match evidence {
        [] => timeline,
        events => timeline.evidence(events).window(),
    };
    out(format_args!("{}", timeline.to_string().trim_end()));
}
