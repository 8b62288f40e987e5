//! Drives recorded cases through a client's API and compares the answers.
//!
//! The recordings (`sim-tests/conformance`) hold requests and answers field by field; this module
//! makes them into calls of a client and its answers into the same form. What a client's API cannot
//! express (an unknown enumeration value, an operation of a txn that is empty) leaves its case out,
//! by name. Fields that its accessors hide are not compared.
//!
//! `case` walks the steps and knows no client; a client is a [`door::Door`]. `etcd_api` is the door
//! of etcd-client's API: whoever includes this module puts beside it a module `api` with these
//! names, so one source drives a real etcd and the simulated one.

pub mod answer;
pub mod ask;
pub mod case;
pub mod door;
pub mod etcd_api;
pub mod value;
