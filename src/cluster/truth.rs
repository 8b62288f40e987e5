//! Brings the servers' records of truth into the history.

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
}

impl Truth {
    pub(super) fn new(recorder: Recorder, node: NodeName) -> Self {
        Truth { recorder, node }
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

    fn applied(&self, row: ApplyRow) {
        let (kind, result) = (row.kind, row.result);
        tracing::debug!(key = row.key, token = row.token, ?kind, ?result, "applied");
        self.record(EventKind::Apply(row));
    }
}
