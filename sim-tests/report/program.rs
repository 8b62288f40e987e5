//! `--report DIR` as a user meets it: the files, what is said, what is never overwritten.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use super::markup;

/// A directory of a test, gone after it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("leasehold-report-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).expect("the directory is made");
        let name = |file: Result<fs::DirEntry, _>| file.expect("a file").file_name();
        let mut names: Vec<String> =
            files.map(|file| name(file).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn leasehold(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .output()
        .expect("the program runs")
}

/// The directory is made; each violation has its page, and they have an index. A replay of the
/// token on the page writes the same bytes.
#[test]
fn explore_and_replay_write_the_same_page() {
    let (folder, other) = (Folder::new("explore"), Folder::new("replay"));
    let dir = folder.0.join("deeper");
    let report = dir.display().to_string();
    let run = ["explore", "--seeds", "12", "--guard", "unfenced", "--report", &report];
    let told = leasehold(&run);
    let told_text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(told.status.code(), Some(1), "{told_text}");
    let index = dir.join("index.html");
    assert!(told_text.contains(&format!("start at {}", index.display())), "{told_text}");
    let inner = Folder(dir.clone());
    let names = inner.names();
    let index_text = inner.text("index.html");
    let findings = names.len() - 1;
    assert!(index_text.contains(&format!(">{findings} findings<")), "{index_text}");
    assert!(index_text.contains(" of 12 runs did not pass</h1>"), "{index_text}");
    let listed = markup::read(&index_text);
    let links: Vec<&str> = listed.elements.iter().map(|e| e.get("href")).collect();
    for name in names.iter().filter(|name| *name != "index.html") {
        assert!(links.contains(&name.as_str()), "{name} is not in the index");
    }
    let name = names.iter().find(|name| name.ends_with("no-stale-write.html")).expect("a page");
    let html = inner.text(name);
    let page = markup::read(&html);
    let commands: Vec<&str> =
        page.elements.iter().map(|e| e.get("data-copy")).filter(|c| !c.is_empty()).collect();
    let token = commands[0].strip_prefix("leasehold replay ").expect("a command");
    assert_eq!(commands[1], format!("cargo run --release -- replay {token}"));
    let replay = leasehold(&["replay", token, "--report", &other.0.display().to_string()]);
    assert_eq!(replay.status.code(), Some(1));
    assert!(other.text(name) == html, "the replay's page is another one");
}

/// `check` writes pages of a saved history. Its own pages it overwrites, nobody else's.
#[test]
fn only_own_files_are_overwritten() {
    let folder = Folder::new("check");
    let dir = folder.0.display().to_string();
    let history = "sim-tests/histories/no-stale-write/stale-read-admitted.bad.jsonl";
    let check = || leasehold(&["check", history, "--report", &dir]);
    assert_eq!(check().status.code(), Some(1));
    assert_eq!(folder.names(), ["index.html", "linearizability.html", "no-stale-write.html"]);
    let html = folder.text("no-stale-write.html");
    assert!(html.contains(&format!("<code>leasehold check {history}</code>")));
    assert_eq!(check().status.code(), Some(1), "a page of its own is written anew");
    assert!(folder.text("no-stale-write.html") == html);

    let path = folder.0.join("no-stale-write.html");
    fs::write(&path, "somebody's notes").expect("a file can be written");
    let refused = check();
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{error}");
    let expected = format!("error: {}: it is no page of leasehold", path.display());
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(folder.text("no-stale-write.html"), "somebody's notes");
    // The verdict and the other pages are there all the same.
    assert!(String::from_utf8_lossy(&refused.stdout).contains("verdict            violation"));
    fs::remove_file(folder.0.join("linearizability.html")).expect("a page of before");
    assert_eq!(check().status.code(), Some(3));
    assert!(folder.text("linearizability.html").starts_with("<!doctype html>"));
    let index = folder.text("index.html");
    assert!(index.contains(">2 findings<"), "{index}");
    assert!(!index.contains("href=\"no-stale-write.html\""), "{index}");
}

/// Pages of earlier runs are not taken for this one's: the index says that nothing failed, and
/// names them apart. A history without a violation has no page.
#[test]
fn old_pages_do_not_look_current() {
    let folder = Folder::new("old");
    let dir = folder.0.display().to_string();
    let check = |file: &str| {
        let file = format!("sim-tests/histories/{file}.jsonl");
        leasehold(&["check", &file, "--report", &dir]).status.code()
    };
    assert_eq!(check("assumptions/complete.ok"), Some(4));
    assert_eq!(folder.names(), Vec::<String>::new());
    assert_eq!(check("no-stale-write/stale-read-admitted.bad"), Some(1));
    let before = folder.names();
    fs::write(folder.0.join("notes.html"), "somebody's notes").expect("a file can be written");
    let pass = leasehold(&["explore", "--seeds", "2", "--report", &dir, "--json"]);
    assert_eq!(pass.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&pass.stdout).contains("report "), "it spoils the results");
    assert!(String::from_utf8_lossy(&pass.stderr).contains("pages of earlier runs: 2"));
    let index = folder.text("index.html");
    assert!(index.contains("<h1>nothing failed in 2 runs</h1>"), "{index}");
    assert!(index.contains(">no finding<") && !index.contains("<table"), "{index}");
    let old = index.split_once("Pages of earlier runs, not of this one").expect("they are named").1;
    for name in before.iter().filter(|name| *name != "index.html") {
        assert!(old.contains(&format!("href=\"{name}\"")), "{index}");
    }
    assert!(!index.contains("notes.html"), "{index}");
    markup::read(&index);
}

/// A path that cannot be a directory is told before anything runs; a pass writes no page.
#[test]
fn a_bad_directory_is_told_at_once() {
    let bad = leasehold(&["explore", "--seeds", "1", "--report", "README.md/pages"]);
    let error = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert_eq!(bad.status.code(), Some(2), "{error}");
    assert!(error.contains("--report README.md/pages: cannot make the directory"), "{error}");
    assert_eq!(String::from_utf8_lossy(&bad.stdout), "");

    let folder = Folder::new("pass");
    let dir = folder.0.display().to_string();
    let pass = leasehold(&["explore", "--seeds", "2", "--report", &dir]);
    assert_eq!(pass.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&pass.stdout).contains("report     nothing to report"));
    assert_eq!(folder.names(), Vec::<String>::new());
}
