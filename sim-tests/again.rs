//! What was caught once, before anything new: the cases of the corpus give their verdicts.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use leasehold::testing::{assert_corpus, read_corpus};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sim-tests/corpus");

/// Every case of the corpus gives the verdict that it must give: class, checker and rule, and what
/// must happen in it. (Tests run in the order of their names: this one is the first.)
#[test]
fn corpus_cases_give_their_verdicts() {
    assert!(assert_corpus(CORPUS) >= 9);
}

/// A folder with one case of the corpus, changed.
fn changed(name: &str, from: &str, to: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{name}"));
    let text = fs::read_to_string(Path::new(CORPUS).join("late-write-refused.json"));
    let text = text.expect("a case of the corpus");
    let other = text.replacen(from, to, 1);
    assert_ne!(text, other, "{from}");
    fs::create_dir_all(&dir).expect("a folder for the test");
    fs::write(dir.join("late-write-refused.json"), other).expect("it can be written");
    dir
}

/// A corpus that cannot be read says which file is wrong, where, and what to do.
#[test]
fn a_broken_corpus_is_told() {
    let cases = [
        ("field", "\"monotonic\"", "7", "field \"case.options\": invalid type"),
        ("foreign", "corpus_version", "version", "`leasehold explore --save DIR` writes such"),
        ("name", "late-write-refused", "late", "\"name\": \"late\"; call the file late.json"),
        ("kind", "point_pause", "point_paws", "field \"case.plan.faults[0].kind\": unknown"),
        ("syntax", "}}", "", "not JSON"),
    ];
    for (name, from, to, expected) in cases {
        let error = read_corpus(changed(name, from, to)).expect_err(name);
        assert!(error.contains("late-write-refused.json: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let none = read_corpus(Path::new(CORPUS).join("../golden")).expect_err("no cases there");
    assert!(none.ends_with("no cases (*.json) in it"), "{none}");
}

/// A case that gives another verdict fails, and says which and what it gave instead.
#[test]
fn another_verdict_fails() {
    let dir = changed("verdict", "\"monotonic\"", "\"unfenced\"");
    let failed = catch_unwind(AssertUnwindSafe(|| assert_corpus(&dir)));
    let message = failed.expect_err("the storage is not fenced any more");
    let message = message.downcast_ref::<String>().expect("a text");
    assert!(message.starts_with("1 of 1 cases:\nlate-write-refused ("), "{message}");
    assert!(message.contains("expected pass, got violation: stale-accepted"), "{message}");
}
