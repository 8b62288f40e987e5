//! Exploration spread over machines, and what an exploration leaves: results, cases, tokens.

use std::{fs, path::Path};

use leasehold::{case::ReplayToken, history::hash::RunHash};

use super::command::{leasehold, text};

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("UTF-8").to_owned()
}

/// Bad requests end with status 2 and one line that names what is wrong.
#[test]
fn bad_requests_get_one_line_and_status_2() {
    let corpus = "sim-tests/corpus/late-write-refused.json";
    let wrong = file("wrong-case.json");
    let case = fs::read_to_string(corpus).expect("a case").replace("\"seed\": 1", "\"seed\": -1");
    fs::write(&wrong, case).expect("it can be written");
    let cases: [(&[&str], &str); 11] = [
        (&["explore", "--shard", "4/3"], "--shard \"4/3\" is no shard: expected k/n"),
        (&["explore", "--shard", "-1/3"], "--shard \"-1/3\" is no shard"),
        (&["explore", "--seeds", "2", "--shard", "3/3"], "shard 3/3 of seeds 0..2 has no seed"),
        (&["explore", "--json", "--hashes"], "'--json' cannot be used with '--hashes'"),
        (&["explore", "--seeds", "1", "--save", "README.md"], "--save README.md: cannot make"),
        (&["merge", "--results", "README.md"], "README.md: line 1: not results of an explor"),
        (&["merge", "--results", "no-such-file"], "no-such-file: "),
        (&["merge", "--results", "README.md", "--out", "F"], "cannot be used with '--out"),
        (&["replay", "no-such-case.json"], "no-such-case.json: "),
        (&["replay", "README.md"], "README.md: not JSON: "),
        (&["replay", &wrong], "wrong-case.json: field \"case.seed\": "),
    ];
    for (arguments, expected) in cases {
        let output = leasehold(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error} lacks {expected}");
        let one_line = error.lines().filter(|line| !line.contains("/1 seeds")).count() == 1;
        assert!(one_line, "{arguments:?}: {error}");
    }
}

/// The results of an exploration in a file, and its exit status.
fn results(name: &str, arguments: &[&str]) -> (String, Option<i32>) {
    let seeds: &[&str] = if arguments.contains(&"--seeds") { &[] } else { &["--seeds", "24"] };
    let all = [&["explore", "--json"], seeds, arguments].concat();
    let output = leasehold(&all);
    let path = file(name);
    fs::write(&path, &output.stdout).expect("it can be written");
    (path, output.status.code())
}

/// Three shares, joined, print what one exploration of all seeds prints, the first failure with its
/// small case included, and end with its status; a passing one and a failing one.
#[test]
fn shares_joined_say_what_the_whole_says() {
    for (guard, status) in [("unfenced", 1), ("monotonic", 0)] {
        let (whole, ended) = results(&format!("{guard}.jsonl"), &["--guard", guard]);
        assert_eq!(ended, Some(status));
        let mut arguments = vec!["merge".to_owned(), "--results".to_owned()];
        for shard in ["2/3", "3/3", "1/3"] {
            let name = format!("{guard}-{}.jsonl", &shard[..1]);
            arguments.push(results(&name, &["--guard", guard, "--shard", shard]).0);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (joined, of_one) = (leasehold(&arguments), leasehold(&["merge", "--results", &whole]));
        let (joined_text, of_one_text) = (text(&joined.stdout), text(&of_one.stdout));
        assert_eq!(joined_text, of_one_text);
        assert_eq!((joined.status.code(), of_one.status.code()), (Some(status), Some(status)));
        assert!(joined_text.contains("seeds 0..24\n"), "{joined_text}");
        // The same words as an exploration, which alone knows how long it took.
        let explored = leasehold(&["explore", "--seeds", "24", "--guard", guard]);
        let explored = text(&explored.stdout);
        let timeless = |text: &str| {
            let with_time =
                |line: &&str| !["runs  ", "simula"].contains(&&line[..line.len().min(6)]);
            text.lines().filter(with_time).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(timeless(&joined_text), timeless(&explored));
    }
}

/// A share alone, and an exploration that ended early, are no pass of the whole: what is missing is
/// named and the status is that of unknown. Numbers that cannot be are refused with their file.
#[test]
fn a_part_is_no_pass_of_the_whole() {
    let merge = |path: &str| {
        let output = leasehold(&["merge", "--results", path]);
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (path, ended) = results("one-of-two.jsonl", &["--seeds", "6", "--shard", "1/2"]);
    assert_eq!(ended, Some(0));
    let (status, told, _) = merge(&path);
    assert_eq!(status, Some(4), "{told}");
    assert!(told.contains("\nmissing    seeds 0..6 shard 2/2\n"), "{told}");
    assert!(told.ends_with("verdict    unknown: 3 runs passed, but not all seeds were run\n"));

    let whole = fs::read_to_string(&path).expect("it is there");
    let early = whole
        .replace("\"end\":6", "\"end\":60")
        .replace("\"interrupted\":false", "\"interrupted\":true")
        .replace("\"class\":\"pass\"", "\"class\":\"unknown\"");
    fs::write(&path, early).expect("it can be written");
    let (status, told, error) = merge(&path);
    assert_eq!(status, Some(4), "{told}{error}");
    assert!(told.contains("it ended early, 27 seeds were not run"), "{told}");

    let great = "\"simulated\":{\"secs\":18446744073709551615,\"nanos\":0},\"was\":";
    let edited = whole.replace("\"simulated\":", great);
    fs::write(&path, edited).expect("it can be written");
    let (status, told, error) = merge(&path);
    assert_eq!((status, told.as_str()), (Some(2), ""), "{error}");
    let expected = format!("error: {path}: field \"summary.sum.simulated.secs\": 1844674407");
    assert!(error.starts_with(&expected), "{error}");
}

/// `--save` writes the small case of each broken rule, tells its file, and overwrites nothing; the
/// file is replayed with the verdict that it must give.
#[test]
fn a_saved_case_is_replayed() {
    let dir = file("saved");
    let _ = fs::remove_dir_all(&dir);
    let explore = ["explore", "--seeds", "1", "--guard", "equal", "--token", "lease"];
    let save = [explore.as_slice(), &["--no-shrink", "--save", &dir]].concat();
    let output = leasehold(&save);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(!text(&output.stdout).contains("shrunk "), "{}", text(&output.stdout));
    let name = format!("{dir}/no-stale-write-fresh-refused-equal-lease.json");
    assert!(told.contains(&format!("saved      {name}: ")), "{told}");
    let before = fs::read(&name).expect("it is there");
    let again = leasehold(&[explore.as_slice(), &["--save", &dir]].concat());
    assert!(text(&again.stderr).contains(&format!("kept       {name}")));
    assert_eq!(fs::read(&name).expect("it is there"), before);
    let replay = leasehold(&["replay", &name, "--shrink"]);
    let shown = text(&replay.stdout);
    assert_eq!(replay.status.code(), Some(1), "{shown}");
    let expected = "expected   violation (no-stale-write: fresh-refused): so it is";
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.contains("shrunk     ") && shown.contains("no fault at all (seed 0"), "{shown}");
}

/// What cannot be saved is told; the verdict is there all the same, the status is the worse one.
#[test]
#[cfg(unix)]
fn what_cannot_be_saved_leaves_the_verdict() {
    let dir = file("saved-in-vain");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a folder");
    let name = format!("{dir}/no-stale-write-fresh-refused-equal-lease.json");
    std::os::unix::fs::symlink("no-such-folder/file", &name).expect("a link to nowhere");
    let output = leasehold(&[
        "explore",
        "--seeds",
        "1",
        "--guard",
        "equal",
        "--token",
        "lease",
        "--no-shrink",
        "--save",
        &dir,
    ]);
    let (told, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(told.ends_with("verdict    violation\n"), "{told}");
    assert!(error.contains(&format!("error: --save {name}: ")), "{error}");
    assert!(error.contains("saved      "), "the other rules are saved: {error}");
}

/// A case that does not give the verdict that is expected of it is no success, even if it passes.
#[test]
fn a_replay_that_differs_is_no_success() {
    let corpus = fs::read_to_string("sim-tests/corpus/late-write-refused.json").expect("a case");
    let (_, entry) = leasehold::corpus::read_case(&corpus).expect("a case");
    let entry = entry.expect("a verdict");
    assert_eq!(entry.expect.class.exit_status(), 0, "the case is one that passes");
    let path = file("late-write-let-in.json");
    let kept = leasehold(&["replay", "sim-tests/corpus/late-write-refused.json"]);
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stdout));
    let class =
        "\"class\":\"violation\",\"checker\":\"no-stale-write\",\"rule\":\"stale-accepted\"";
    let changed = corpus.replace("\"class\": \"pass\"", class).replace("\"class\":\"pass\"", class);
    assert_ne!(changed, corpus);
    fs::write(&path, changed).expect("it can be written");
    let output = leasehold(&["replay", &path]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("verdict    pass\n") && told.contains("differs    expected v"), "{told}");
}

/// A token whose hash is another: the verdict is told all the same, and then that this is an error.
#[test]
fn a_token_with_another_hash_tells_its_verdict_first() {
    let corpus = "sim-tests/corpus/rightful-owner-locked-out.json";
    let json = fs::read_to_string(corpus).expect("a case of the corpus");
    let (case, _) = leasehold::corpus::read_case(&json).expect("a case");
    let crate_version = env!("CARGO_PKG_VERSION").to_owned();
    let token = ReplayToken { crate_version, case, run_hash: RunHash(1) };
    let output = leasehold(&["replay", &token.encode()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("verdict    violation\n"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("not deterministic"), "{}", text(&output.stderr));
    let other = ReplayToken { crate_version: "0.0.1".into(), ..token };
    let output = leasehold(&["replay", &other.encode()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}
