//! What clients ask and are told.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An operation, unique in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpId(pub u64);

/// A holding: one acquire and all that is done under it. Unique in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HoldingId(pub u64);

impl fmt::Display for HoldingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}", self.0)
    }
}

/// What an operation asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// Make a session with this time to live, in seconds.
    OpenSession {
        /// Asked, not granted.
        ttl_s: i64,
    },
    /// Wait for the lock.
    Lock {
        /// The lock's name; its queue is the keys `name/…`.
        name: String,
    },
    /// Take the lock if nobody has it.
    TryLock {
        /// The lock's name.
        name: String,
    },
    /// Give the lock back.
    Unlock {
        /// The lock's name.
        name: String,
    },
    /// End the session: its lease is revoked.
    CloseSession,
    /// The fenced read after the lock: it announces the holder's token to the storage.
    Enter {
        /// What the lock protects.
        domain: String,
        /// The key that is read.
        key: String,
    },
    /// A fenced read.
    Read {
        /// What the lock protects.
        domain: String,
        /// The key.
        key: String,
    },
    /// A write under the token.
    Write {
        /// What the lock protects.
        domain: String,
        /// The key.
        key: String,
        /// The new value; unique in the run, so that a read tells whose it is.
        value: String,
        /// The fenced read (an operation of the same holding) that this value was computed from.
        based_on: Option<OpId>,
    },
    /// A read without a token, after everything healed.
    FinalRead {
        /// What the lock protects.
        domain: String,
        /// The key.
        key: String,
    },
}

/// How an operation ended, for the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It happened.
    Ok(Reply),
    /// It certainly had no effect, and why.
    Fail(String),
    /// It may have happened, now or later, and why nobody knows.
    Unknown(String),
}

/// What a successful operation answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Nothing to tell.
    Done,
    /// The lock is held.
    Acquired {
        /// The owner key in etcd, `name/<lease id in hex>`.
        key: String,
        /// The token that goes to the storage under this holding.
        token: i64,
    },
    /// The session is open.
    Session {
        /// Its lease.
        lease: i64,
        /// The granted time to live, in seconds.
        ttl_s: i64,
    },
    /// What was read; `None` if the key is not there.
    Value(Option<String>),
}
