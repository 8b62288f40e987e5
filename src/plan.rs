//! The fault plan: an explicit, serialisable list of faults.
//!
//! A plan is drawn from the seed (or written by hand) before the run starts, and then executed. So
//! it can be printed, saved, replayed and shrunk. It knows nothing of how a fault is done.

mod amount;

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

pub use amount::Amount;

use crate::history::NodeName;

/// The version of the plan format.
pub const PLAN_VERSION: u32 = 1;
/// More faults than this are refused: a plan is to be read by people.
pub const FAULTS_MAX: usize = 256;
/// No fault lasts longer.
pub const LENGTH_MAX: Duration = Duration::from_secs(600);

/// No wall clock is further off, in milliseconds: a day.
const OFFSET_MS_MAX: i64 = 86_400_000;

/// Faults, in order of their start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What is done to the cluster.
    pub faults: Vec<Fault>,
}

/// One harm, with its start, its end and its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Start, in milliseconds of true time since the traffic began.
    pub start_ms: u64,
    /// How long it lasts, in milliseconds. A forced revoke has no length.
    pub length_ms: u64,
    /// What it is.
    pub kind: FaultKind,
}

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
}

/// A plan that cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too long to be read, let alone shrunk.
    #[error("plan has {found} faults, at most {FAULTS_MAX} are allowed: remove some")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// A fault has a value that makes no sense.
    #[error("fault {index}: {field} is {value}, expected {expected}")]
    Field {
        /// Counted from 0.
        index: usize,
        /// Which value.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
}

impl Plan {
    /// Says what is wrong with the plan, if anything. `clients` is how many there are.
    pub fn validate(&self, clients: u8) -> Result<(), PlanError> {
        if self.faults.len() > FAULTS_MAX {
            return Err(PlanError::TooMany { found: self.faults.len() });
        }
        let mut before = 0;
        for (index, fault) in self.faults.iter().enumerate() {
            fault.validate(index, clients)?;
            if fault.start_ms < before {
                return Err(PlanError::Field {
                    index,
                    field: "start_ms",
                    value: fault.start_ms.to_string(),
                    expected: "no less than that of the fault before it",
                });
            }
            before = fault.start_ms;
        }
        Ok(())
    }
}

impl Fault {
    /// Start after the beginning of the traffic.
    pub fn start(&self) -> Duration {
        Duration::from_millis(self.start_ms)
    }

    /// How long it lasts.
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.length_ms)
    }

    fn validate(&self, index: usize, clients: u8) -> Result<(), PlanError> {
        let fail = |field, value: String, expected| {
            Err(PlanError::Field { index, field, value, expected })
        };
        if self.length() > LENGTH_MAX {
            return fail("length_ms", self.length_ms.to_string(), "at most 600000");
        }
        if self.start() > LENGTH_MAX {
            return fail("start_ms", self.start_ms.to_string(), "at most 600000");
        }
        for node in self.kind.nodes() {
            let known = match node {
                NodeName::Nemesis => false,
                NodeName::Etcd(n) => n == 1,
                NodeName::Storage => true,
                NodeName::Client(n) => (1..=clients).contains(&n),
            };
            if !known {
                let expected = "a node of this case: etcd-1, storage, or one of its clients";
                return fail("node", node.to_string(), expected);
            }
        }
        match &self.kind {
            FaultKind::ClockRate { permille, .. } if !(100..=10_000).contains(permille) => {
                fail("permille", permille.to_string(), "100 to 10000")
            }
            FaultKind::PointPause { occurrence, .. } if !(1..=1000).contains(occurrence) => {
                fail("occurrence", occurrence.to_string(), "1 to 1000")
            }
            FaultKind::PointPause { point, .. } if !is_point_name(point) => {
                fail("point", format!("{point:?}"), "a name such as client.before_write")
            }
            FaultKind::LinkDelay { delay_ms, .. } if *delay_ms > 600_000 => {
                fail("delay_ms", delay_ms.to_string(), "at most 600000")
            }
            FaultKind::ClockOffset { offset_ms, .. }
                if !(-OFFSET_MS_MAX..=OFFSET_MS_MAX).contains(offset_ms) =>
            {
                fail("offset_ms", offset_ms.to_string(), "at most a day either way")
            }
            FaultKind::Cut { from, to, .. } | FaultKind::LinkDelay { from, to, .. }
                if from == to =>
            {
                fail("to", to.to_string(), "another node than from")
            }
            FaultKind::Kill { node: NodeName::Storage } => {
                let expected = "a client or etcd-1: the storage keeps nothing on disk yet";
                fail("node", NodeName::Storage.to_string(), expected)
            }
            _ => Ok(()),
        }
    }
}

impl FaultKind {
    /// The nodes that it touches.
    pub fn nodes(&self) -> Vec<NodeName> {
        match self {
            FaultKind::Pause { node }
            | FaultKind::Suspend { node }
            | FaultKind::PointPause { node, .. }
            | FaultKind::ClockRate { node, .. }
            | FaultKind::ClockOffset { node, .. }
            | FaultKind::Kill { node } => vec![*node],
            FaultKind::Cut { from, to, .. } | FaultKind::LinkDelay { from, to, .. } => {
                vec![*from, *to]
            }
            FaultKind::ForcedRevoke => Vec::new(),
        }
    }
}

/// Names of code points are words, joined by a dot: nothing else may reach a terminal.
fn is_point_name(name: &str) -> bool {
    name.len() <= 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.')
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = seconds(self.length_ms);
        match &self.kind {
            FaultKind::Pause { node } => write!(f, "pause {node} for {length}")?,
            FaultKind::Suspend { node } => write!(f, "suspend {node} for {length}")?,
            FaultKind::PointPause { node, point, occurrence } => {
                write!(f, "pause {node} at {point} (passage {occurrence}) for {length}")?
            }
            FaultKind::Cut { from, to, both_ways: true } => {
                write!(f, "cut {from} <-> {to} for {length}")?
            }
            FaultKind::Cut { from, to, both_ways: false } => {
                write!(f, "cut {from} -> {to} for {length}")?
            }
            FaultKind::LinkDelay { from, to, delay_ms } => {
                write!(f, "delay {from} -> {to} by {} for {length}", seconds(*delay_ms))?
            }
            FaultKind::ClockRate { node, permille } => write!(
                f,
                "run the clock of {node} at {}.{:03} of true time for {length}",
                permille / 1000,
                permille % 1000
            )?,
            FaultKind::ClockOffset { node, offset_ms } => {
                write!(f, "set the wall clock of {node} off by {offset_ms} ms for {length}")?
            }
            FaultKind::ForcedRevoke => write!(f, "revoke the lease of the lock's owner")?,
            FaultKind::Kill { node } => write!(f, "kill {node}, restart it after {length}")?,
        }
        write!(f, ", from {}", seconds(self.start_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind) -> Fault {
        Fault { start_ms: 1500, length_ms: 3100, kind }
    }

    /// A fault reads as a sentence.
    #[test]
    fn faults_read_as_sentences() {
        let kind = FaultKind::PointPause {
            node: NodeName::Client(1),
            point: "client.before_write".into(),
            occurrence: 2,
        };
        let text = fault(kind).to_string();
        let expected = "pause client-1 at client.before_write (passage 2) for 3.100 s, \
                        from 1.500 s";
        assert_eq!(text, expected);
    }

    /// Each kind of nonsense is refused with its field.
    #[test]
    fn nonsense_is_refused() {
        let (c1, c9) = (NodeName::Client(1), NodeName::Client(9));
        let cases = [
            (FaultKind::Pause { node: c9 }, "node is client-9"),
            (FaultKind::ClockRate { node: c1, permille: 0 }, "permille is 0"),
            (FaultKind::Cut { from: c1, to: c1, both_ways: true }, "to is client-1"),
            (FaultKind::Kill { node: NodeName::Storage }, "node is storage"),
            (FaultKind::Kill { node: NodeName::Client(0) }, "node is client-0"),
            (FaultKind::ClockOffset { node: c1, offset_ms: i64::MIN }, "offset_ms is -9223"),
            (FaultKind::LinkDelay { from: c1, to: c9, delay_ms: u64::MAX }, "node is client-9"),
            (
                FaultKind::PointPause { node: c1, point: "\u{1b}[31m".into(), occurrence: 1 },
                "point is \"\\u{1b}[31m\"",
            ),
        ];
        for (kind, expected) in cases {
            let plan = Plan { faults: vec![fault(kind)] };
            let message = plan.validate(3).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let later = Fault { start_ms: 2000, ..fault(FaultKind::ForcedRevoke) };
        let plan = Plan { faults: vec![later, fault(FaultKind::ForcedRevoke)] };
        assert!(plan.validate(3).is_err(), "the second starts before the first");
        let plan = Plan { faults: vec![fault(FaultKind::ForcedRevoke); FAULTS_MAX + 1] };
        assert_eq!(plan.validate(3), Err(PlanError::TooMany { found: FAULTS_MAX + 1 }));
    }
}
