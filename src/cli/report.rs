//! `--report DIR`: pages of HTML into a directory.
//!
//! The directory is made, and a file in it, before anything runs, so that a bad path is told at
//! once. A file that is there and was not made by this program is never overwritten, and none is
//! removed: the index says which pages are of earlier runs.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use super::{err, out};
use crate::{
    checker::{Finding, Judgement, Verdict},
    report::html::{self, IndexRow, SIGNATURE},
};

/// The name of the page of pages.
const INDEX: &str = "index.html";

/// Makes the directory that this argument names, and sees that files can be written there.
pub(super) fn prepare(argument: &str, dir: Option<&PathBuf>) -> Result<(), String> {
    let Some(dir) = dir else { return Ok(()) };
    let shown = dir.display();
    fs::create_dir_all(dir)
        .map_err(|error| format!("{argument} {shown}: cannot make the directory: {error}"))?;
    // Permissions do not tell: a file system may be read-only, and root may write anywhere else.
    let trial = dir.join(format!(".leasehold-{}", std::process::id()));
    fs::File::create(&trial)
        .and_then(|_| fs::remove_file(&trial))
        .map_err(|error| format!("{argument} {shown}: no file can be written there: {error}"))
}

/// The findings that get a page: each violation, or what decides if there is none.
pub(super) fn worth_a_page(judgement: &Judgement) -> Vec<&Finding> {
    let violations = judgement.findings.iter().filter(|f| f.verdict.violation().is_some());
    let violations: Vec<&Finding> = violations.collect();
    if violations.is_empty() { judgement.worst().into_iter().collect() } else { violations }
}

/// The row of a finding in the index.
fn row(run: String, file: String, finding: &Finding) -> IndexRow {
    let (verdict, rule, message) = match &finding.verdict {
        Verdict::Violation(violation) => ("violation", violation.rule, violation.message.clone()),
        Verdict::Unknown(why) => ("unknown", "", why.clone()),
        Verdict::NotRun(why) => ("not run", "", why.clone()),
        Verdict::Pass => ("pass", "", String::new()),
    };
    let rule = format!("{} {rule}", finding.checker).trim_end().to_owned();
    IndexRow { file: Some(file), run, verdict: verdict.to_owned(), rule, message }
}

/// The pages of one command. What cannot be written does not keep the others from being written.
pub(super) struct Book<'a> {
    dir: &'a Path,
    /// The rows of the index.
    pub(super) rows: Vec<IndexRow>,
    /// Whether standard output holds something that a line of ours would spoil.
    pub(super) aside: bool,
    written: Vec<String>,
    errors: Vec<String>,
}

impl<'a> Book<'a> {
    /// One without pages.
    pub(super) fn new(dir: &'a Path) -> Self {
        Book { dir, rows: Vec::new(), aside: false, written: Vec::new(), errors: Vec::new() }
    }

    /// Writes the page of a finding, and a row for it.
    pub(super) fn add(&mut self, run: String, name: String, finding: &Finding, html: &str) {
        let mut row = row(run, name.clone(), finding);
        match write(self.dir, &name, html) {
            Ok(()) => self.written.push(name),
            Err(error) => {
                row.file = None;
                self.errors.push(error);
            }
        }
        self.rows.push(row);
    }

    /// Writes the index, if there are several rows or if what is there from earlier runs would be
    /// taken for this one's, and says what was written and where to start. False if something
    /// could not be written, which is told.
    pub(super) fn finish(mut self, note: &str) -> bool {
        let older = self.older();
        let index = self.dir.join(INDEX);
        let is_alone = self.rows.len() == 1 && self.written.len() == 1;
        let is_old = !older.is_empty() || (index.exists() && !self.rows.is_empty()) || ours(&index);
        let indexed = is_old || (!self.rows.is_empty() && !is_alone);
        if indexed
            && let Err(error) = write(self.dir, INDEX, &html::index(note, &self.rows, &older))
        {
            self.errors.push(error);
        }
        let (shown, start) = (self.dir.display(), index.display());
        let told = match self.written.as_slice() {
            [] if self.rows.is_empty() && !indexed => {
                format!("nothing to report, {shown} is left as it is")
            }
            [] if self.rows.is_empty() => {
                let pages = older.len();
                format!("nothing to report, {start} says so; pages of earlier runs: {pages}")
            }
            [file] if is_alone => self.dir.join(file).display().to_string(),
            files => format!("pages: {}, start at {start}", files.len()),
        };
        let tell = if self.aside { err } else { out };
        tell(format_args!("report     {told}"));
        for error in &self.errors {
            err(format_args!("error: {error}"));
        }
        self.errors.is_empty()
    }

    /// Pages that an earlier run has left here.
    fn older(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_older = |name: &String| {
            let is_page = name.ends_with(".html") && name != INDEX;
            is_page && !self.written.contains(name) && ours(&self.dir.join(name))
        };
        let mut older: Vec<String> = names.filter(is_older).collect();
        older.sort();
        older
    }
}

/// Whether this program made the file.
fn ours(path: &Path) -> bool {
    signed(path).unwrap_or(false)
}

fn signed(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    fs::File::open(path)?.take(SIGNATURE.len() as u64).read_to_end(&mut start)?;
    Ok(start == SIGNATURE.as_bytes())
}

/// Writes a page.
fn write(dir: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = dir.join(name);
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    match signed(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(told(error)),
        Ok(true) => {}
        Ok(false) => {
            let path = path.display();
            return Err(format!("{path}: it is no page of leasehold, so it is left as it is"));
        }
    }
    fs::write(&path, text).map_err(told)
}
