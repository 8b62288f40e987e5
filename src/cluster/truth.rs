//! Brings the servers' records of truth into the history.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    etcd::server::CommitLog,
    history::{ApplyRow, Boundary, Commit, EventKind, LeaseEvent, NodeName, Recorder},
    storage::ApplyLog,
    time::sim::true_ns,
};

/// Records what one server did.
pub(super) struct Truth {
    recorder: Recorder,
    node: NodeName,
    /// Rows of the apply log, over all lives of the storage.
    rows: AtomicU64,
}

impl Truth {
    pub(super) fn new(recorder: Recorder, node: NodeName) -> Self {
        Truth { recorder, node, rows: AtomicU64::new(0) }
    }

    /// How many rows the apply log has.
    pub(super) fn applied_rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    fn record(&self, kind: EventKind) {
        self.recorder.record(true_ns(), self.node, kind);
    }
}

impl CommitLog for Truth {
    fn committed(&self, commit: &Commit) {
        self.record(EventKind::Commit(commit.clone()));
    }

    fn lease(&self, event: &LeaseEvent) {
        self.record(EventKind::Lease(event.clone()));
    }
}

impl ApplyLog for Truth {
    fn boundary(&self, boundary: Boundary) {
        self.record(EventKind::Storage(boundary));
    }

    /// The index is the record's own: a storage that lost its last requests in a crash, and those
    /// that it did not have to keep, numbers from there, and the history must not repeat a number.
    fn applied(&self, row: ApplyRow) {
        let row = ApplyRow { index: self.rows.fetch_add(1, Ordering::Relaxed) + 1, ..row };
        let (kind, result) = (row.kind, row.result);
        tracing::debug!(key = row.key, token = row.token, ?kind, ?result, "applied");
        self.record(EventKind::Apply(row));
    }
}
