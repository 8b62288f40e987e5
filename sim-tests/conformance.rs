//! Every recorded case of both versions of etcd matches the simulated one.
//!
//! The same runner as `leasehold conformance`; that it can fail is proved in its own tests.

use std::path::{Path, PathBuf};

use leasehold::conformance::{Recording, replay};

/// How many cases were recorded of each version; a lost file must not look like a match.
const CASES: usize = 262;

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the recordings are in the repository");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files
}

fn matches_in_full(release: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sim-tests/conformance")
        .join(format!("etcd-{release}"));
    let recordings: Vec<Recording> = files(&dir)
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).expect("it can be read");
            Recording::parse(&file.display().to_string(), &text).expect("it is a recording")
        })
        .collect();
    assert!(recordings.iter().all(|recording| recording.etcd_version == release));
    let report = replay(&recordings, None).expect("the version is simulated");
    let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures, Vec::<String>::new());
    assert_eq!(report.of_version(release).to_string(), format!("{CASES}/{CASES}"));
}

#[test]
fn etcd_3_4_23_matches_in_full() {
    matches_in_full("3.4.23");
}

#[test]
fn etcd_3_5_30_matches_in_full() {
    matches_in_full("3.5.30");
}
