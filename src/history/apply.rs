//! The storage's apply log: what reached it, what its state machine did, what it answered.
//!
//! Written by the shell around the state machine. The judge recomputes the mark from the admitted
//! rows; it never reads a guard's own mark.

use serde::{Deserialize, Serialize};

/// The number of a request within its holding: a resend carries the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId {
    /// The wire token.
    pub token: i64,
    /// Rises with every operation of the holding, reads included.
    pub seq: u64,
}

/// A row of the apply log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyRow {
    /// Which life of the storage process, counted from 1.
    pub boot: u32,
    /// The shell's own number for the request; [`Boundary`] events name the same.
    pub request: u64,
    /// Place in the order of application, counted from 1 over all boots.
    pub index: u64,
    /// What one lock protects; the empty name is the storage's one default domain.
    pub domain: String,
    /// The request number, if the client gave one and the storage keeps a table of them.
    pub id: Option<RequestId>,
    /// The client's own mark for the attempt (a header); the harness puts the operation's id here.
    pub tag: Option<u64>,
    /// The token on the wire; `None` if the request had none.
    pub token: Option<i64>,
    /// Read or write.
    pub kind: OpKind,
    /// The key.
    pub key: String,
    /// Of a write the value that was offered, of a read the value that was answered.
    pub value: Option<String>,
    /// What the storage did with it.
    pub result: RowResult,
    /// Whether the data changed by it.
    pub effect: bool,
}

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// Reads a key.
    Read,
    /// Writes a key.
    Write,
}

/// What became of a request at the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowResult {
    /// The fence let it through, whatever else was answered ("key not found" included).
    Admitted,
    /// The fence refused it.
    Refused,
    /// Answered from the table of requests: it had been applied before.
    Replayed,
    /// Malformed, over a limit, out of sequence or overload: the fence was not asked.
    Rejected,
}

/// A request at the storage's boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// It arrived.
    Arrival {
        /// Which life of the storage process.
        boot: u32,
        /// The shell's number for it.
        request: u64,
    },
    /// Its answer was handed to the network.
    Answer {
        /// Which life of the storage process.
        boot: u32,
        /// The shell's number for it.
        request: u64,
    },
}
