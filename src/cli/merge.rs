//! `leasehold merge` and `leasehold check`: from the files of a run's processes to a verdict.

use std::{collections::BTreeMap, fs, io::Write, path::PathBuf};

use super::{
    USAGE, err, out,
    report::{self, Book},
    unwritten,
};
use crate::{
    checker::{self, Finding, Judgement, Verdict},
    history::{History, codec, merge},
    report::{
        Timeline,
        html::{self, Command, Page},
    },
};

/// A violation was found.
const VIOLATION: u8 = 1;
/// A checker could not decide, or had nothing to judge.
const UNKNOWN: u8 = 4;
/// The verdict is there, its pages could not be written.
const BROKEN: u8 = 3;

#[derive(Debug, clap::Args)]
pub(super) struct MergeArguments {
    /// The files of the processes, of one machine and one run.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// The files are results of `explore --json`, of shares of one exploration: print their sum and
    /// verdict (simulation build).
    #[arg(long, conflicts_with = "out")]
    pub(super) results: bool,
    /// Where the history goes [default: standard output].
    #[arg(long, value_name = "F")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// A history, as `leasehold merge` writes it.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write a page of HTML for each violation into this directory.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// Merges and gives the exit status.
pub(super) fn merge(arguments: &MergeArguments) -> u8 {
    match merged(arguments) {
        Ok(()) => 0,
        Err(message) => {
            err(format_args!("error: {message}"));
            USAGE
        }
    }
}

fn merged(arguments: &MergeArguments) -> Result<(), String> {
    let mut texts = Vec::new();
    for file in &arguments.files {
        let text = read(file)?;
        if text.starts_with("{\"leasehold_results\"") {
            let name = file.display();
            return Err(format!("{name}: results of explore: join them with merge --results"));
        }
        if merge::is_unbegun(&text) {
            let name = file.display();
            err(format_args!(
                "warning: {name}: no whole first line: its process recorded nothing; left out"
            ));
        }
        texts.push((file.display().to_string(), text));
    }
    let history = merge::merge(&texts).map_err(|error| error.to_string())?;
    let text = codec::encode(&history);
    match &arguments.out {
        Some(path) => fs::write(path, text).map_err(|error| format!("{}: {error}", path.display())),
        None => {
            let mut stdout = std::io::stdout();
            match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
                Ok(()) => Ok(()),
                Err(error) => unwritten(&error),
            }
        }
    }
}

pub(super) fn read(path: &PathBuf) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Judges a history, prints the verdicts and gives the exit status.
pub(super) fn check(arguments: &CheckArguments) -> u8 {
    let decoded = report::prepare("--report", arguments.report.as_ref())
        .and_then(|()| read(&arguments.file))
        .and_then(|text| {
            let told = |error| format!("{}: {error}", arguments.file.display());
            codec::decode(&text).map_err(told)
        });
    let history = match decoded {
        Ok(history) => history,
        Err(message) => {
            err(format_args!("error: {message}"));
            return USAGE;
        }
    };
    let judgement = checker::judge(&history, &BTreeMap::new());
    let status = print(&history, &judgement);
    match report_pages(arguments, &history, &judgement) {
        true => status,
        false => BROKEN,
    }
}

/// The pages of a saved history: it has no plan, so faults are known by their events only. A
/// checker that had nothing to judge has nothing to show. False if something could not be written.
fn report_pages(arguments: &CheckArguments, history: &History, judgement: &Judgement) -> bool {
    let Some(dir) = &arguments.report else { return true };
    let file = arguments.file.display().to_string();
    let mut book = Book::new(dir);
    let found = |finding: &&Finding| !matches!(finding.verdict, Verdict::NotRun(_));
    for finding in report::worth_a_page(judgement).into_iter().filter(found) {
        let command = format!("leasehold check {}", quoted(&file));
        let page = Page {
            history,
            finding,
            judgement,
            faults: BTreeMap::new(),
            facts: vec![
                ("file", file.clone()),
                ("events", history.events.len().to_string()),
                ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ],
            commands: vec![Command { label: "Copy".to_owned(), text: command }],
        };
        let name = format!("{}.html", finding.checker);
        book.add(file.clone(), name, finding, &html::page(&page));
    }
    let note = match book.rows.len() {
        0 => format!("nothing was found in {file}"),
        _ => format!("what was found in {file}"),
    };
    book.finish(&note)
}

/// A path as one word for a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    match path.chars().all(plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

fn print(history: &History, judgement: &Judgement) -> u8 {
    for finding in &judgement.findings {
        let (word, why) = match &finding.verdict {
            Verdict::Pass => ("pass", String::new()),
            Verdict::Violation(violation) => ("violation", format!(": {violation}")),
            Verdict::Unknown(why) => ("unknown", format!(": {why}")),
            Verdict::NotRun(why) => ("not run", format!(": {why}")),
        };
        out(format_args!("{:<18} {word} ({} judged){why}", finding.checker, finding.judged));
    }
    for (class, count) in judgement.classes.rows() {
        out(format_args!("{:<18} {count}", class.name()));
    }
    for (property, count) in judgement.reached.rows() {
        out(format_args!("{:<18} {count}", property.name()));
    }
    let (status, verdict) = match judgement.violation() {
        Some(violation) => {
            let timeline = Timeline::new(history).evidence(&violation.events).window();
            out(format_args!("{}", timeline.max_lines(60).to_string().trim_end()));
            (VIOLATION, format!("violation of {}", violation.checker))
        }
        None => match undecided(judgement) {
            None => (0, "pass".to_owned()),
            Some(why) => (UNKNOWN, format!("unknown: {why}")),
        },
    };
    out(format_args!("{:<18} {verdict}", "verdict"));
    status
}

/// Who keeps a history without a violation from being a pass; none if it is one.
fn undecided(judgement: &Judgement) -> Option<String> {
    let names = |not_run: bool| {
        let of_kind = |f: &&Finding| matches!(f.verdict, Verdict::NotRun(_)) == not_run;
        let bad = judgement.findings.iter().filter(|f| !f.is_good()).filter(of_kind);
        bad.map(|finding| finding.checker).collect::<Vec<_>>().join(", ")
    };
    let reasons = [("not decided by", names(false)), ("nothing to judge for", names(true))];
    let reasons = reasons.iter().filter(|(_, names)| !names.is_empty());
    let reasons: Vec<String> = reasons.map(|(what, names)| format!("{what} {names}")).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
