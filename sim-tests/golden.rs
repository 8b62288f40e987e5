//! The judge against histories whose verdict is known.
//!
//! `histories/<checker>/<what>.ok.jsonl` passes, `<what>.bad.jsonl` is a violation whose evidence
//! the file names (`# evidence: 3,7`; assumptions answer unknown instead, `# unknown: words`).
//! What cannot be a history at all is in `histories/impossible` (`# error: words`).
//! Random histories are judged a second time by the text's own loops.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use leasehold::{
    checker::{self, Checker, Class, Index, Verdict},
    history::{History, RowResult, codec},
};

mod assuming;
mod chaos;
mod honesty;
mod keeping;
mod mutation;
mod naive;
mod naive_assumed;
mod naive_honest;
mod naive_lease;
mod naive_live;
mod naive_lock;
mod naive_order;
mod naive_storage;
mod naive_time;
mod naive_update;
mod queueing;
mod reached;
mod recorded;
mod renaming;
mod searching;
mod story;
mod updating;
mod waiting;

use story::Story;

fn remark<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": "))
}

/// The files of a folder of histories, in their order.
fn files_of(folder: &str) -> BTreeSet<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sim-tests/histories");
    let folder = root.join(folder);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    files.map(|file| file.expect("a readable folder").path()).collect()
}

/// The golden histories of a checker with their paths, in the order of those.
fn golden_files(checker: &dyn Checker) -> Vec<(PathBuf, History)> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("the file is there");
        let history = codec::decode(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        (path, history)
    };
    files_of(checker.name()).into_iter().map(read).collect()
}

fn judge_file(checker: &dyn Checker, path: &Path, history: &History) {
    let text = fs::read_to_string(path).expect("the file is there");
    assert!(text.starts_with("# "), "{path:?} does not say what it shows");
    let verdict = checker.check(&Index::new(history)).verdict;
    let name = path.to_string_lossy();
    if name.ends_with(".ok.jsonl") {
        assert_eq!(verdict, Verdict::Pass, "{path:?}");
    } else if let Some(words) = remark(&text, "unknown") {
        let Verdict::Unknown(why) = &verdict else { panic!("{path:?}: {verdict}") };
        assert!(why.contains(words), "{path:?}: {why}");
    } else {
        let Verdict::Violation(violation) = &verdict else { panic!("{path:?}: {verdict}") };
        let events: Vec<String> = violation.events.iter().map(u64::to_string).collect();
        assert_eq!(
            Some(events.join(",").as_str()),
            remark(&text, "evidence"),
            "{path:?}: {verdict}"
        );
        let rule = remark(&text, "rule");
        assert_eq!(Some(violation.rule), rule, "{path:?}: {verdict}");
    }
}

/// Each checker says of each of its golden histories what the file says, and has both kinds: a
/// checker that cannot fail, or cannot pass, would be found here.
#[test]
fn golden_histories() {
    for checker in checker::all() {
        let (name, files) = (checker.name(), golden_files(*checker));
        let ends =
            |end| files.iter().filter(move |(path, _)| path.to_string_lossy().ends_with(end));
        let (ok, bad) = (ends(".ok.jsonl").count(), ends(".bad.jsonl").count());
        assert!(ok >= 1 && bad >= 2 && ok + bad == files.len(), "{name}: {ok} ok, {bad} bad");
        for (path, history) in &files {
            judge_file(*checker, path, history);
        }
    }
}

/// What no run can have recorded is no history: the error names the line, the field and the value.
#[test]
fn impossible_histories() {
    let (mut read, mut refused) = (0, 0);
    for path in files_of("impossible") {
        let text = fs::read_to_string(&path).expect("the file is there");
        match (codec::decode(&text), remark(&text, "error")) {
            (Ok(history), None) => {
                assert!(path.to_string_lossy().ends_with(".ok.jsonl"), "{path:?}");
                let index = Index::new(&history);
                assert_eq!(index.failed_assumptions(), [], "{path:?}");
                read += 1;
            }
            (Err(error), Some(expected)) => {
                assert_eq!(error.to_string(), expected, "{path:?}");
                refused += 1;
            }
            (found, expected) => panic!("{path:?}: {found:?}, expected {expected:?}"),
        }
    }
    assert!(read >= 2 && refused >= 9, "{read} read, {refused} refused");
}

/// The boundary of D4: client 1 lost the lock; its late write is allowed just before the first
/// admitted operation of client 2's tenure, and a violation just after it.
#[test]
fn boundary_of_a_late_write() {
    let classes = |late_first: bool| {
        let mut story = Story::new();
        let old = story.acquire(1, 1);
        let write = story.writing(1, 1, ("k", "late"), None);
        story.expire(1);
        let new = story.acquire(2, 2);
        if late_first {
            story.apply(write, Some(old), RowResult::Admitted);
        }
        story.read(2, 2, "k", new, "");
        if !late_first {
            story.apply(write, Some(old), RowResult::Admitted);
        }
        let history = story.finish();
        let classes = naive::classify(&history).0;
        assert_eq!(classes.len(), 1);
        let index = Index::new(&history);
        let checker = checker::by_name("no-stale-write").expect("a checker of the catalog");
        (classes[0].1, checker.check(&index).verdict.is_pass())
    };
    assert_eq!(classes(true), (Class::LateAccepted, true));
    assert_eq!(classes(false), (Class::StaleAccepted, false));
}
