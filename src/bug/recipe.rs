//! Wrong recipes: the queue is read, waited for or left wrongly.

pub(super) mod campaign_unchecked;
pub(super) mod endless_clean_up;
pub(super) mod first_by_key;
pub(super) mod key_without_lease;
pub(super) mod loser_deletes_sibling;
pub(super) mod no_second_look;
pub(super) mod no_wait;
pub(super) mod release_not_awaited;
pub(super) mod released_key_reused;
pub(super) mod time_out_is_success;
pub(super) mod unlock_not_guarded;
pub(super) mod watch_from_now;
