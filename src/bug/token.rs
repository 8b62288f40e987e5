//! Wrong tokens: what is sent to the storage is in no order.

pub(super) mod counter_in_memory;
pub(super) mod lease_id;
pub(super) mod mixed_revisions;
pub(super) mod own_counter;
pub(super) mod session_revision;
