//! `leasehold replay`: one case again, with its timeline.

use super::{ReplayArguments, err, failure, out, usage};
use crate::{
    bug, case::ReplayToken, explore::run_and_judge, judge::RunClass, report::Timeline,
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
    let class = judged.class();
    out(format_args!("verdict    {}", class.name()));
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
