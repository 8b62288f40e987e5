//! `leasehold replay`: one case again, with its timeline.

use std::{fs, path::Path};

use super::{ReplayArguments, err, failure, out, pages, report, smallest, usage};
use crate::{
    bug,
    case::{Case, ReplayToken, TOKEN_PREFIX, TokenError},
    corpus::{Expectation, read_case},
    explore::{Outcome, run_and_judge},
    history::{codec::encode, hash::RunHash},
    judge::{Judged, RunClass},
    report::Timeline,
    runner::RunError,
    system::OwnParts,
};

/// What is to be run, and what is known of its run.
struct Wanted {
    case: Case,
    /// The hash that it had, and with which version of the crate.
    hash: Option<(RunHash, String)>,
    /// The verdict that it must give.
    expect: Option<Expectation>,
}

pub(super) fn run(arguments: &ReplayArguments) -> u8 {
    let wanted = match wanted(&arguments.case) {
        Ok(wanted) => wanted,
        Err(message) => return usage(format_args!("{message}")),
    };
    let change = match bug::change_of(&wanted.case.options) {
        Ok(change) => change,
        Err(error) => return usage(format_args!("{error}")),
    };
    if let Err(message) = report::prepare("--report", arguments.report.as_ref()) {
        return usage(format_args!("{message}"));
    }
    let judged = match run_and_judge(&wanted.case, change.as_ref()) {
        Ok(judged) => judged,
        Err(broken) => match &broken.1 {
            RunError::Case(error) => {
                return usage(format_args!("the case cannot be run: {error}"));
            }
            RunError::Harness(_) => {
                let run = |case: &_| run_and_judge(case, change.as_ref());
                let shrunk =
                    arguments.shrink.then(|| smallest::of_outcome(Err(broken.clone()), &run));
                failure::print(&Err(broken.clone()).into(), shrunk.flatten().as_ref());
                as_expected(wanted.expect.as_ref(), &Err(broken));
                return RunClass::HarnessError.exit_status();
            }
        },
    };
    let sentences = judged.fault_sentences();
    let faults = sentences.iter().map(|(index, text)| (*index, text.as_str())).collect();
    let timeline = Timeline::new(&judged.run.history).families(&faults).to_string();
    out(format_args!("{}", timeline.trim_end()));
    for fault in judged.own_points_not_passed() {
        err(format_args!("warning: never so: {fault}; is the point's name right?"));
    }
    failure::print_finding(&judged);
    if judged.worst().is_some() {
        failure::print_timeline(&judged, usize::MAX);
    }
    if arguments.shrink {
        let run = |case: &_| run_and_judge(case, change.as_ref());
        match smallest::of_outcome(Ok(judged.clone()), &run) {
            Some(shrunk) => failure::print_shrunk(&shrunk),
            None => out(format_args!("shrunk     nothing: the run passed")),
        }
    }
    let mut written = arguments.report.as_ref().is_none_or(|dir| pages::write(dir, &judged));
    if let Some(file) = &arguments.history
        && let Err(error) = fs::write(file, encode(&judged.run.history))
    {
        err(format_args!("error: --history {}: {error}", file.display()));
        written = false;
    }
    out(format_args!("verdict    {}", judged.class().name()));
    let expected = as_expected(wanted.expect.as_ref(), &Ok(judged.clone()));
    let mut class = compare(&judged, wanted.hash);
    if !expected {
        class = class.worse(RunClass::Violation);
    }
    if !written {
        class = class.worse(RunClass::HarnessError);
    }
    class.exit_status()
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if !text.ends_with(".json") && !Path::new(text).exists() {
        let token = ReplayToken::decode(text).map_err(|error| match error {
            TokenError::Foreign => format!(
                "{text:?} is not a replay token, which starts with {TOKEN_PREFIX:?}, and there is \
                 no file of that name with a case in it"
            ),
            error => error.to_string(),
        })?;
        let hash = Some((token.run_hash, token.crate_version));
        return Ok(Wanted { case: token.case, hash, expect: None });
    }
    let json = fs::read_to_string(text).map_err(|error| format!("{text}: {error}"))?;
    let (case, entry) = read_case(&json).map_err(|error| format!("{text}: {error}"))?;
    if let Some(own) = entry.as_ref().map(|entry| entry.own).filter(|own| own.any()) {
        return Err(format!("{text}: {}", own_parts_text(own)));
    }
    Ok(Wanted { case, hash: None, expect: entry.map(|entry| entry.expect) })
}

/// Why a case of own parts is not replayed: on the crate's parts it would show nothing.
fn own_parts_text(own: OwnParts) -> String {
    let parts = own.names().join(" and ");
    format!(
        "it is a case of a {parts} of your own, which this program does not have: run it in your \
         project with leasehold::testing::corpus(DIR), or replay_case(TEXT), and your {parts}"
    )
}

/// Whether the run gave the verdict that is expected of it, if any is, and says so.
fn as_expected(expect: Option<&Expectation>, outcome: &Outcome) -> bool {
    let Some(expect) = expect else { return true };
    let differs = expect.differs(outcome);
    match &differs {
        None => out(format_args!("expected   {expect}: so it is")),
        Some(differs) => out(format_args!("differs    {differs}")),
    }
    differs.is_none()
}

/// Holds the run hash against that of the token, and gives the class.
fn compare(judged: &Judged, known: Option<(RunHash, String)>) -> RunClass {
    let (hash, class) = (judged.run.hash, judged.class());
    let Some((known, version)) = known else {
        out(format_args!("run hash   {hash}"));
        return class;
    };
    if hash == known {
        out(format_args!("run hash   {hash}: the same run"));
        return class;
    }
    out(format_args!("run hash   {hash}, the token has {known}"));
    let own = env!("CARGO_PKG_VERSION");
    if version == own {
        err(format_args!("error: not deterministic: version {own} gave this case another run"));
        return RunClass::HarnessError;
    }
    out(format_args!(
        "           the token is from version {version:?}, this is {own}: another run is to be \
         expected"
    ));
    class
}
