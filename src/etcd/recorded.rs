//! The recordings of real servers, driven through the client facade against a simulated member.
//!
//! The module `conformance` replays every request against the model; this pass adds what is around
//! the model: the facade, the transport, the member's clock, cancellation. The driver is the one
//! that the `real` tests run against a real etcd. The file of client code that must run in both
//! builds (`drop_in`) runs here too.

use std::{sync::Arc, thread, time::Duration};

use madsim::runtime::{Handle, Runtime};

use self::{
    client_driver::case::{Outcome, drive},
    etcd_api::{EtcdApi, LEFT_OUT},
    recording::{Case, cases},
};
use super::{
    Client,
    server::{EtcdVersion, MemberOptions, MemberState, serve},
};
use crate::{net::NetSim, time::sim::ClockSim};

#[path = "../../sim-tests/client_driver/mod.rs"]
mod client_driver;
#[path = "../../sim-tests/drop_in.rs"]
mod drop_in;
#[path = "../../sim-tests/etcd_api/mod.rs"]
mod etcd_api;
#[path = "../../sim-tests/recording.rs"]
mod recording;

mod api {
    pub use crate::{
        etcd::*,
        time::{sleep, timeout},
    };
}

/// Runs the body with a client of a fresh member.
fn with_member<T: Send + 'static>(
    version: EtcdVersion,
    body: impl AsyncFnOnce(Client) -> T + Send + 'static,
) -> T {
    let thread = thread::spawn(move || {
        let runtime = Runtime::with_seed_and_config(1, madsim::Config::default());
        runtime.add_simulator::<ClockSim>();
        runtime.add_simulator::<NetSim>();
        runtime.block_on(async move {
            let member = Handle::current().create_node().build();
            NetSim::current().set_address(member.id(), [10, 0, 0, 1].into());
            let options = MemberOptions { version, ..MemberOptions::default() };
            member.spawn(serve(Arc::new(MemberState::new(options)), Arc::new(())));
            // The member listens before the first client comes.
            madsim::time::sleep(Duration::from_millis(10)).await;
            let client = Client::connect(["10.0.0.1:2379"], None).await.expect("well formed");
            let result = body(client).await;
            Handle::current().kill(member.id());
            madsim::time::sleep(Duration::from_millis(10)).await;
            result
        })
    });
    thread.join().expect("the run does not panic")
}

/// Drives every case of a version and demands that all pass which the API can express.
fn drive_all(version: EtcdVersion) {
    let (mut passed, mut left_out, mut failed) = (0, Vec::new(), Vec::new());
    for Case { name, case } in cases(version.release()) {
        let outcome =
            with_member(version, async move |client| drive(&EtcdApi(client), &case, 1, 0).await);
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::LeftOut { reason, .. } => left_out.push((name, reason)),
            failure => failed.push(format!("{name}: {failure:?}")),
        }
    }
    assert!(failed.is_empty(), "{} of them fail:\n{}", failed.len(), failed.join("\n"));
    let left_out: Vec<_> = left_out.iter().map(|(name, why)| (name.as_str(), *why)).collect();
    assert_eq!(left_out, LEFT_OUT);
    assert_eq!(passed, 262 - LEFT_OUT.len());
}

/// The facade answers as etcd 3.4.23 does, in each case that it can express.
#[test]
fn cases_of_3_4_pass_through_the_facade() {
    drive_all(EtcdVersion::V3_4);
}

/// The facade answers as etcd 3.5.30 does, in each case that it can express.
#[test]
fn cases_of_3_5_pass_through_the_facade() {
    drive_all(EtcdVersion::V3_5);
}

/// The file of client code that also runs against a real etcd.
#[test]
fn one_source_of_client_code_runs_here() {
    with_member(EtcdVersion::default(), async |client| {
        drop_in::all(client).await.expect("the same as against a real etcd");
    });
}
