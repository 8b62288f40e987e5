//! The fenced key-value storage: what a lock protects, and the place where a late write is stopped.
//!
//! [`protocol`] is the JSON of etcd's `contrib/lock`, with two optional fields; [`guard`] decides
//! whether a request may pass the fence; [`store`] is the state machine, synchronous and without
//! a clock; [`service`] numbers requests and keeps the apply log; [`server`] and [`client`] are the
//! thin HTTP/1.1 shells over `crate::net`. Nothing here knows whether it is simulated.
//!
//! The state lives in memory and dies with the process, as that of `contrib/lock` does, or on a
//! [`disk`]: `log` keeps what changed it, and `journal` holds each answer back until it is there.

pub mod admin;
pub mod client;
mod connection;
pub mod counter;
mod decode;
pub mod disk;
pub mod encoding;
pub mod error;
mod frame;
pub mod guard;
mod journal;
mod limits;
mod log;
pub mod protocol;
pub mod server;
pub mod service;
pub mod store;
mod table;

pub use client::{Client, ClientOptions, Holding};
pub use counter::{Count, Counters};
pub use disk::Disk;
pub use encoding::EncodingError;
pub use error::{Definiteness, StorageError};
pub use guard::{Ask, Decision, Guard, GuardKind};
pub use limits::Limits;
pub use log::LogError;
pub use protocol::{ProtocolError, Request, Response};
pub use service::{ApplyLog, Service, ServiceOptions};
pub use store::{Applied, StateMachine, Store};

/// The header that carries the client's own mark for an attempt: a decimal number up to 2^64 - 1.
/// It goes into the apply log as [`crate::history::ApplyRow::tag`] and nowhere else.
pub const TAG_HEADER: &str = "x-request-id";
