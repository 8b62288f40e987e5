//! Drives recorded cases through a client's API and compares the answers.
//!
//! The recordings (`sim-tests/conformance`) hold requests and answers field by field; this module
//! makes them into calls of a client and its answers into the same form. What a client's API cannot
//! express (an unknown enumeration value, an operation of a txn that is empty) leaves its case out,
//! by name. Fields that its accessors hide are not compared.
//!
//! `case` walks the steps and knows no client; a client is a [`door::Door`]. The one of
//! etcd-client's API is the module `etcd_api` beside this one.

pub mod ask;
pub mod case;
pub mod door;
pub mod value;
