//! The live twin: recorded cases against a real etcd, to prove the driver and the recordings.
//!
//! Every case runs against a member of its own, several at a time: most of a case is waiting.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{
    client::{
        client_driver::case::{Outcome, drive},
        etcd_api::{EtcdApi, LEFT_OUT},
    },
    member::Member,
};
use crate::recording::{Case, cases};

/// How many members run at once.
const MEMBERS: usize = 12;
/// A busy machine makes a remaining time to live this much shorter than it was when recorded.
const SLACK_S: i64 = 2;

/// Each case that etcd-client can express gets the recorded answers from a real etcd.
#[tokio::test]
async fn recorded_cases_pass_against_a_real_etcd() {
    let version = running_version().await;
    let recorded = if version.starts_with("3.4.") { "3.4.23" } else { "3.5.30" };
    let slots = Arc::new(Semaphore::new(MEMBERS));
    let mut runs = Vec::new();
    for case in cases(recorded) {
        let (slots, version) = (slots.clone(), version.clone());
        runs.push(tokio::spawn(async move {
            let _slot = slots.acquire_owned().await.expect("never closed");
            (case.name.clone(), run(case, recorded, &version).await)
        }));
    }
    let (mut passed, mut left_out, mut failed) = (0, Vec::new(), Vec::new());
    for run in runs {
        match run.await.expect("a case does not panic") {
            (_, Outcome::Passed) => passed += 1,
            (name, Outcome::LeftOut { reason, .. }) => left_out.push((name, reason)),
            (name, outcome) => failed.push(format!("{name}: {outcome:?}")),
        }
    }
    assert!(failed.is_empty(), "{} of them fail:\n{}", failed.len(), failed.join("\n"));
    let left_out: Vec<_> = left_out.iter().map(|(name, why)| (name.as_str(), *why)).collect();
    assert_eq!(left_out, LEFT_OUT);
    assert_eq!(passed, 262 - LEFT_OUT.len());
}

async fn running_version() -> String {
    let member = Member::start().await;
    member.client.clone().status().await.expect("etcd serves").version().to_owned()
}

async fn run(case: Case, recorded: &str, version: &str) -> Outcome {
    let text = case.case.to_string().replace(recorded, version);
    let case = serde_json::from_str(&text).expect("still JSON");
    let member = Member::start().await;
    let base = member.revision().await;
    drive(&EtcdApi(member.client.clone()), &case, base, SLACK_S).await
}
