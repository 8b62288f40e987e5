//! Differential fuzz: random sequences against a real etcd and against the model, compared.
//!
//! A sequence is driven through etcd-client; the answers of the real etcd make it a recording, and
//! the runner of recordings replays that against the model. So what differs is shrunk by proptest
//! and written as a recording, ready to be kept in `sim-tests/conformance/found/`.
//!
//! Sequences share a server: each has a prefix of keys and lease ids of its own, and revisions are
//! relative. Those that compact or read all keys get a fresh one. Seeds are fixed; PROPTEST_CASES
//! sets another number of sequences. Not here: expiry (it depends on the clock) and watches.

mod sequence;
mod write;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs, thread,
};

use leasehold::conformance::{EtcdVersion, Recording, replay_case};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::{
    sequence::{Op, Scope, sequences},
    write::Names,
};
use super::{
    client::{
        client_driver::{case::Run, value},
        etcd_api::EtcdApi,
    },
    member::Member,
};

/// How many sequences are tried if PROPTEST_CASES does not say.
const SEQUENCES: u32 = 1000;
/// One sequence in so many has a fresh server.
const FRESH_EVERY: u32 = 20;
/// How many threads share each kind of work; each has a member of its own.
const THREADS: u8 = 2;

/// What all sequences together must have met, or they prove little: operations that were answered,
/// and texts of refusals.
const REACHED: &[&str] = &[
    "compact",
    "delete_range",
    "lease_grant",
    "lease_leases",
    "lease_revoke",
    "lease_time_to_live",
    "put",
    "range",
    "txn",
    "etcdserver: duplicate key given in txn request",
    "etcdserver: key is not provided",
    "etcdserver: key not found",
    "etcdserver: lease already exists",
    "etcdserver: lease is provided",
    "etcdserver: mvcc: required revision has been compacted",
    "etcdserver: mvcc: required revision is a future revision",
    "etcdserver: requested lease not found",
    "etcdserver: too large lease TTL",
    "etcdserver: value is provided",
];
/// From how many sequences on that is demanded.
const REACHED_FROM: u32 = 400;

/// Says how a recording is wrong, if it is.
type Judge = fn(&Value) -> Option<String>;

/// Sequences on members that earlier ones have used, and such that compact and read everything,
/// each on a fresh member.
#[test]
fn the_model_answers_as_a_real_etcd() {
    let fresh = count() / FRESH_EVERY;
    let mut threads = Vec::new();
    for (scope, count) in [(Scope::Shared, count() - fresh), (Scope::Fresh, fresh)] {
        for index in 0..THREADS {
            let count = count.div_ceil(u32::from(THREADS));
            threads.push(thread::spawn(move || compare(scope, index, count, differs)));
        }
    }
    let mut reached = BTreeSet::new();
    for thread in threads {
        match thread.join().expect("no panic") {
            Ok(met) => reached.extend(met),
            Err(found) => panic!("{found}"),
        }
    }
    let missed: Vec<_> = REACHED.iter().filter(|what| !reached.contains(**what)).collect();
    assert!(missed.is_empty() || count() < REACHED_FROM, "not reached: {missed:?} of {reached:#?}");
}

/// An answer that a real etcd did not give is found.
#[tokio::test]
async fn a_wrong_answer_is_found() {
    let member = Member::start().await;
    let put = json!({ "op": "put", "args": { "key": "a", "value": "1" } });
    let get = json!({ "op": "range", "args": { "key": "a" } });
    let mut recorded = record(&member, &[put, get]).await;
    assert_eq!(differs(&recorded), None);
    recorded["cases"][0]["steps"][1]["expect"]["ok"]["kvs"][0]["version"] = json!(2);
    assert!(differs(&recorded).is_some_and(|what| what.contains("version")));
}

/// What is wrong is shrunk to little and kept as a recording. Here, that a delete deletes.
#[test]
fn what_is_wrong_is_shrunk_and_kept() {
    let found = compare(Scope::Shared, 9, 200, |recorded| {
        let mut steps = recorded["cases"][0]["steps"].as_array()?.iter();
        let deletes = |step: &Value| step["expect"]["ok"]["deleted"].as_i64() > Some(0);
        steps.any(deletes).then(|| "it deletes".to_owned())
    });
    let found = found.expect_err("sequences delete");
    let path = found.strip_prefix("it deletes\nkept as ").expect("a path");
    let kept = fs::read_to_string(path).expect("it was kept");
    let recording = Recording::parse("found.json", &kept).expect("a recording");
    // A put and a delete; the rest ends the leases.
    assert_eq!(recording.cases[0].steps.len(), 2 + sequence::LEASES);
    fs::remove_file(path).expect("it can be removed");
}

fn count() -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.map_or(SEQUENCES, |count| count.parse().expect("PROPTEST_CASES is a number"))
}

/// Tries this many sequences and gives what they met; the error is the report on the smallest one
/// that differs.
fn compare(scope: Scope, index: u8, count: u32, judge: Judge) -> Result<BTreeSet<String>, String> {
    let config = Config {
        cases: count,
        // A fresh server takes a second.
        max_shrink_iters: if scope == Scope::Shared { 4096 } else { 200 },
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[index + 1; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let runtime = runtime();
    let shared = runtime.block_on(Member::start());
    let (tried, met) = (Cell::new(0), RefCell::new(BTreeSet::new()));
    let outcome = runner.run(&sequences(scope), |sequence| {
        tried.set(tried.get() + 1);
        let recorded = runtime.block_on(async {
            match scope {
                Scope::Shared => {
                    record(&shared, &write::steps(&sequence, &Names::of_run(tried.get()))).await
                }
                Scope::Fresh => record_afresh(&sequence).await,
            }
        });
        note(&recorded, &mut met.borrow_mut());
        judge(&recorded).map_or(Ok(()), |what| Err(TestCaseError::fail(what)))
    });
    let Err(TestError::Fail(_, smallest)) = outcome else {
        return outcome.map(|()| met.into_inner()).map_err(|error| error.to_string());
    };
    // Once more with plain names on a fresh server, as recordings are.
    let recorded = runtime.block_on(record_afresh(&smallest));
    let what = judge(&recorded).unwrap_or_else(|| "not on a fresh server".to_owned());
    Err(format!("{what}\nkept as {}", keep(scope, index, &recorded)))
}

async fn record_afresh(sequence: &[Op]) -> Value {
    record(&Member::start().await, &write::steps(sequence, &Names::default())).await
}

/// Notes what was answered and with which texts was refused.
fn note(recorded: &Value, met: &mut BTreeSet<String>) {
    for step in recorded["cases"][0]["steps"].as_array().into_iter().flatten() {
        let refused = step["expect"]["error"]["message"].as_str();
        let what = refused.or(step["op"].as_str()).unwrap_or_default();
        if !met.contains(what) {
            met.insert(what.to_owned());
        }
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Drives the steps and makes a recording of them and their answers.
async fn record(member: &Member, steps: &[Value]) -> Value {
    let mut client = member.client.clone();
    let version = client.status().await.expect("etcd serves").version().to_owned();
    let mut run = Run::new(EtcdApi(client), member.revision().await);
    let mut recorded = Vec::new();
    for step in steps {
        let answer = run.step(step).await.expect("etcd-client can express it");
        let mut step = step.clone();
        step["expect"] = value::sort_keys(answer);
        recorded.push(step);
    }
    let case =
        json!({ "name": "found by differential fuzz", "base_revision": 1, "steps": recorded });
    json!({ "schema": 1, "etcd_version": version, "area": "found", "cases": [case] })
}

/// How the model's answers differ from the recorded ones, if they do.
fn differs(recorded: &Value) -> Option<String> {
    let recording = Recording::parse("found.json", &recorded.to_string());
    let recording = match recording {
        Ok(recording) => recording,
        Err(error) => return Some(format!("an answer that recordings do not have: {error}")),
    };
    let old = recording.etcd_version.starts_with("3.4.");
    let version = if old { EtcdVersion::V3_4 } else { EtcdVersion::V3_5 };
    replay_case(&recording.cases[0], version).err().map(|mismatch| mismatch.to_string())
}

/// Writes a recording below the target folder and gives its path.
fn keep(scope: Scope, index: u8, recorded: &Value) -> String {
    let path = format!("{}/found-{scope:?}-{index}.json", env!("CARGO_TARGET_TMPDIR"));
    let text = serde_json::to_string_pretty(recorded).expect("JSON can be written");
    fs::write(&path, text).expect("the target folder can be written");
    path
}
