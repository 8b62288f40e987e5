//! Wrong guards: the storage's fence decides wrongly.

pub(super) mod answer_before_sync;
pub(super) mod check_then_write;
pub(super) mod equality;
pub(super) mod fence_before_table;
pub(super) mod late_original;
pub(super) mod mark_per_key;
pub(super) mod no_mark_on_reads;
pub(super) mod one_below;
pub(super) mod reads_from_table;
pub(super) mod reads_not_kept;
pub(super) mod refused_but_written;
pub(super) mod strictly_above;
pub(super) mod text_compare;
pub(super) mod unfenced;
pub(super) mod volatile_mark;
