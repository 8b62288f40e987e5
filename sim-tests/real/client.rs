//! The client driver over etcd-client itself.

mod api {
    pub use leasehold::{
        etcd::*,
        time::{sleep, timeout},
    };
}

#[path = "../client_driver/mod.rs"]
pub mod driver;
