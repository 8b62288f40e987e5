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

/// What came of driving every case of a version.
struct Pass {
    passed: usize,
    left_out: Vec<(String, &'static str)>,
    failed: Vec<String>,
}

fn drive_all(version: EtcdVersion) -> Pass {
    let mut pass = Pass { passed: 0, left_out: Vec::new(), failed: Vec::new() };
    for Case { name, case } in cases(version.release()) {
        let outcome =
            with_member(version, async move |client| drive(&EtcdApi(client), &case, 1, 0).await);
        match outcome {
            Outcome::Passed => pass.passed += 1,
            Outcome::LeftOut { reason, .. } => pass.left_out.push((name, reason)),
            failure => pass.failed.push(format!("{name}: {failure:?}")),
        }
    }
    pass
}

/// The facade answers as etcd does, in each case that it can express: of 3.4.23 and of 3.5.30.
#[test]
fn recorded_cases_pass_through_the_facade() {
    for version in EtcdVersion::ALL {
        let Pass { passed, left_out, failed } = drive_all(version);
        assert!(failed.is_empty(), "{version}: {} fail:\n{}", failed.len(), failed.join("\n"));
        let left_out: Vec<_> = left_out.iter().map(|(name, why)| (name.as_str(), *why)).collect();
        assert_eq!(left_out, LEFT_OUT);
        assert_eq!(passed, 262 - LEFT_OUT.len());
    }
}

/// The file of client code that also runs against a real etcd.
#[test]
fn one_source_of_client_code_runs_here() {
    let outcome = with_member(EtcdVersion::default(), async |client| drop_in::all(client).await);
    assert!(outcome.is_ok(), "not as against a real etcd: {outcome:?}");
}
