//! `leasehold demo`: see `crate::demo`.

use super::{DemoArguments, usage};

pub(super) fn run(arguments: &DemoArguments) -> u8 {
    usage(format_args!("not yet: {}", arguments.by))
}
