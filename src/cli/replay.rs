//! `leasehold replay`: one case again, with its timeline.

use std::path::Path;

use super::{ReplayArguments, err, failure, out, pages, report, usage};
use crate::{
    bug,
    case::ReplayToken,
    explore::run_and_judge,
    judge::{Judged, RunClass},
    report::Timeline,
    runner::RunError,
};

pub(super) fn run(arguments: &ReplayArguments) -> u8 {
    let token = match ReplayToken::decode(&arguments.token) {
        Ok(token) => token,
        Err(error) => return usage(format_args!("{error}")),
    };
    let change = match bug::change_of(&token.case.options) {
        Ok(change) => change,
        Err(error) => return usage(format_args!("{error}")),
    };
    if let Err(message) = report::prepare(arguments.report.as_ref()) {
        return usage(format_args!("{message}"));
    }
    let judged = match run_and_judge(&token.case, change.as_ref()) {
        Ok(judged) => judged,
        Err(broken) => match broken.1 {
            RunError::Case(error) => {
                return usage(format_args!("the token's case cannot be run: {error}"));
            }
            RunError::Harness(error) => {
                err(format_args!("error: {error}"));
                return RunClass::HarnessError.exit_status();
            }
        },
    };
    let sentences = judged.fault_sentences();
    let faults = sentences.iter().map(|(index, text)| (*index, text.as_str())).collect();
    let timeline = Timeline::new(&judged.run.history).families(&faults).to_string();
    out(format_args!("{}", timeline.trim_end()));
    failure::print_finding(&judged);
    if judged.worst().is_some() {
        failure::print_timeline(&judged, usize::MAX);
    }
    let mut class = judged.class();
    if let Some(Err(message)) = arguments.report.as_ref().map(|dir| write_pages(dir, &judged)) {
        err(format_args!("error: {message}"));
        class = class.worse(RunClass::HarnessError);
    }
    out(format_args!("verdict    {}", judged.class().name()));
    let same = judged.run.hash == token.run_hash;
    let own = env!("CARGO_PKG_VERSION");
    if same {
        out(format_args!("run hash   {}: the same run", judged.run.hash));
        return class.exit_status();
    }
    out(format_args!("run hash   {}, the token has {}", judged.run.hash, token.run_hash));
    if token.crate_version == own {
        err(format_args!("error: not deterministic: version {own} gave this case another run"));
        return RunClass::HarnessError.exit_status();
    }
    out(format_args!(
        "           the token is from version {:?}, this is {own}: another run is to be expected",
        token.crate_version
    ));
    class.exit_status()
}

fn write_pages(dir: &Path, judged: &Judged) -> Result<(), String> {
    let rows = pages::write(dir, judged)?;
    let note = format!("{} findings of seed {}", rows.len(), judged.run.case.seed);
    report::finish(dir, &note, &rows)
}
