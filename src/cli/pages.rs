//! The pages of simulated runs that did not pass: what a page needs to know of a case.

use std::path::Path;

use super::report::{self, Book};
use crate::{
    explore::{Failure, Summary, replay_token},
    fault::family_of,
    judge::Judged,
    report::html::{self, Command, FaultNote, IndexRow, Page},
};

/// So many runs get pages: who looks at more would rather have a table.
const RUNS_MAX: usize = 20;

/// Writes the pages of an exploration, and the index if there are several; false if something could
/// not be written. `aside` keeps standard output for others.
pub(super) fn write_all(dir: &Path, summary: &Summary, aside: bool) -> bool {
    let mut book = Book::new(dir);
    book.aside = aside;
    for failure in summary.failures.iter().take(RUNS_MAX) {
        match failure {
            Failure::Judged(judged) => add(&mut book, judged),
            Failure::Broken { case, error } => book.rows.push(IndexRow {
                file: None,
                run: format!("seed {}", case.seed),
                verdict: "harness error".to_owned(),
                rule: String::new(),
                message: error.to_string(),
            }),
        }
    }
    let (total, runs) = (summary.failures_total(), summary.runs);
    let mut note = match total {
        0 => format!("nothing failed in {runs} runs"),
        total => format!("{total} of {runs} runs did not pass"),
    };
    if total > RUNS_MAX as u64 {
        note.push_str(&format!("; the first {RUNS_MAX} have pages"));
    }
    book.finish(&note)
}

/// Writes the pages of one run; false if something could not be written.
pub(super) fn write(dir: &Path, judged: &Judged) -> bool {
    let mut book = Book::new(dir);
    add(&mut book, judged);
    let seed = judged.run.case.seed;
    let note = match book.rows.len() {
        0 => format!("nothing failed in the run of seed {seed}"),
        _ => format!("the run of seed {seed} did not pass"),
    };
    book.finish(&note)
}

fn add(book: &mut Book<'_>, judged: &Judged) {
    let case = &judged.run.case;
    let token = replay_token(judged);
    for finding in report::worth_a_page(&judged.judgement) {
        let plan = (0..).zip(&case.plan.faults);
        let notes = plan.map(|(index, fault)| {
            let family = family_of(&fault.kind);
            (index, FaultNote { fault, family: family.name, colour: family.colour })
        });
        let command = |label: &str, text| Command { label: label.to_owned(), text };
        let page = Page {
            history: &judged.run.history,
            finding,
            judgement: &judged.judgement,
            faults: notes.collect(),
            facts: facts(judged),
            commands: vec![
                command("Copy", format!("leasehold replay {token}")),
                command("Copy for cargo", format!("cargo run --release -- replay {token}")),
            ],
        };
        let name = format!("seed-{}-{}.html", case.seed, finding.checker);
        book.add(format!("seed {}", case.seed), name, finding, &html::page(&page));
    }
}

fn facts(judged: &Judged) -> Vec<(&'static str, String)> {
    let case = &judged.run.case;
    let options = &case.options;
    let mut facts = vec![
        ("seed", case.seed.to_string()),
        ("scenario", case.scenario.clone()),
        ("guard", options.guard.clone()),
        ("token", options.token.clone()),
        ("clients", options.clients.to_string()),
    ];
    if options.holdings > 0 {
        facts.push(("holdings", options.holdings.to_string()));
    }
    if options.ttl_s > 0 {
        facts.push(("leases", format!("{} s", options.ttl_s)));
    }
    if options.readers > 0 {
        facts.push(("readers", format!("{} of 1,000", options.readers)));
    }
    for (name, value) in [("profile", &options.profile), ("bug", &options.bug)] {
        if !value.is_empty() {
            facts.push((name, value.clone()));
        }
    }
    facts.push(("events", judged.run.history.events.len().to_string()));
    facts.push(("run hash", judged.run.hash.to_string()));
    facts.push(("version", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}
