//! The recordings against madsim-etcd-client's own simulated server, as far as its API allows.
//!
//! It is a second, independent simulator of etcd behind (a part of) the same client API. The score
//! says what the difference is worth; the README states both. A panic of that server ends the case
//! as a mismatch and not this test: each case has a thread and a runtime of its own. Its own client
//! of a dead server is not waited for: a case has a limit in simulated time.

mod door;

use std::{collections::BTreeMap, thread, time::Duration};

use etcd_client::{Client, SimServer};
use madsim::runtime::{Handle, Runtime};

use crate::{
    client_driver::case::{Outcome, drive},
    recording::{Case, cases},
};

const ADDRESS: &str = "10.0.0.1:2379";
/// A case that takes longer than this in simulated time waits for an answer that will not come.
const CASE_MAX: Duration = Duration::from_secs(120);

/// The cases that its API can express, and those of them that it answers as etcd does.
const EXPRESSIBLE: u32 = 71;
const PASSED: u32 = 9;
/// The cases that end its server or its client in a panic.
const PANICS: &[&str] = &[
    "compaction/compact basic",
    "compaction/compact does not bump revision",
    "compaction/compact future error",
    "compaction/compact twice error",
    "compaction/compact keeps the live value at the compacted revision",
];

/// What came of a case there.
#[derive(Debug, PartialEq)]
enum Fate {
    Ended(Outcome),
    Hung,
    Panicked,
}

fn run(case: Case) -> Fate {
    let thread = thread::spawn(move || {
        let runtime = Runtime::with_seed_and_config(1, madsim::Config::default());
        runtime.block_on(async move {
            let server = Handle::current().create_node().ip([10, 0, 0, 1].into()).build();
            let client = Handle::current().create_node().ip([10, 0, 0, 2].into()).build();
            server.spawn(async {
                SimServer::builder().serve(ADDRESS.parse().expect("an address")).await
            });
            madsim::time::sleep(Duration::from_millis(10)).await;
            let driven = client.spawn(async move {
                let door = door::SimServerApi(Client::connect([ADDRESS], None).await.expect("up"));
                // It begins at revision 0.
                drive(&door, &case.case, 0, 1).await
            });
            match madsim::time::timeout(CASE_MAX, driven).await {
                Ok(outcome) => Fate::Ended(outcome.expect("not aborted")),
                Err(_) => Fate::Hung,
            }
        })
    });
    thread.join().unwrap_or(Fate::Panicked)
}

/// The score of madsim-etcd-client's `SimServer`: exact, as its runs are deterministic.
#[test]
fn score_of_the_other_simulator() {
    let mut score = BTreeMap::from([("passed", 0u32), ("left out", 0), ("failed", 0), ("hung", 0)]);
    let (mut panicked, mut all) = (Vec::new(), 0u32);
    let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
    for case in cases("3.5.30") {
        all += 1;
        let name = case.name.clone();
        let what = match run(case) {
            Fate::Ended(Outcome::Passed) => "passed",
            Fate::Ended(Outcome::LeftOut { op, reason }) => {
                *reasons.entry(format!("{op}: {reason}")).or_default() += 1;
                "left out"
            }
            Fate::Ended(Outcome::Failed { .. }) => "failed",
            Fate::Hung => "hung",
            Fate::Panicked => {
                panicked.push(name);
                continue;
            }
        };
        *score.entry(what).or_default() += 1;
    }
    let expressible = all - score["left out"];
    let found = (score["passed"], expressible, all);
    assert_eq!((PASSED, EXPRESSIBLE, 262), found, "{score:?} {reasons:#?} {panicked:#?}");
    assert_eq!(PANICS, panicked);
}
