//! `leasehold conformance`: recordings of real etcd servers against the simulated one.
//!
//! Exit status 0 if every case matches, 1 if one does not, 2 if there is nothing to compare with: no
//! such directory, no recording in it, a file that is none.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{ConformanceArguments, out, usage};
use crate::{
    conformance::{FILE_BYTES_MAX, Recording, Report, replay},
    etcd::server::EtcdVersion,
};

/// Directories are not searched deeper; a link to one above would never end.
const DEPTH_MAX: usize = 16;

pub(super) fn run(arguments: &ConformanceArguments) -> u8 {
    match report(arguments) {
        Ok(report) => print(&report),
        Err(message) => usage(format_args!("{message}")),
    }
}

fn report(arguments: &ConformanceArguments) -> Result<Report, String> {
    let version = match &arguments.etcd_version {
        Some(text) => {
            let version: Result<EtcdVersion, _> = text.parse();
            Some(version.map_err(|error| format!("--etcd-version: {error}"))?)
        }
        None => None,
    };
    let mut files = Vec::new();
    find(&arguments.dir, 0, &mut files)
        .map_err(|error| format!("{}: {error}", arguments.dir.display()))?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no recordings (*.json) in it", arguments.dir.display()));
    }
    let recordings = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    replay(&recordings, version).map_err(|error| error.to_string())
}

/// All files `*.json` in a directory and those below it.
fn find(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other(format!("more than {DEPTH_MAX} directories deep")));
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, depth + 1, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> Result<Recording, String> {
    let name = file.display().to_string();
    let size = fs::metadata(file).map_err(|error| format!("{name}: {error}"))?.len();
    if size > FILE_BYTES_MAX as u64 {
        return Err(format!("{name}: {size} bytes, at most {FILE_BYTES_MAX}"));
    }
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    Recording::parse(&name, &text).map_err(|error| error.to_string())
}

fn print(report: &Report) -> u8 {
    for failure in &report.failures {
        out(format_args!("failure    etcd {failure}"));
    }
    let mut previous = None;
    for ((version, area), score) in &report.areas {
        if previous.is_some_and(|previous| previous != version) {
            print_version(report, previous);
        }
        previous = Some(version);
        out(format_args!("area       etcd {version} {area:<16} {score}"));
    }
    print_version(report, previous);
    let total = report.total();
    out(format_args!("score      {total}"));
    u8::from(!total.is_full())
}

fn print_version(report: &Report, version: Option<&String>) {
    if let Some(version) = version {
        out(format_args!("version    etcd {version} {}", report.of_version(version)));
    }
}
