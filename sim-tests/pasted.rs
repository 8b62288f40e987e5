//! A test as `explore` prints it, pasted: it is compiled, it runs, and it is the very text.

use leasehold::{
    judge::BrokenRule,
    shrink::{Shrunk, Symptom},
    system::OwnParts,
    testing::replay_case,
};

/// What is pasted below is, character for character, what the small case is printed as.
#[test]
fn the_pasted_test_is_what_is_printed() {
    let pasted = include_str!("pasted.rs").split("// --- pasted\n").nth(1);
    let pasted = pasted.expect("the mark");
    let json = pasted.split("r#\"").nth(1).and_then(|text| text.split("\"#").next());
    let judged = replay_case(json.expect("a case")).run().expect("it runs");
    let broken = BrokenRule { checker: "no-stale-write".into(), rule: "stale-accepted".into() };
    let original = judged.run.case.clone();
    let symptom = Symptom::Broken(broken);
    let shrunk = Shrunk { symptom, outcome: Ok(judged), original, runs: 0, finished: true };
    assert_eq!(shrunk.test_source(OwnParts::NONE), pasted);
    for (storage, lock, expected) in [
        (true, false, "case.storage(MyStorage::default).assert_passes();"),
        (false, true, "case.lock::<MyLock>().assert_passes();"),
        (true, true, "case.storage(MyStorage::default).lock::<MyLock>().assert_passes();"),
    ] {
        let source = shrunk.test_source(OwnParts { storage, lock });
        assert!(source.contains(expected), "{source}");
    }
}

// --- pasted
/// no-stale-write: stale-accepted: pause client-1 at client.before_write (passage 1) for 9.990 s,
/// from 1.000 s (seed 1, 2 clients).
#[test]
fn no_stale_write_stale_accepted_seed_1() {
    let case = leasehold::testing::replay_case(
        r#"{
  "case_version": 1,
  "seed": 1,
  "scenario": "fenced-lock",
  "options": {
    "bug": "",
    "clients": 2,
    "guard": "unfenced",
    "holdings": 0,
    "profile": "all",
    "readers": 0,
    "token": "revision",
    "ttl_s": 0
  },
  "plan": {"faults": [
    {"start_ms":1000,"length_ms":9990,
     "kind":{"point_pause":{"node":"client-1","point":"client.before_write","occurrence":1}}}
  ]}
}"#,
    );
    case.assert_violates("no-stale-write", "stale-accepted");
}
