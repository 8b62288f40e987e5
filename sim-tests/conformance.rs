//! Every recorded case of both versions of etcd matches the simulated one.
//!
//! The same runner as `leasehold conformance`; that it can fail is proved in its own tests.

use std::path::{Path, PathBuf};

use leasehold::conformance::{Recording, replay};

/// How many cases were recorded of each version; a lost file must not look like a match.
const CASES: usize = 262;
/// How many cases of odd requests were recorded beside them.
const ODD_CASES: usize = 35;

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the recordings are in the repository");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    files
}

/// The failures and the score.
fn replayed(folder: &str, release: &str) -> (Vec<String>, String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sim-tests")
        .join(folder)
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
    let failures = report.failures.iter().map(ToString::to_string).collect();
    (failures, report.of_version(release).to_string())
}

/// Whatever was recorded of 3.4.23, the simulated 3.4 answers.
#[test]
fn etcd_3_4_23_matches_in_full() {
    assert_eq!(replayed("conformance", "3.4.23"), (Vec::new(), format!("{CASES}/{CASES}")));
}

/// Whatever was recorded of 3.5.30, the simulated 3.5 answers.
#[test]
fn etcd_3_5_30_matches_in_full() {
    assert_eq!(replayed("conformance", "3.5.30"), (Vec::new(), format!("{CASES}/{CASES}")));
}

/// Requests that the other recordings leave out, as 3.4.23 answered them over its JSON gateway:
/// unknown enumeration values, negative revisions, blind spots of the overlap check, odd names, a
/// late renewal, what a put is refused for first, and random sequences of such.
#[test]
fn odd_requests_match_in_full() {
    let score = format!("{ODD_CASES}/{ODD_CASES}");
    assert_eq!(replayed("conformance-odd", "3.4.23"), (Vec::new(), score));
}
