//! Wrong readings: a client takes an error for more than it is.

pub(super) mod stale_is_fail;
pub(super) mod time_out_is_fail;
