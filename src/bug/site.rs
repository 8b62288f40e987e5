//! Where a known bug sits: counts how often its wrong code ran, whether or not it mattered.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The site of a bug in one run. A bug that was not caught although its site was executed shows
/// that it needs more than that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Site(Arc<AtomicU64>);

impl Site {
    /// The wrong code runs.
    pub(crate) fn hit(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it ran.
    pub(crate) fn hits(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
