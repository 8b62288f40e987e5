//! The record of a run: pure data, no simulation, no I/O.
//!
//! A [`History`] is a totally ordered list of [`Event`]s. It holds what the clients asked and were
//! told ([`op`]), and the two records of truth that the checkers decide from: etcd's commit log
//! ([`commit`]) and the storage's apply log ([`apply`]). Order is the sequence number `seq`, never
//! time: in a simulation two things often happen at one instant.
//!
//! Everything here is serialisable with a version, so that an old history can be judged again.

pub mod apply;
pub mod codec;
pub mod commit;
pub mod event;
#[cfg(feature = "harness")]
pub mod hash;
pub mod merge;
pub mod op;
mod possible;
#[cfg(feature = "harness")]
pub mod recorder;

pub use apply::{ApplyRow, Boundary, OpKind, RequestId, RowResult};
pub use commit::{Cause, Commit, KeyChange, KeyEvent, LeaseChange, LeaseEvent};
pub use event::{Event, EventKind, FaultAction, History, NodeName, Phase};
pub use op::{Function, HoldingId, OpId, Outcome, Reply};
#[cfg(feature = "harness")]
pub use recorder::Recorder;
