//! `leasehold conformance`: recordings of real etcd servers against the simulated one.
//!
//! Exit status 0 if every case matches, 1 if one does not, 2 if something cannot be compared: no
//! such directory, no recording in it, a file that is none. The other files are replayed all the
//! same.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{ConformanceArguments, USAGE, out, usage};
use crate::{
    conformance::{FILE_BYTES_MAX, Recording, Report, replay},
    etcd::server::EtcdVersion,
};

/// Directories are not searched deeper; a link to one above would never end.
const DEPTH_MAX: usize = 16;

pub(super) fn run(arguments: &ConformanceArguments) -> u8 {
    let files = match files(arguments) {
        Ok(files) => files,
        Err(message) => return usage(format_args!("{message}")),
    };
    let version = match arguments.etcd_version.as_deref().map(str::parse::<EtcdVersion>) {
        None => None,
        Some(Ok(version)) => Some(version),
        Some(Err(error)) => return usage(format_args!("--etcd-version: {error}")),
    };
    let mut report = Report::default();
    let mut unreadable = 0;
    for file in &files {
        let replayed = read(file)
            .and_then(|recording| replay(&[recording], version).map_err(|error| error.to_string()));
        match replayed {
            Ok(one) => report.join(one),
            Err(message) => {
                unreadable += 1;
                usage(format_args!("{}", message.escape_debug()));
            }
        }
    }
    let status = if report.areas.is_empty() { USAGE } else { print(&report) };
    // What cannot be read is not compared: whatever the score of the rest, this is no pass.
    if unreadable > 0 { USAGE } else { status }
}

/// The recordings to replay, in the order of their names.
fn files(arguments: &ConformanceArguments) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    find(&arguments.dir, 0, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: no recordings (*.json) in it", arguments.dir.display()));
    }
    Ok(files)
}

/// All files `*.json` in a directory and those below it.
fn find(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", dir.display());
    if depth > DEPTH_MAX {
        let what = format!("more than {DEPTH_MAX} directories deep; is there a link to itself?");
        return Err(failed(io::Error::other(what)));
    }
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
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
    let about = fs::metadata(file).map_err(|error| format!("{name}: {error}"))?;
    // Reading a pipe would wait for a writer that may never come.
    if !about.is_file() {
        return Err(format!("{name}: not a file; move it out of the directory"));
    }
    if about.len() > FILE_BYTES_MAX as u64 {
        return Err(format!("{name}: {} bytes, at most {FILE_BYTES_MAX}", about.len()));
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
        let (version, area) = (version.escape_debug(), area.escape_debug().to_string());
        out(format_args!("area       etcd {version} {area:<16} {score}"));
    }
    print_version(report, previous);
    let total = report.total();
    out(format_args!("score      {total}"));
    u8::from(!total.is_full())
}

fn print_version(report: &Report, version: Option<&String>) {
    if let Some(version) = version {
        let score = report.of_version(version);
        out(format_args!("version    etcd {} {score}", version.escape_debug()));
    }
}
