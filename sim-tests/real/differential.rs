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

use std::{fs, thread};

use leasehold::conformance::{EtcdVersion, Recording, replay_case};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::{
    sequence::{Scope, sequences},
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

/// Sequences on a member that the earlier ones have used, too.
#[test]
fn the_model_answers_as_a_real_etcd_on_shared_servers() {
    let count = count() - count() / FRESH_EVERY;
    in_threads(Scope::Shared, count, 4096);
}

/// Sequences that compact and read everything, each on a fresh member.
#[test]
fn the_model_answers_as_a_real_etcd_on_fresh_servers() {
    in_threads(Scope::Fresh, count() / FRESH_EVERY, 200);
}

fn count() -> u32 {
    let set = std::env::var("PROPTEST_CASES").ok();
    set.map_or(SEQUENCES, |count| count.parse().expect("PROPTEST_CASES is a number"))
}

fn in_threads(scope: Scope, count: u32, shrinks_max: u32) {
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let count = count / u32::from(THREADS);
            thread::spawn(move || compare(scope, index, count, shrinks_max))
        })
        .collect();
    for thread in threads {
        if let Err(found) = thread.join().expect("no panic") {
            panic!("{found}");
        }
    }
}

/// Tries this many sequences; the error is the report on the smallest one that differs.
fn compare(scope: Scope, index: u8, count: u32, shrinks_max: u32) -> Result<(), String> {
    let config = Config {
        cases: count,
        max_shrink_iters: shrinks_max,
        failure_persistence: None,
        ..Config::default()
    };
    let seed = [index + 1; 32];
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let runtime = runtime();
    let shared = runtime.block_on(Member::start());
    let tried = std::cell::Cell::new(0);
    let outcome = runner.run(&sequences(scope), |sequence| {
        tried.set(tried.get() + 1);
        let names = match scope {
            Scope::Shared => Names::of_run(tried.get()),
            Scope::Fresh => Names::default(),
        };
        let steps = write::steps(&sequence, &names);
        let recorded = runtime.block_on(async {
            match scope {
                Scope::Shared => record(&shared, &steps).await,
                Scope::Fresh => record(&Member::start().await, &steps).await,
            }
        });
        differs(&recorded).map_or(Ok(()), |what| Err(TestCaseError::fail(what)))
    });
    let Err(TestError::Fail(_, smallest)) = outcome else {
        return outcome.map_err(|error| error.to_string());
    };
    // Once more with plain names on a fresh server, as recordings are.
    let steps = write::steps(&smallest, &Names::default());
    let recorded = runtime.block_on(async { record(&Member::start().await, &steps).await });
    let what = differs(&recorded).unwrap_or_else(|| "not on a fresh server".to_owned());
    Err(format!("{what}\nkept as {}", keep(scope, index, &recorded)))
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
