//! Workloads: what the clients do. One file each, and the catalog.
//!
//! A workload issues operations and records them; it injects no faults and judges nothing. The
//! client code is the one that runs for real: `concurrency` and `storage` do not know where they
//! are. To add one: a file here and a row below.

mod client;
mod lock_register;

use std::{future::Future, pin::Pin};

pub(crate) use client::{Ids, Process, Witness};
pub(crate) use lock_register::final_read;

use crate::system::Recipe;

/// A client's whole life on its node: it ends when it is told to stop.
pub(crate) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A kind of work.
pub(crate) struct Workload {
    /// Its name.
    pub(crate) name: &'static str,
    /// The keys that the final reads read.
    pub(crate) keys: &'static [&'static str],
    /// How its clients lock, unless the system has a lock of its own.
    pub(crate) recipe: Recipe,
    /// How many of a thousand holders think for a while after they have entered.
    pub(crate) thinkers: u32,
    /// The work of one client process.
    pub(crate) client: fn(Process) -> Life,
}

/// All workloads.
pub(crate) static CATALOG: [Workload; 3] =
    [lock_register::LOCK_REGISTER, lock_register::LEADER_REGISTER, lock_register::SLOW_REGISTER];
