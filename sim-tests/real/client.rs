//! The client driver over etcd-client itself.

mod api {
    pub use leasehold::{
        etcd::*,
        time::{sleep, timeout},
    };
}

#[path = "../client_driver/mod.rs"]
pub mod client_driver;
#[path = "../etcd_api/mod.rs"]
pub mod etcd_api;
