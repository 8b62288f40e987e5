//! Workloads: what the clients do. One file each, and the catalog.
//!
//! A workload issues operations and records them; it injects no faults and judges nothing. The
//! client code is the one that runs for real: `concurrency` and `storage` do not know where they
//! are. To add one: a file here and a row below.

mod client;
mod lock_register;
mod recipe;

use std::{future::Future, pin::Pin};

pub(crate) use client::{Ids, Process, Witness};
pub(crate) use lock_register::final_read;

/// What a client sends to the storage as its fencing token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The create revision of its owner key: the scheme that holds.
    Revision,
    /// The id of its lease: what contrib/lock does.
    Lease,
}

/// A client's whole life on its node: it ends when it is told to stop.
pub(crate) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A kind of work.
pub(crate) struct Workload {
    /// Its name.
    pub(crate) name: &'static str,
    /// The keys that the final reads read.
    pub(crate) keys: &'static [&'static str],
    /// The work of one client process.
    pub(crate) client: fn(Process) -> Life,
}

/// All workloads.
pub(crate) static CATALOG: [Workload; 2] =
    [lock_register::LOCK_REGISTER, lock_register::LEADER_REGISTER];
