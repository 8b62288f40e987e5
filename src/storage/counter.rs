//! What a storage has done, in numbers, for whoever watches it.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::history::RowResult;

/// The counters of one service, from its start. Each only rises.
#[derive(Debug, Default)]
pub struct Counters {
    admitted: AtomicU64,
    refused: AtomicU64,
    replayed: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    panics: AtomicU64,
    syncs: AtomicU64,
    snapshots: AtomicU64,
    connections: AtomicU64,
    connections_refused: AtomicU64,
    connections_timed_out: AtomicU64,
}

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A request passed the fence.
    Admitted,
    /// The fence refused a request.
    Refused,
    /// A resend was answered from the table of requests.
    Replayed,
    /// A request was malformed, over a limit or out of order.
    Rejected,
    /// A request got a status of 500 or 503, because the storage had stopped.
    Failed,
    /// The code for a request panicked; it was answered with status 500.
    Panics,
    /// Frames of the log were made durable; many requests may share one.
    Syncs,
    /// The log was replaced by a snapshot.
    Snapshots,
    /// A connection was accepted and served.
    Connections,
    /// A connection was turned away because there were too many.
    ConnectionsRefused,
    /// A connection was closed because its client was too slow.
    ConnectionsTimedOut,
}

impl Count {
    /// All of them.
    pub const ALL: [Count; 11] = [
        Count::Admitted,
        Count::Refused,
        Count::Replayed,
        Count::Rejected,
        Count::Failed,
        Count::Panics,
        Count::Syncs,
        Count::Snapshots,
        Count::Connections,
        Count::ConnectionsRefused,
        Count::ConnectionsTimedOut,
    ];

    /// Its name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Count::Admitted => "admitted",
            Count::Refused => "refused",
            Count::Replayed => "replayed",
            Count::Rejected => "rejected",
            Count::Failed => "failed",
            Count::Panics => "panics",
            Count::Syncs => "syncs",
            Count::Snapshots => "snapshots",
            Count::Connections => "connections",
            Count::ConnectionsRefused => "connections_refused",
            Count::ConnectionsTimedOut => "connections_timed_out",
        }
    }
}

impl From<RowResult> for Count {
    fn from(result: RowResult) -> Self {
        match result {
            RowResult::Admitted => Count::Admitted,
            RowResult::Refused => Count::Refused,
            RowResult::Replayed => Count::Replayed,
            RowResult::Rejected => Count::Rejected,
        }
    }
}

impl Counters {
    fn of(&self, count: Count) -> &AtomicU64 {
        match count {
            Count::Admitted => &self.admitted,
            Count::Refused => &self.refused,
            Count::Replayed => &self.replayed,
            Count::Rejected => &self.rejected,
            Count::Failed => &self.failed,
            Count::Panics => &self.panics,
            Count::Syncs => &self.syncs,
            Count::Snapshots => &self.snapshots,
            Count::Connections => &self.connections,
            Count::ConnectionsRefused => &self.connections_refused,
            Count::ConnectionsTimedOut => &self.connections_timed_out,
        }
    }

    /// Counts one.
    pub(super) fn add(&self, count: Count) {
        self.of(count).fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were.
    pub fn get(&self, count: Count) -> u64 {
        self.of(count).load(Ordering::Relaxed)
    }
}

/// One line each: name, space, value.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Count::ALL.iter().try_for_each(|count| writeln!(f, "{} {}", count.name(), self.get(*count)))
    }
}
