//! `--report DIR`: pages of HTML into a directory.
//!
//! The directory is made before anything runs, so that a bad path is told at once. A file that is
//! there and was not made by this program is never overwritten.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use super::out;
use crate::{
    checker::{Finding, Judgement, Verdict},
    report::html::{self, IndexRow, SIGNATURE},
};

/// The name of the page of pages.
const INDEX: &str = "index.html";

/// Makes the directory.
pub(super) fn prepare(dir: Option<&PathBuf>) -> Result<(), String> {
    let Some(dir) = dir else { return Ok(()) };
    fs::create_dir_all(dir)
        .map_err(|error| format!("--report {}: cannot make the directory: {error}", dir.display()))
}

/// The findings that get a page: each violation, or what decides if there is none.
pub(super) fn worth_a_page(judgement: &Judgement) -> Vec<&Finding> {
    let violations = judgement.findings.iter().filter(|f| f.verdict.violation().is_some());
    let violations: Vec<&Finding> = violations.collect();
    if violations.is_empty() { judgement.worst().into_iter().collect() } else { violations }
}

/// The row of a finding in the index.
pub(super) fn row(run: String, file: String, finding: &Finding) -> IndexRow {
    let (verdict, rule, message) = match &finding.verdict {
        Verdict::Violation(violation) => ("violation", violation.rule, violation.message.clone()),
        Verdict::Unknown(why) => ("unknown", "", why.clone()),
        Verdict::NotRun(why) => ("not run", "", why.clone()),
        Verdict::Pass => ("pass", "", String::new()),
    };
    let rule = format!("{} {rule}", finding.checker).trim_end().to_owned();
    IndexRow { file: Some(file), run, verdict: verdict.to_owned(), rule, message }
}

/// Writes the index, if there are several rows or an older one would be wrong now, and says what
/// was written and where to start.
pub(super) fn finish(dir: &Path, note: &str, rows: &[IndexRow]) -> Result<(), String> {
    let shown = dir.display();
    if rows.is_empty() {
        out(format_args!("report     nothing to report, {shown} is left as it is"));
        return Ok(());
    }
    let index = dir.join(INDEX);
    let files: Vec<&String> = rows.iter().filter_map(|row| row.file.as_ref()).collect();
    let indexed = rows.len() > 1 || files.is_empty() || index.exists();
    if indexed {
        write(dir, INDEX, &html::index(note, rows))?;
    }
    match files.as_slice() {
        [file] if rows.len() == 1 => out(format_args!("report     {}", dir.join(file).display())),
        files => {
            out(format_args!("report     {} pages, start at {}", files.len(), index.display()));
        }
    }
    Ok(())
}

/// Writes a page.
pub(super) fn write(dir: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = dir.join(name);
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    match fs::File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(told(error)),
        Ok(file) => {
            let mut start = Vec::new();
            file.take(SIGNATURE.len() as u64).read_to_end(&mut start).map_err(told)?;
            if start != SIGNATURE.as_bytes() {
                let path = path.display();
                return Err(format!("{path}: it is no page of leasehold, so it is left as it is"));
            }
        }
    }
    fs::write(&path, text).map_err(told)
}
