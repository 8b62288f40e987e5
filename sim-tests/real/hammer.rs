//! Eight real processes hammer counters in the fenced storage under one lock of a real etcd, while
//! they are stopped (SIGSTOP), continued and killed from a seed.
//!
//! They run the workload of the simulation and leave records as it does; `leasehold merge` puts
//! them in one order, and the checkers of the simulation judge it. The truth is a watch of the
//! lock's prefix from revision 1, complete or there is no verdict, and the storage's own log. What
//! a real etcd does not tell, when leases are renewed, is not judged. Each run must be eventful,
//! and the judge must be able to fail: see the runs without a fence, and the damaged histories.

mod crew;
mod watcher;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use leasehold::{
    checker::{self, Judgement, Property, Verdict},
    etcd::Client,
    history::{Event, EventKind, History, OpKind, RowResult, codec},
};
use nix::time::{ClockId, clock_gettime};

use self::{
    crew::{Crew, Done},
    watcher::Watcher,
};
use super::{member::Member, trio::Trio};

/// The lock's name that the program has by default.
const PREFIX: &str = "/lock/";
const CLIENTS: u8 = 8;

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has it");
    Duration::from(now).as_nanos() as u64
}

/// A judged run.
struct Outcome {
    history: History,
    judgement: Judgement,
    /// What `leasehold check` says, and its exit status.
    said: String,
    status: Option<i32>,
    done: Done,
}

impl Outcome {
    fn judged(&self, checker: &str) -> u64 {
        let of = |finding: &&checker::Finding| finding.checker == checker;
        self.judgement.findings.iter().find(of).map_or(0, |finding| finding.judged)
    }

    fn acquires(&self) -> u64 {
        self.judged("grant-validity")
    }

    /// The figures, for whoever reads a failure.
    fn tell(&self, name: &str) -> String {
        format!("{name}: {} acquires, {:?}\n{}", self.acquires(), self.done, self.said)
    }

    fn assert_pass(&self, name: &str) {
        assert_eq!(self.status, Some(0), "{}", self.tell(name));
        assert!(self.judgement.findings.iter().all(checker::Finding::is_good));
        assert!(self.judged("no-stale-write") > 0 && self.judged("lost-update") > 0);
    }
}

fn crew(name: &str, endpoints: &[&str]) -> Crew {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("hammer-{name}"));
    let _ = fs::remove_dir_all(&directory);
    Crew {
        seed: 1,
        guard: "monotonic",
        token: "revision",
        workload: "lock_register",
        clients: CLIENTS,
        traffic: Duration::from_secs(20),
        endpoints: endpoints.iter().map(|endpoint| (*endpoint).to_owned()).collect(),
        directory,
    }
}

/// Runs the crew on this etcd; `meanwhile` may harm etcd.
async fn run(crew: Crew, client: &Client, meanwhile: impl Future<Output = ()>) -> Outcome {
    let directory = crew.directory.clone();
    let watcher = Watcher::start(client, PREFIX);
    let mut running = crew.start().await;
    tokio::join!(running.strike(), meanwhile);
    let (nemesis, mut files, done) = running.settle().await;
    let commits = watcher.finish().await.expect("the watch is complete");
    for (name, events) in [("nemesis.jsonl", nemesis), ("watch.jsonl", commits)] {
        let file = directory.join(name);
        fs::write(&file, codec::encode(&History { events })).expect("written");
        files.push(file);
    }
    let merged = directory.join("merged.jsonl");
    let mut merge = leasehold(&["merge", "--out"]);
    let merge = merge.arg(&merged).args(&files).output().expect("the program can be run");
    assert!(merge.status.success(), "{}", String::from_utf8_lossy(&merge.stderr));
    let text = fs::read_to_string(&merged).expect("merged");
    let history = codec::decode(&text).expect("a history");
    let (said, status) = check(&merged);
    let judgement = checker::judge(&history, &BTreeMap::new());
    let outcome = Outcome { history, judgement, said, status, done };
    // The figures of the last run, for whoever wants to see them.
    let figures = directory.with_extension("figures");
    fs::write(figures, outcome.tell("figures")).expect("written");
    // What went wrong is kept for whoever looks into it.
    if outcome.status == Some(0) {
        let _ = fs::remove_dir_all(&directory);
    }
    outcome
}

fn leasehold(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments);
    command
}

fn check(file: &Path) -> (String, Option<i32>) {
    let output = leasehold(&["check"]).arg(file).output().expect("the program can be run");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// A fenced run, judged; it passed and was eventful.
async fn fenced(name: &'static str, workload: &'static str) -> Outcome {
    let member = Member::start().await;
    let crew = Crew { workload, ..crew(name, &[member.endpoint()]) };
    let outcome = run(crew, &member.client, async {}).await;
    outcome.assert_pass(name);
    let told = outcome.tell(name);
    let reached = |property| outcome.judgement.reached.contains(property);
    assert!(outcome.acquires() >= 12, "{told}");
    assert!(outcome.done.stops >= 3 && outcome.done.stops_at_check >= 1, "{told}");
    assert!(outcome.done.kills >= 1, "{told}");
    assert!(reached(Property::HandOverByExpiry) && reached(Property::Overlap), "{told}");
    outcome
}

/// The same run, with a record that does not agree with itself, or with one that is missing.
fn damaged_histories_are_flagged(history: &History) {
    let verdict = |history: &History, name: &str| {
        let findings = checker::judge(history, &BTreeMap::new()).findings;
        findings.into_iter().find(|finding| finding.checker == name).expect("there is one").verdict
    };
    let mut accepted = history.clone();
    let refused = accepted.events.iter_mut().find_map(|event| match &mut event.kind {
        EventKind::Apply(row) => {
            (row.kind == OpKind::Write && row.result == RowResult::Refused).then_some(row)
        }
        _ => None,
    });
    let row = refused.expect("a write was refused");
    (row.result, row.effect) = (RowResult::Admitted, true);
    let found = verdict(&accepted, "no-stale-write");
    assert!(found.violation().is_some(), "{found:?}");
    let without = |kept: fn(&Event) -> bool| {
        let kept = history.events.iter().filter(|event| kept(event)).cloned();
        let events = (0..).zip(kept).map(|(seq, event)| Event { seq, ..event }).collect();
        History { events }
    };
    let no_rows = without(|event| !matches!(event.kind, EventKind::Apply(_)));
    let no_commits = without(|event| !matches!(event.kind, EventKind::Commit(_)));
    for missing in [&no_rows, &no_commits] {
        let found = verdict(missing, "no-stale-write");
        assert!(matches!(found, Verdict::NotRun(_) | Verdict::Unknown(_)), "{found:?}");
    }
    assert!(!verdict(&no_rows, "lost-update").is_pass());
    assert!(!verdict(&no_commits, "grant-validity").is_pass());
}

#[tokio::test]
async fn eight_processes_hammer_under_a_mutex() {
    let outcome = fenced("mutex", "lock_register").await;
    // The harm was done where it hurts: a write arrived after a newer holder's first operation.
    assert!(outcome.judgement.classes.stale_refused >= 1, "{}", outcome.tell("mutex"));
    damaged_histories_are_flagged(&outcome.history);
}

#[tokio::test]
async fn eight_processes_hammer_under_an_election() {
    let outcome = fenced("election", "leader_register").await;
    assert!(outcome.judgement.classes.stale_refused >= 1, "{}", outcome.tell("election"));
}

/// What cannot hold, in up to three seeds: the checkers that find a violation, this one among them.
async fn flagged(name: &str, change: impl Fn(Crew) -> Crew, expected: &str) -> Vec<&'static str> {
    let mut told = Vec::new();
    for seed in 1..=3 {
        let member = Member::start().await;
        let crew =
            Crew { seed, traffic: Duration::from_secs(10), ..crew(name, &[member.endpoint()]) };
        let outcome = run(change(crew), &member.client, async {}).await;
        told.push(outcome.tell(name));
        let violated = |finding: &&checker::Finding| finding.verdict.violation().is_some();
        let by = outcome.judgement.findings.iter().filter(violated);
        let by: Vec<&str> = by.map(|finding| finding.checker).collect();
        if by.contains(&expected) {
            assert_eq!(outcome.status, Some(1), "{told:?}");
            return by;
        }
    }
    panic!("{expected} was not found to be violated: {told:#?}");
}

/// The control: without a fence the same processes do overwrite what a newer holder has written,
/// and the judge says so.
#[tokio::test]
async fn without_a_fence_the_judge_finds_the_stale_write() {
    let by = flagged("unfenced", |crew| Crew { guard: "unfenced", ..crew }, "no-stale-write").await;
    let at_storage = ["no-stale-write", "lost-update", "linearizability"];
    assert!(by.iter().all(|name| at_storage.contains(name)), "{by:?}");
}

/// The other control: a lease id as the token stays the same from tenure to tenure, and is not
/// ordered by who came first; with it the fence is none, and locks rightful owners out.
#[tokio::test]
async fn lease_ids_as_tokens_are_found_out_of_order() {
    let by = flagged("lease", |crew| Crew { token: "lease", ..crew }, "token-order").await;
    let may = ["token-order", "no-stale-write", "lost-update"];
    assert!(by.iter().all(|name| may.contains(name)), "{by:?}");
}

/// Three members, of which one is killed and started again while the clients work.
#[tokio::test]
async fn three_members_of_which_one_is_killed() {
    let mut trio = Trio::start().await;
    let endpoints = trio.endpoints();
    let endpoints: Vec<&str> = endpoints.iter().map(String::as_str).collect();
    let crew = Crew { traffic: Duration::from_secs(15), ..crew("trio", &endpoints) };
    let client = trio.client.clone();
    let outcome = run(crew, &client, trio.kill_and_restart()).await;
    outcome.assert_pass("trio");
    let told = outcome.tell("trio");
    assert!(outcome.acquires() >= 8, "{told}");
    assert!(outcome.judgement.reached.contains(Property::HandOverByExpiry), "{told}");
}
