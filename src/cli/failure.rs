//! How a failure is told: seed, checker, the events that show it, a timeline, the way to replay.

use super::out;
use crate::{
    checker::Verdict,
    explore::{Failure, replay_token},
    judge::Judged,
    report::{TimelineOptions, timeline},
};

/// The most lines of a timeline in a failure's text.
const LINES_MAX: usize = 60;

pub(super) fn print(failure: &Failure) {
    match failure {
        Failure::Judged(judged) => {
            print_finding(judged);
            print_timeline(judged, LINES_MAX);
            out(format_args!("replay     leasehold replay {}", replay_token(judged)));
            out(format_args!("           (cargo run --release -- replay …)"));
        }
        Failure::Broken { case, error } => {
            out(format_args!("failure    seed {}: {error}", case.seed));
            out(format_args!(
                "replay     leasehold explore --scenario {} --guard {} --token {} --clients {} --seeds {}..{}",
                case.scenario,
                case.options.guard,
                case.options.token,
                case.options.clients,
                case.seed,
                case.seed.0 + 1
            ));
        }
    }
}

/// What the worst checker says.
pub(super) fn print_finding(judged: &Judged) {
    let Some(finding) = judged.worst() else { return };
    let (word, message) = match &finding.verdict {
        Verdict::Violation(violation) => ("violation", violation.message.clone()),
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
    let evidence = match judged.worst().map(|finding| &finding.verdict) {
        Some(Verdict::Violation(violation)) => violation.events.clone(),
        _ => Vec::new(),
    };
    if !evidence.is_empty() {
        let shown = evidence.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        out(format_args!("shown by   events {shown}, marked > below"));
    }
    let options = TimelineOptions { evidence, lines_max };
    let text = timeline(&judged.run.history, &judged.run.case.plan, &options);
    out(format_args!("{}", text.trim_end()));
}
