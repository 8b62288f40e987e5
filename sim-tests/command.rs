//! The program as a user meets it: good and bad requests, exit status, one clear line.

use std::process::{Command, Output};

pub(super) fn leasehold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .output()
        .expect("the program runs")
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A `RUST_LOG` that means nothing is told, in one line, and not taken for silence.
#[test]
fn a_log_filter_that_means_nothing_is_told() {
    for (filter, status) in [("leasehold=loud", 2), ("leasehold=warn,=,x[", 2), ("", 0)] {
        let output = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .arg("--version")
            .env("RUST_LOG", filter)
            .output()
            .expect("the program runs");
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{filter}: {error}");
        assert_eq!(error.lines().count(), usize::from(status == 2), "{filter}: {error}");
        let told = error.contains(&format!("RUST_LOG is {filter:?}: "));
        assert_eq!(told, status == 2, "{error}");
    }
}

/// Every bad request ends with status 2 and exactly one line, which names what is wrong.
#[test]
fn bad_requests_get_one_line_and_status_2() {
    let cases: [(&[&str], &str); 40] = [
        (&["explore", "--scenario", "nope"], "unknown scenario \"nope\": choose one of"),
        (&["explore", "--profile", "x"], "unknown profile \"x\": choose one of all, calm, gc"),
        (&["explore", "--guard", "strict"], "unknown guard \"strict\": choose one of"),
        (&["explore", "--token", "uuid"], "unknown token \"uuid\": choose one of"),
        (&["explore", "--strategy", "blind"], "choose one of random, swarm, guided"),
        (&["bugs", "--strategy", "blind"], "choose one of random, swarm, guided"),
        (&["bugs", "--compare", "--strategy", "guided"], "--strategy"),
        (&["explore", "--seeds", "9..3"], "--seeds is \"9..3\""),
        (&["explore", "--seeds", "0"], "--seeds is \"0\""),
        (&["explore", "--seeds", "ten"], "--seeds is \"ten\""),
        (&["explore", "--seeds", "-1"], "--seeds"),
        (&["explore", "--clients", "0"], "clients is 0, expected 1 to"),
        (&["explore", "--clients", "300"], "--clients is 300, expected 1 to"),
        (&["explore", "--clients", "-1"], "--clients is -1, expected 1 to"),
        (&["explore", "--ttl", "0"], "--ttl is 0, expected 1 to 20"),
        (&["explore", "--ttl", "x"], "--ttl"),
        (&["explore", "--readers", "1001"], "--readers is 1001, expected 0 to 1000"),
        (&[], "no command given"),
        (&["replay"], "<TOKEN|FILE>"),
        (&["explore", "--jobs", "0"], "--jobs is 0, expected 1 to"),
        (&["explore", "--frobnicate"], "--frobnicate"),
        (&["replay", "lh3.AAAA"], "broken replay token"),
        (
            &["replay", "hello"],
            "\"hello\" is not a replay token, which starts with \"lh3.\", and there",
        ),
        (&["replay", "lh2.AAAA"], "reads \"lh3.\": replay it with the version of leasehold that"),
        (&["replay", "lh3.AAAAA"], "broken replay token: it is cut or changed; copy the whole"),
        (&["explore", "--report", "/proc"], "--report /proc: no file can be written there"),
        (&["explore", "--save", "/proc"], "--save /proc: no file can be written there"),
        (&["demo", "--by", "magic"], "\"magic\": choose one of revoke, expiry, pause"),
        (&["dance"], "dance"),
        (&["lock", "job", "--", "true"], "`cargo real run --release -- lock`"),
        (&["storage", "--guard", "equal"], "`cargo real run --release -- storage`"),
        (&["client", "1", "--help"], "`cargo real run --release -- client`"),
        (&["conformance"], "<DIR>"),
        (&["conformance", "no-such-dir"], "no-such-dir: "),
        (&["conformance", "src"], "src: no recordings (*.json) in it"),
        (&["conformance", "sim-tests/data"], "contrib-storage-cases.json"),
        (&["merge"], "<FILE>"),
        (&["merge", "no-such-file"], "no-such-file: "),
        (&["merge", "README.md"], "README.md: line 1: not a history"),
        (&["check", "Cargo.toml"], "Cargo.toml: line 1: not a history"),
    ];
    for (arguments, expected) in cases {
        let output = leasehold(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error} lacks {expected}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

/// A foreign token, a token of another format and a cut one are told apart.
#[test]
fn a_token_of_another_format_is_said_to_be_that() {
    let output = leasehold(&["replay", "lh9.AAAA"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("format \"lh9.\""), "{}", text(&output.stderr));
}

/// A passing exploration ends with status 0 and its bound; a failing one with 1, its evidence and a
/// command, which replays the very same run and ends with 1 too.
#[test]
fn a_violation_is_told_and_replayed() {
    let pass = leasehold(&["explore", "--seeds", "5"]);
    assert_eq!(pass.status.code(), Some(0), "{}", text(&pass.stderr));
    let few = "verdict    pass: 5 runs; too few to say how many seeds of this profile fail";
    assert!(text(&pass.stdout).contains(few), "{}", text(&pass.stdout));
    let pass = leasehold(&["explore", "--seeds", "30", "--profile", "calm"]);
    let bound = "verdict    pass: 30 runs; with 95 % confidence fewer than 10.000 % of the seeds";
    assert!(text(&pass.stdout).contains(bound), "{}", text(&pass.stdout));

    let fail = leasehold(&["explore", "--seeds", "20", "--guard", "unfenced", "--fail-fast"]);
    let told = text(&fail.stdout);
    assert_eq!(fail.status.code(), Some(1), "{told}");
    for expected in ["checker no-stale-write: violation", "stale-accepted", "shown by   events"] {
        assert!(told.contains(expected), "{told} lacks {expected}");
    }
    assert!(told.lines().any(|line| line.starts_with("> ")), "no event is marked: {told}");
    let token = told
        .lines()
        .find_map(|line| line.strip_prefix("replay     leasehold replay "))
        .expect("the command that replays it");
    let file = format!("{}/replayed.jsonl", env!("CARGO_TARGET_TMPDIR"));
    let replay = leasehold(&["replay", token, "--history", &file]);
    let shown = text(&replay.stdout);
    assert_eq!(replay.status.code(), Some(1), "{shown}");
    assert!(shown.contains(": the same run"), "{shown}");
    // What is saved is judged as the run was.
    let again = leasehold(&["check", &file]);
    let judged = text(&again.stdout);
    assert_eq!(again.status.code(), Some(1), "{judged}{}", text(&again.stderr));
    assert!(judged.contains("no-stale-write"), "{judged}");
}

/// Recordings that match end with status 0 and the score; one changed value with status 1, the
/// place, and what was expected there.
#[test]
fn a_recording_that_does_not_match_is_told() {
    let pass = leasehold(&["conformance", "sim-tests/conformance/etcd-3.5.30"]);
    let told = text(&pass.stdout);
    assert_eq!(pass.status.code(), Some(0), "{told}");
    assert!(told.ends_with("version    etcd 3.5.30 262/262\nscore      262/262\n"), "{told}");

    let recorded = include_str!("conformance/etcd-3.5.30/maintenance.json");
    let changed = recorded.replacen("\"errors\":[]", "\"errors\":[\"none\"]", 1);
    assert_ne!(recorded, changed);
    let dir = std::env::temp_dir().join(format!("leasehold-changed-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("deeper")).expect("a directory for the test");
    std::fs::write(dir.join("deeper/changed.json"), changed).expect("it can be written");
    let fail = leasehold(&["conformance", &dir.display().to_string()]);
    let wrong = leasehold(&["conformance", &dir.display().to_string(), "--etcd-version", "3.9"]);
    std::fs::remove_dir_all(&dir).expect("it can be removed");
    let told = text(&fail.stdout);
    assert_eq!(fail.status.code(), Some(1), "{told}");
    assert!(told.contains(
        "failure    etcd 3.5.30 maintenance, case \"status\", step 1 (status): \
         at ok.errors[0]: expected \"none\", got nothing"
    ));
    assert!(told.ends_with("score      1/2\n"), "{told}");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("etcd \"3.9\" is not simulated"));
}

/// A range that ends at the greatest number ends.
#[test]
fn the_last_seed_is_a_seed() {
    let range = format!("{}..{}", u64::MAX - 2, u64::MAX);
    let output = leasehold(&["explore", "--seeds", &range, "--jobs", "3", "--hashes"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let hashes = text(&output.stdout).lines().filter(|line| line.starts_with("hash ")).count();
    assert_eq!(hashes, 2);
}

/// The same seeds in another split give the same sums.
#[test]
fn a_range_of_seeds_is_what_it_says() {
    let output = leasehold(&["explore", "--seeds", "3..5", "--hashes"]);
    let lines = text(&output.stdout);
    let seeds: Vec<&str> =
        lines.lines().filter_map(|line| line.strip_prefix("hash ")?.split(' ').next()).collect();
    assert_eq!(seeds, ["3", "4"]);
}

/// The strategies are compared in one table: a row a bug, a column a strategy and profile.
#[test]
fn strategies_are_compared_in_one_table() {
    let few = ["--seeds", "3", "--all-seeds", "3", "--enough", "1", "--jobs", "1"];
    let output = leasehold(&[&["bugs", "unfenced", "--compare"], &few[..]].concat());
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let starts = ["| bug | profile | random | swarm | guided |", "|---|", "| `unfenced` | `gc` | "];
    for (line, start) in table.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.lines().all(|line| line.matches('|').count() == 9), "{table}");
}

/// The first catch of a bug is shrunk on demand, and how small it became is said.
#[test]
fn the_catch_of_a_bug_is_shrunk() {
    let few = ["--seeds", "3", "--all-seeds", "3", "--enough", "1", "--shrink"];
    let output = leasehold(&[&["bugs", "strictly-above"], &few[..]].concat());
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}");
    let mut smallest = lines.lines().filter(|line| line.contains("smallest"));
    let case = smallest.next().expect("the case");
    assert!(case.contains("smallest: no fault at all (seed 0, 1 client"), "{case}");
    let sum = smallest.next().expect("the medians");
    assert!(sum.starts_with("smallest   median of 1 catches: 0 faults (most 0), "), "{sum}");
}

/// A guided exploration says so, and gives the same runs with any number of jobs.
#[test]
fn a_guided_exploration_does_not_depend_on_jobs() {
    let guided = |jobs: &str| {
        let range = ["--seeds", "5..9", "--strategy", "guided", "--hashes", "--jobs", jobs];
        let output = leasehold(&[&["explore"], &range[..]].concat());
        let lines = text(&output.stdout);
        assert!(lines.contains("\nstrategy   guided\n"), "{lines}");
        let hashes = lines.lines().filter(|line| line.starts_with("hash "));
        hashes.map(str::to_owned).collect::<Vec<_>>()
    };
    let one = guided("1");
    assert_eq!((one.len(), &one), (4, &guided("3")));
}

/// A history from a file is judged again, with the exit status of its verdict: pass, violation, and
/// a checker that had nothing to judge. A violation is shown where it happened.
#[test]
fn a_history_is_judged_again() {
    let check = |file: &str| {
        let output = leasehold(&["check", &format!("sim-tests/histories/{file}.jsonl")]);
        (output.status.code(), text(&output.stdout))
    };
    let (status, said) = check("no-stale-write/late-write-after-newer-read.bad");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("no-stale-write     violation"), "{said}");
    assert!(said.contains("stale-accepted     1"), "{said}");
    assert!(said.ends_with("\nverdict            violation of no-stale-write\n"), "{said}");
    let (status, said) = check("assumptions/complete.ok");
    assert_eq!(status, Some(4), "{said}");
    assert!(said.contains("not run"), "{said}");
    let verdict = said.lines().next_back().expect("the last line");
    let start = "verdict            unknown: nothing to judge for ";
    assert!(verdict.starts_with(start) && verdict.contains("session-honesty"), "{said}");
}

/// What cannot be printed is told, unless the reader has gone away: then the program ends silently,
/// as a broken pipe ends it.
#[test]
#[cfg(target_os = "linux")]
fn an_output_that_fails_is_told() {
    let run = |stdout: std::process::Stdio, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let output = command.args(arguments).env_remove("RUST_LOG").stdout(stdout).output();
        let output = output.expect("the program runs");
        (output.status.code(), text(&output.stderr))
    };
    let history = "sim-tests/histories/grant-validity/hand-over-to-a-waiter.ok.jsonl";
    for arguments in [["bugs", "--list"], ["merge", history]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
        let (status, error) = run(full.into(), &arguments);
        assert_eq!((status, error.lines().count()), (Some(3), 1), "{error}");
        assert!(error.starts_with("error: standard output: No space left"), "{error}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(run(writer.into(), &arguments), (Some(141), String::new()));
    }
}

/// The record of a process that was killed before its first line was whole is named and left out;
/// what is no record ends the merge.
#[test]
fn a_record_that_is_not_begun_spoils_no_merge() {
    let file = "sim-tests/histories/grant-validity/hand-over-to-a-waiter.ok.jsonl";
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-begun.jsonl");
    let path = path.to_str().expect("UTF-8");
    let whole = leasehold(&["merge", file]);
    for begun in ["", "{\"leasehold_hist"] {
        std::fs::write(path, begun).expect("written");
        let merged = leasehold(&["merge", path, file]);
        let said = text(&merged.stderr);
        assert_eq!(merged.status.code(), Some(0), "{said}");
        assert!(said.contains("warning") && said.contains("not-begun.jsonl"), "{said}");
        assert_eq!(merged.stdout, whole.stdout);
    }
    std::fs::write(path, "{\"something\":\"else\"}").expect("written");
    let refused = leasehold(&["merge", path, file]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("not-begun.jsonl: line 1: not a history"));
}

/// A merged history is one that can be judged; merging it again changes nothing.
#[test]
fn a_history_merged_is_itself() {
    let file = "sim-tests/histories/grant-validity/hand-over-to-a-waiter.ok.jsonl";
    let once = leasehold(&["merge", file]);
    assert_eq!(once.status.code(), Some(0), "{}", text(&once.stderr));
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("merged-once.jsonl");
    let path = path.to_str().expect("UTF-8");
    assert_eq!(leasehold(&["merge", file, "--out", path]).status.code(), Some(0));
    assert_eq!(std::fs::read(path).expect("written"), once.stdout);
    assert_eq!(leasehold(&["merge", path]).stdout, once.stdout);
}
