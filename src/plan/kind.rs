//! The kinds of faults, as plain values.

use serde::{Deserialize, Serialize};

use crate::history::NodeName;

/// The kinds of harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The node's tasks stop; true time and its clocks go on; messages queue up (a GC pause).
    Pause {
        /// Who stops.
        node: NodeName,
    },
    /// As a pause, and the node's monotonic clock stands still too (a VM migration).
    Suspend {
        /// Who stops.
        node: NodeName,
    },
    /// The node stops the next time it passes a named code point.
    PointPause {
        /// Who stops.
        node: NodeName,
        /// Where.
        point: String,
        /// At which passage after the start, counted from 1.
        occurrence: u32,
    },
    /// Nothing gets from one node to another; messages are held until it heals.
    Cut {
        /// From here …
        from: NodeName,
        /// … to there.
        to: NodeName,
        /// Nothing gets back either.
        both_ways: bool,
    },
    /// Each message from one node to another takes longer.
    LinkDelay {
        /// From here …
        from: NodeName,
        /// … to there.
        to: NodeName,
        /// By so much, in milliseconds.
        delay_ms: u64,
    },
    /// The node's monotonic clock, and all its timers, run at another rate.
    ClockRate {
        /// Whose clock.
        node: NodeName,
        /// Parts of 1,000 of true time: 500 is half as fast.
        permille: u32,
    },
    /// The node's wall clock is off; its monotonic clock is not.
    ClockOffset {
        /// Whose clock.
        node: NodeName,
        /// By so much, in milliseconds.
        offset_ms: i64,
    },
    /// The lease of whoever owns the lock is revoked.
    ForcedRevoke,
    /// The node's process dies, and starts again when the fault ends.
    Kill {
        /// Whose process.
        node: NodeName,
    },
    /// The connections between two nodes break; both ends are told at their next step.
    Reset {
        /// One end …
        from: NodeName,
        /// … and the other.
        to: NodeName,
    },
    /// The way from one node to another carries one message at a time: in a burst each waits for
    /// those before it.
    SlowLink {
        /// From here …
        from: NodeName,
        /// … to there.
        to: NodeName,
        /// How long each message takes up the way, in milliseconds.
        message_ms: u64,
    },
    /// The machine goes silent: its links are cut and its process dies. No peer sees an end of its
    /// connections before the fault ends.
    SilentDeath {
        /// Whose machine.
        node: NodeName,
    },
    /// The node's process dies the next time it passes a named code point.
    PointKill {
        /// Who dies.
        node: NodeName,
        /// Where.
        point: String,
        /// At which passage after the start, counted from 1.
        occurrence: u32,
    },
    /// The node's wall clock jumps, and is then led back evenly until the fault ends.
    ClockStep {
        /// Whose clock.
        node: NodeName,
        /// By so much, in milliseconds.
        step_ms: i64,
    },
    /// The node's wall clock jumps to and fro.
    ClockStrobe {
        /// Whose clock.
        node: NodeName,
        /// By so much, in milliseconds.
        offset_ms: i64,
        /// How long it stays on either side, in milliseconds.
        period_ms: u64,
    },
    /// Single requests are harmed on their way.
    Request {
        /// Which ones.
        request: RequestName,
        /// What becomes of them.
        harm: RequestHarm,
        /// How many, at most.
        count: u32,
    },
    /// Renewals of leases get lost for a while, and nobody is told.
    LostRenewals,
    /// The lease of whoever owns the lock at the start is renewed no more: it runs out.
    LeaseRunsOut,
    /// Somebody else deletes the key of whoever owns the lock.
    OutsideDelete,
    /// etcd forgets the past states of its keys, and for a while again after each change.
    Compaction,
    /// The etcd member has no leader for a while, and then leads again.
    Leaderless,
    /// Each sync of the storage's disk takes longer.
    SlowSync {
        /// By so much, in milliseconds.
        latency_ms: u64,
    },
    /// The storage's disk fails; the process is started anew when it works again.
    DiskFailure {
        /// It is full, and appends fail; else it is the syncs that fail.
        full: bool,
    },
    /// A client stops the next time it passes a named code point; at the end a server dies and
    /// starts anew, and the client goes on.
    RestartUnder {
        /// Who stops.
        node: NodeName,
        /// Where.
        point: String,
        /// At which passage after the start, counted from 1.
        occurrence: u32,
        /// Who starts anew.
        server: NodeName,
    },
    /// etcd forgets the past states of its keys, and its process dies before it has noted that.
    CompactionCrash,
    /// etcd's own revocations of leases that have run out fail for a while.
    LostRevocations,
}

/// The requests that a fault can single out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestName {
    /// To etcd: a lease is granted.
    Grant,
    /// To etcd: a lease is renewed.
    Renewal,
    /// To etcd: a lease is revoked.
    Revoke,
    /// To etcd: a transaction, such as the one that enters a queue.
    Txn,
    /// To etcd: a read.
    Range,
    /// To etcd: a watch begins.
    Watch,
    /// To the storage: any.
    Storage,
}

impl RequestName {
    /// All of them.
    pub const ALL: [RequestName; 7] = [
        RequestName::Grant,
        RequestName::Renewal,
        RequestName::Revoke,
        RequestName::Txn,
        RequestName::Range,
        RequestName::Watch,
        RequestName::Storage,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            RequestName::Grant => "a lease grant",
            RequestName::Renewal => "a renewal",
            RequestName::Revoke => "a lease revoke",
            RequestName::Txn => "a transaction",
            RequestName::Range => "a read of etcd",
            RequestName::Watch => "the start of a watch",
            RequestName::Storage => "a request to the storage",
        }
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestHarm {
    /// The connection breaks before the request has its effect.
    Lost,
    /// The connection breaks after it, before the reply is out.
    ReplyLost,
    /// It is delivered twice. Not to the storage: its client resends what got no answer.
    Twice,
}

impl FaultKind {
    /// The code point that it waits for, if it waits for one.
    pub fn point(&self) -> Option<&str> {
        match self {
            FaultKind::PointPause { point, .. }
            | FaultKind::PointKill { point, .. }
            | FaultKind::RestartUnder { point, .. } => Some(point),
            _ => None,
        }
    }

    /// The nodes that it touches.
    pub fn nodes(&self) -> Vec<NodeName> {
        match self {
            FaultKind::Pause { node }
            | FaultKind::Suspend { node }
            | FaultKind::PointPause { node, .. }
            | FaultKind::ClockRate { node, .. }
            | FaultKind::ClockOffset { node, .. }
            | FaultKind::Kill { node }
            | FaultKind::PointKill { node, .. }
            | FaultKind::SilentDeath { node }
            | FaultKind::ClockStep { node, .. }
            | FaultKind::ClockStrobe { node, .. } => vec![*node],
            FaultKind::Cut { from, to, .. }
            | FaultKind::LinkDelay { from, to, .. }
            | FaultKind::SlowLink { from, to, .. }
            | FaultKind::Reset { from, to } => vec![*from, *to],
            FaultKind::SlowSync { .. } | FaultKind::DiskFailure { .. } => vec![NodeName::Storage],
            FaultKind::RestartUnder { node, server, .. } => vec![*node, *server],
            FaultKind::Leaderless | FaultKind::Compaction | FaultKind::CompactionCrash => {
                vec![NodeName::Etcd(1)]
            }
            FaultKind::ForcedRevoke
            | FaultKind::Request { .. }
            | FaultKind::LostRenewals
            | FaultKind::LeaseRunsOut
            | FaultKind::LostRevocations
            | FaultKind::OutsideDelete => Vec::new(),
        }
    }
}
