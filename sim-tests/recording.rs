//! The recordings of real servers in `sim-tests/conformance`, for tests that replay them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// A recorded case and where it is from.
#[derive(Debug, Clone)]
pub struct Case {
    /// `area/name`.
    pub name: String,
    pub case: Value,
}

/// The cases of one version's recordings, in the order of their files and in these.
pub fn cases(version: &str) -> Vec<Case> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory().join(format!("etcd-{version}")))
        .expect("the recordings are in the repository")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files.iter().flat_map(|path| of_file(path)).collect()
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("sim-tests/conformance")
}

fn of_file(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).expect("a recording can be read");
    let recording: Value = serde_json::from_str(&text).expect("a recording is JSON");
    let area = recording["area"].as_str().expect("an area");
    let cases = recording["cases"].as_array().expect("cases");
    let named = |case: &Value| Case {
        name: format!("{area}/{}", case["name"].as_str().unwrap_or_default()),
        case: case.clone(),
    };
    cases.iter().map(named).collect()
}
