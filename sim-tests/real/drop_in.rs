//! The file of client code that runs in both builds, here against a real etcd.

use super::member::Member;

mod api {
    pub use leasehold::{
        etcd::*,
        time::{sleep, timeout},
    };
}

#[path = "../drop_in.rs"]
mod client_code;

/// The same file runs against the simulated member as a unit test of `etcd`.
#[tokio::test]
async fn one_source_of_client_code_runs_here() {
    let member = Member::start().await;
    let outcome = client_code::all(member.client.clone()).await;
    assert!(outcome.is_ok(), "not as against the simulated member: {outcome:?}");
}
