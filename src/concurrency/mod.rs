//! Sessions, locks and elections on etcd: a port of etcd's `client/v3/concurrency` package.
//!
//! A [`Session`] is a lease that is kept alive, with a deadline on the client's own clock. A
//! [`Mutex`] is a queue of keys under one prefix: the key with the least create revision owns the
//! lock, and this create revision is the holder's [`FencingToken`]; a [`Held`] is what a holder
//! carries about. An [`Election`] is the same
//! queue, whose owner also tells a value; an [`Observer`] watches one without taking part.
//!
//! Relies on etcd's client facade (`crate::etcd`), on `crate::time` for every wait, and on
//! `crate::point` for the named windows; it does not know whether it is simulated. Stricter than
//! the Go package where that one is known to go wrong: a waiter ends as soon as its own key is
//! gone (etcd #19597), an acquired lock was seen to be owned (etcd #11456), every request has a
//! time-out, and an unlock of unknown outcome is settled before the name is locked again.
//!
//! A lock can still be lost while its holder believes in it. Only the resource can stop the late
//! write, by checking the token. What follows says where the line is.
//!
#![doc = include_str!("promises.md")]

mod election;
mod error;
mod held;
mod key;
mod lease;
mod loss;
mod mutex;
mod observer;
mod place;
mod queue;
mod renewal;
mod request;
mod session;
mod token;
mod turn;

pub use election::Election;
pub use error::{Definiteness, ElectionError, LockError};
pub use held::Held;
pub use key::{owner_key, queue_prefix};
pub use loss::Loss;
pub use mutex::Mutex;
pub use observer::{Leader, Leadership, Observer};
pub use session::{Session, SessionEnd, SessionOptions};
pub use token::FencingToken;
pub use turn::WaitProfile;
