//! Wrong sessions: the client's own clock is asked wrongly.

pub(super) mod acquired_late;
pub(super) mod deadline_from_reply;
pub(super) mod no_deadline;
pub(super) mod no_retry;
