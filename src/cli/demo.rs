//! `leasehold demo`: contrib/lock's story, and what the original hides.

use super::{DemoArguments, err, out, usage};
use crate::{demo, judge::RunClass};

pub(super) fn run(arguments: &DemoArguments) -> u8 {
    let by = match arguments.by.parse() {
        Ok(by) => by,
        Err(error) => return usage(format_args!("{error}")),
    };
    let acts = match demo::tell(by) {
        Ok(acts) => acts,
        Err(error) => {
            err(format_args!("error: {error}"));
            return RunClass::HarnessError.exit_status();
        }
    };
    for act in acts {
        out(format_args!("{}", act.title));
        for (client, line) in &act.lines {
            out(format_args!("  client {client} | {line}"));
        }
        for (client, status) in &act.statuses {
            out(format_args!("  client {client} exits with status {status}"));
        }
        out(format_args!("  => {}\n", act.shows));
    }
    0
}
