//! Collects the events of a run in their order.
//!
//! The recorder knows neither the simulation nor a clock: whoever records says when and where.

use std::sync::{Arc, Mutex, MutexGuard};

use super::{
    Event, EventKind, History, NodeName,
    hash::{RunHash, RunHasher},
};

/// A shared, append-only record. Cloning gives another handle of the same record.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    events: Vec<Event>,
    hasher: RunHasher,
}

/// A run has some thousands of events: room for them at once saves copying them as the list grows.
const EVENTS_USUAL: usize = 4096;

impl Default for Inner {
    fn default() -> Self {
        Inner { events: Vec::with_capacity(EVENTS_USUAL), hasher: RunHasher::default() }
    }
}

impl Recorder {
    /// Appends an event and gives its place in the order.
    pub fn record(&self, at_ns: u64, node: NodeName, kind: EventKind) -> u64 {
        let mut inner = self.lock();
        let seq = inner.events.len() as u64;
        let event = Event { seq, at_ns, node, kind };
        inner.hasher.event(&event);
        inner.events.push(event);
        seq
    }

    /// Adds something to the run hash that is no event of the history.
    pub fn mix(&self, label: &str, numbers: &[u64]) {
        self.lock().hasher.numbers(label, numbers);
    }

    /// Takes the history out and gives the run hash so far.
    pub fn finish(&self) -> (History, RunHash) {
        let mut inner = self.lock();
        let hash = inner.hasher.finish();
        (History { events: std::mem::take(&mut inner.events) }, hash)
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.lock().events.len()
    }

    /// Whether nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while recording ends the run as a harness error; the record stays readable.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
