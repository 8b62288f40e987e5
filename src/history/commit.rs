//! etcd's commit log: what the store did, in which revision, and why.
//!
//! Written where the store applies a change, so it is truth and not anybody's opinion.

use serde::{Deserialize, Serialize};

/// One revision of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Counted from 1; it never repeats, even if a faulty store repeats revisions.
    pub index: u64,
    /// The store's revision after it.
    pub revision: i64,
    /// Why the store changed.
    pub cause: Cause,
    /// The member's monotonic clock when it applied this, in nanoseconds. Of a real server, whose
    /// clock nobody can read: a time on the recorder's clock before which it had not applied it.
    pub member_ns: u64,
    /// The keys that changed, in the order of their sub-revisions.
    pub events: Vec<KeyEvent>,
}

/// Why the store changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A put request.
    Put,
    /// A delete request.
    Delete,
    /// A transaction.
    Txn,
    /// Somebody asked to revoke this lease.
    Revoke(i64),
    /// This lease ran out.
    Expiry(i64),
    /// The store was restored from a backup.
    Restore,
}

/// A key that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEvent {
    /// Put or deleted.
    pub change: KeyChange,
    /// The key; bytes that are not UTF-8 are replaced.
    pub key: String,
    /// The revision in which this incarnation of the key was created.
    pub create_revision: i64,
    /// The lease it is (or was) attached to; 0 is none.
    pub lease: i64,
}

/// What happened to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyChange {
    /// Created or given a new value.
    Put,
    /// Deleted.
    Delete,
}

/// A change of a lease at the member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseEvent {
    /// The lease.
    pub lease: i64,
    /// What happened to it.
    pub change: LeaseChange,
    /// The member's monotonic clock, in nanoseconds.
    pub member_ns: u64,
}

/// What happened to a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseChange {
    /// Granted for this many seconds.
    Granted {
        /// The granted time to live, in seconds (not the asked one).
        ttl_s: i64,
    },
    /// A renewal was processed, whether its answer arrived or not.
    Renewed,
    /// It ran out and was revoked by the member.
    Expired,
    /// It was revoked by request.
    Revoked,
    /// The member leads, from its start or again: of all leases that there are, and the event names
    /// lease 0. Each lives for its full TTL from now and this much more.
    Promoted {
        /// In milliseconds: one election time-out.
        extend_ms: u64,
    },
}
