//! One event of a history, and the history itself.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{ApplyRow, Boundary, Commit, Function, HoldingId, LeaseEvent, OpId, Outcome};

/// A machine of the cluster, or the injector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeName {
    /// The process that injects faults; only its name in a history.
    Nemesis,
    /// An etcd member, counted from 1.
    Etcd(u8),
    /// The fenced storage.
    Storage,
    /// A client, counted from 1; number 0 is the one that reads the final state.
    Client(u8),
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeName::Nemesis => f.pad("nemesis"),
            NodeName::Storage => f.pad("storage"),
            NodeName::Etcd(n) => f.pad(&format!("etcd-{n}")),
            NodeName::Client(n) => f.pad(&format!("client-{n}")),
        }
    }
}

/// The text is no name of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown node {0:?}: use storage, nemesis, etcd-N or client-N with N up to 255")]
pub struct UnknownNode(String);

impl FromStr for NodeName {
    type Err = UnknownNode;

    fn from_str(text: &str) -> Result<Self, UnknownNode> {
        let number = |digits: &str| digits.parse::<u8>().ok();
        match text.split_once('-') {
            None if text == "nemesis" => Some(NodeName::Nemesis),
            None if text == "storage" => Some(NodeName::Storage),
            Some(("etcd", n)) => number(n).filter(|n| *n > 0).map(NodeName::Etcd),
            Some(("client", n)) => number(n).map(NodeName::Client),
            _ => None,
        }
        .ok_or_else(|| UnknownNode(text.to_owned()))
    }
}

impl Serialize for NodeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self);
        }
        let code = match self {
            NodeName::Nemesis => 0u16,
            NodeName::Storage => 1,
            NodeName::Etcd(n) => 0x100 | u16::from(*n),
            NodeName::Client(n) => 0x200 | u16::from(*n),
        };
        code.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for NodeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return String::deserialize(deserializer)?.parse().map_err(D::Error::custom);
        }
        let code = u16::deserialize(deserializer)?;
        match (code >> 8, (code & 0xff) as u8) {
            (0, 0) => Ok(NodeName::Nemesis),
            (0, 1) => Ok(NodeName::Storage),
            (1, n) => Ok(NodeName::Etcd(n)),
            (2, n) => Ok(NodeName::Client(n)),
            _ => Err(D::Error::custom(format!("unknown node code {code}"))),
        }
    }
}

/// One event: where it stands in the order, when and where it happened, and what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Place in the total order, counted from 0 without gaps.
    pub seq: u64,
    /// True time since the start of the run, in nanoseconds. No node sees this clock.
    pub at_ns: u64,
    /// Where it happened.
    pub node: NodeName,
    /// What happened.
    pub kind: EventKind,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run entered a phase.
    Phase(Phase),
    /// A client starts an operation. A client has at most one open at a time.
    Invoke {
        /// Unique in the run.
        op: OpId,
        /// The holding that it belongs to; a lock operation names the holding it may begin.
        holding: Option<HoldingId>,
        /// What is asked.
        f: Function,
    },
    /// The operation is over for the client.
    Return {
        /// The operation that was invoked.
        op: OpId,
        /// What the client knows now.
        outcome: Outcome,
    },
    /// The client's code saw that its session had ended while it held the lock.
    LossNoticed {
        /// The holding that it gave up.
        holding: HoldingId,
    },
    /// The client's code asked its session whether the lock is still held.
    Held {
        /// The holding in question.
        holding: HoldingId,
        /// The answer.
        held: bool,
        /// The node's own monotonic clock, in nanoseconds.
        local_ns: u64,
        /// The session's deadline on the same clock. An acquire is followed by such an event right
        /// after its ok: what it was granted past this deadline it should not have been granted.
        deadline_ns: u64,
    },
    /// A row of etcd's commit log: truth.
    Commit(Commit),
    /// A lease began, was renewed, or ended, at the member: truth.
    Lease(LeaseEvent),
    /// A request reached the storage, or its answer left it.
    Storage(Boundary),
    /// A row of the storage's apply log: truth.
    Apply(ApplyRow),
    /// Something happened to a fault of the plan.
    Fault {
        /// Its index in the plan.
        index: u32,
        /// What.
        action: FaultAction,
    },
    /// The node's process was killed: its memory is gone.
    Killed,
    /// The node's process runs again.
    Restarted,
    /// A named code point was passed (recorded where a fault waits for it, or when it is rare).
    Point {
        /// Its name, such as `client.before_write`.
        name: String,
    },
    /// The node's tasks stand still from here on: truth. Its clock goes on unless a [`Rate`] says
    /// otherwise.
    ///
    /// [`Rate`]: EventKind::Rate
    Stop,
    /// The node's tasks run again.
    Go,
    /// The state of one direction of a link from here on: truth. A link that was never named is
    /// open and without delay.
    Link {
        /// Where messages come from.
        from: NodeName,
        /// Where they go.
        to: NodeName,
        /// Whether they get through: false while they are held, lost or refused.
        open: bool,
        /// How much later than usual a message arrives that is sent now, in milliseconds. Messages
        /// of one connection keep their order, so this holds up what is sent later, too.
        delay_ms: u64,
    },
    /// The node's monotonic clock runs at this part of true time from here on, in thousandths; 0
    /// while it stands still: truth. Recorded of every node when it is made: what is judged by a
    /// node's clock is judged only of nodes of which this is known.
    Rate {
        /// 1,000 is true time.
        permille: u32,
    },
    /// A call with a deadline has ended, however it ended; recorded by its caller right after it,
    /// without anything that waits in between. All times are on the caller's own monotonic clock,
    /// in nanoseconds.
    Deadline {
        /// The call.
        op: OpId,
        /// When it was made.
        started_ns: u64,
        /// The deadline that it was given.
        deadline_ns: u64,
        /// When it had ended.
        ended_ns: u64,
        /// How long after its deadline it may still clean up, by what it states; only time counts
        /// in which the caller runs.
        cleanup_ns: u64,
    },
}

/// The five phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Servers start; clients are made.
    Setup,
    /// Clients work; the injector executes the plan.
    Traffic,
    /// All faults are over.
    Heal,
    /// Clients finish what they have begun, within a bound.
    Settle,
    /// The final state is read.
    FinalReads,
}

/// What happened to a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// It was applied.
    Begin,
    /// It was healed.
    End,
    /// How often it changed something while it lasted: messages held, polls held back, sleeps
    /// moved. A fault that ends with 0 had no effect and counts as such.
    Effect(u64),
    /// It could not be applied, and why (its target was already down, nobody held the lock).
    Skipped(String),
}

/// A whole run's record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// In order of `seq`.
    pub events: Vec<Event>,
}
