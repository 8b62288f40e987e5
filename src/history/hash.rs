//! The run hash: one number for everything that happened in a run.
//!
//! It covers the canonical bytes of each history event, each delivery of the network and the draw
//! counts of the random streams. It never covers task ids, addresses, log text or wall time.

use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::Event;

/// The hash of a run; equal runs have equal hashes on every machine and build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHash(pub u64);

impl fmt::Display for RunHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Collects a [`RunHash`].
#[derive(Default)]
pub struct RunHasher {
    state: Xxh3,
    buffer: Vec<u8>,
}

impl fmt::Debug for RunHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHasher").finish_non_exhaustive()
    }
}

impl RunHasher {
    /// Adds a history event.
    pub fn event(&mut self, event: &Event) {
        self.buffer.clear();
        canonical_bytes(event, &mut self.buffer);
        self.state.update(&self.buffer);
    }

    /// Adds numbers that are no event: a delivery, a draw count.
    pub fn numbers(&mut self, label: &str, numbers: &[u64]) {
        self.state.update(label.as_bytes());
        for number in numbers {
            self.state.update(&number.to_le_bytes());
        }
    }

    /// The hash of everything so far.
    pub fn finish(&self) -> RunHash {
        RunHash(self.state.digest())
    }
}

/// Appends the canonical bytes of an event: the same for the same event, everywhere.
pub fn canonical_bytes(event: &Event, bytes: &mut Vec<u8>) {
    let taken = std::mem::take(bytes);
    *bytes = postcard::to_extend(event, taken).expect("a history event has no unserialisable part");
}
