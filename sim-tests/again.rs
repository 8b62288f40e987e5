//! What was caught once, before anything new: the cases of the corpus give their verdicts.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::Command,
};

use leasehold::testing::{assert_corpus, corpus, read_corpus};

use crate::{
    command::leasehold, own_lock::example::Hopeful, own_storage::OneMark, smallest::NoFence,
};

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
        ("field", "\"monotonic\"", "7", "field \"case.options.guard\": invalid type"),
        ("foreign", "corpus_version", "version", "`leasehold explore --save DIR` writes such"),
        ("name", "late-write-refused", "late", "\"name\": \"late\"; call the file late.json"),
        ("kind", "point_pause", "point_paws", "field \"case.plan.faults[0].kind\": unknown"),
        ("syntax", "}}", "", "not JSON"),
        (
            "checker",
            "\"class\":\"pass\"",
            "\"class\":\"violation\",\"checker\":\"no-stale-wrote\",\"rule\":\"stale-accepted\"",
            "field \"expect.checker\": unknown checker \"no-stale-wrote\": choose one of",
        ),
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

fn message_of(check: impl FnOnce() -> usize) -> String {
    let failed = catch_unwind(AssertUnwindSafe(check)).expect_err("it does not pass");
    failed.downcast_ref::<String>().expect("a text").clone()
}

/// What a failing check of an own storage saves is a folder of cases as it is: it fails on that
/// storage, passes on one that is right, and goes for none of the crate's.
#[test]
fn the_case_of_an_own_storage_is_kept_and_run_again() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus-own-storage");
    // What an earlier test run left is another case, if the crate has changed since.
    let _ = fs::remove_dir_all(&dir);
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["smallest::a_failing_check_says_it_all", "--exact"])
        .env("LEASEHOLD_SAVE_DIR", &dir)
        .output();
    assert!(output.expect("it runs").status.success());
    let entries = read_corpus(&dir).expect("a folder of cases");
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert!(entry.name.contains("-own-storage-revision-seed-"), "{}", entry.name);
    assert_eq!(corpus(&dir).storage(OneMark::default).assert_passes(), 1);

    let message = message_of(|| corpus(&dir).storage(NoFence::default).assert_passes());
    let expected = "expected pass, got violation: ";
    assert!(message.starts_with("1 of 1 cases:\n") && message.contains(expected), "{message}");
    let remedy = "testing::corpus(FOLDER).storage(MyStorage::default).assert_passes()";
    assert!(message_of(|| assert_corpus(&dir)).contains(remedy));
    let message = message_of(|| corpus(&dir).lock::<Hopeful>().assert_passes());
    assert!(message.contains("is a case of a storage of your own: give it with"), "{message}");

    let file = dir.join(format!("{}.json", entry.name));
    let output = leasehold(&["replay", file.to_str().expect("a path in UTF-8")]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("a case of a storage of your own"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// A case that is to show what is wrong with the crate's parts is none for own parts.
#[test]
fn a_case_of_the_crates_parts_is_none_for_own_parts() {
    let message = message_of(|| corpus(CORPUS).storage(OneMark::default).assert_passes());
    assert!(
        message.contains("shows what is wrong with parts of the crate (violation"),
        "{message}"
    );
    let dir = changed("right", "\"shows\": \"", "\"shows\": \"on any storage: ");
    assert_eq!(corpus(dir).storage(OneMark::default).assert_passes(), 1);
}

/// A point that its node never passes is refused; one of an own lock, which may be misspelt too, is
/// told when nobody has passed it.
#[test]
fn a_misspelt_point_is_told() {
    let replayed = |name, to| {
        let file = changed(name, "client.before_write", to).join("late-write-refused.json");
        let output = leasehold(&["replay", file.to_str().expect("a path in UTF-8")]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, error) = replayed("point", "client.befor_write");
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("point is \"client.befor_write\" of client-1, expected"), "{error}");
    let (status, error) = replayed("own-point", "clint.before_write");
    // The case expects a late write that is refused, and nobody stopped.
    assert_eq!(status, Some(1), "{error}");
    assert!(error.starts_with("warning: never so: pause client-1 at clint.before_wr"), "{error}");
    let (_, error) = replayed("passed-point", "client.after_enter");
    assert_eq!(error, "");
}
