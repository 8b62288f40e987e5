//! The fault plan: an explicit, serialisable list of faults.
//!
//! A plan is drawn from the seed (or written by hand) before the run starts, and then executed. So
//! it can be printed, saved, replayed and shrunk. It knows nothing of how a fault is done.

mod amount;
mod kind;
mod point;
mod simpler;
mod validate;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::amount::Amount;
pub use self::kind::{FaultKind, RequestHarm, RequestName};
pub use self::point::{CLIENT_POINTS, STORAGE_POINTS, is_own_point};

/// The version of the plan format.
pub const PLAN_VERSION: u32 = 1;
/// More faults than this are refused: a plan is to be read by people.
pub const FAULTS_MAX: usize = 256;
/// No fault lasts longer.
pub const LENGTH_MAX: Duration = Duration::from_secs(600);

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

impl Fault {
    /// Start after the beginning of the traffic.
    pub fn start(&self) -> Duration {
        Duration::from_millis(self.start_ms)
    }

    /// How long it lasts.
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.length_ms)
    }
}
