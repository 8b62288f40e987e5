//! Conformance: recordings of real etcd servers, replayed against the model of one.
//!
//! A [`Recording`] is a file of cases (`sim-tests/conformance`); each case ran against a fresh
//! server with nothing else to do. [`replay`] asks the model the same, request by request and as
//! plain values, so that requests are in it that no client library sends (an unknown enumeration
//! value, an empty operation). An answer must be the recorded one in every field; a case passes as
//! a whole.
//!
//! The transport and the client facade are left out here: they have tests of their own. A recorded
//! crash of the real server is not imitated: such a step passes if the model gives the refusal with
//! which newer releases replaced the crash.

mod answer;
mod ask;
mod compare;
mod lease;
mod recording;
mod replay;
mod score;

pub use crate::etcd::model::version::{EtcdVersion, UnknownVersion};
pub use compare::Difference;
pub use recording::{Case, FILE_BYTES_MAX, Recording, RecordingError, Step};
pub use replay::{Cause, Mismatch, replay_case};
pub use score::{Failure, Report, Score, replay};

#[cfg(test)]
mod tests;
