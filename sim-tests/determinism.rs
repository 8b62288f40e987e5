//! The same seed gives the same run: in fresh threads, in other processes, with other jobs, with
//! the log on. Debug against release is compared by CI, which has both builds.
//!
//! What this does not prove: that code which was not reached in these runs is deterministic too.

use std::process::{Command, Stdio};

use leasehold::{
    case::CaseOptions,
    history::hash::canonical_bytes,
    runner::{self, Run},
    scenario,
    seed::Seed,
};

const SEEDS: std::ops::Range<u64> = 0..50;

fn run(seed: u64) -> Run {
    let scenario = scenario::find("fenced-lock").unwrap();
    runner::run(&scenario.case(Seed(seed), CaseOptions::default())).unwrap()
}

/// Two runs in fresh threads have the same events, byte for byte, and the same hash.
#[test]
fn two_threads_agree() {
    for seed in SEEDS {
        let (one, two) = (run(seed), run(seed));
        let bytes = |run: &Run, at: usize| {
            let mut bytes = Vec::new();
            canonical_bytes(&run.history.events[at], &mut bytes);
            bytes
        };
        let events = one.history.events.len().min(two.history.events.len());
        if let Some(at) = (0..events).find(|at| bytes(&one, *at) != bytes(&two, *at)) {
            panic!(
                "seed {seed} parts at event {at}:\n{:?}\n{:?}",
                one.history.events[at], two.history.events[at]
            );
        }
        assert_eq!(one.history.events.len(), two.history.events.len(), "seed {seed}");
        assert_eq!(one.hash, two.hash, "seed {seed}: same events, other deliveries or draws");
    }
}

/// The run hashes that a process of its own prints, a line a seed.
fn hashes(jobs: &str, log: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["explore", "--seeds", "0..50", "--jobs", jobs, "--hashes"])
        .env("RUST_LOG", log)
        .stderr(Stdio::null())
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("the program prints text");
    text.lines().filter(|line| line.starts_with("hash ")).map(str::to_owned).collect()
}

/// Two processes, one job or two, log off or at its most talkative: the same hash for each seed,
/// and the same as in this process.
#[test]
fn processes_jobs_and_log_levels_agree() {
    let line = |seed| format!("hash {seed} {}", run(seed).hash);
    let reference: Vec<String> = SEEDS.map(line).collect();
    for (jobs, log) in [("1", "off"), ("2", "off"), ("2", "leasehold=trace")] {
        let printed = hashes(jobs, log);
        let differs = reference.iter().zip(&printed).find(|(a, b)| a != b);
        assert_eq!(differs, None, "jobs {jobs}, log {log}");
        assert_eq!(printed.len(), reference.len(), "jobs {jobs}, log {log}");
    }
}

/// Other seeds are other runs: a hash that never changes would prove nothing.
#[test]
fn seeds_differ() {
    assert_ne!(run(1).hash, run(2).hash);
}
