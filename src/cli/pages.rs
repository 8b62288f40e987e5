//! The pages of simulated runs that did not pass: what a page needs to know of a case.

use std::path::Path;

use super::report;
use crate::{
    explore::{Failure, Summary, replay_token},
    fault::family_of,
    judge::Judged,
    report::html::{self, Command, FaultNote, IndexRow, Page},
};

/// So many runs get pages: who looks at more would rather have a table.
const RUNS_MAX: usize = 20;

/// Writes the pages of an exploration, and the index if there are several.
pub(super) fn write_all(dir: &Path, summary: &Summary) -> Result<(), String> {
    let mut rows = Vec::new();
    let shown = summary.failures.iter().take(RUNS_MAX);
    for failure in shown {
        match failure {
            Failure::Judged(judged) => rows.extend(write(dir, judged)?),
            Failure::Broken { case, error } => rows.push(IndexRow {
                file: None,
                run: format!("seed {}", case.seed),
                verdict: "harness error".to_owned(),
                rule: String::new(),
                message: error.to_string(),
            }),
        }
    }
    let total = summary.failures_total();
    let mut note = format!("{total} of {} runs did not pass", summary.runs);
    if total > RUNS_MAX as u64 {
        note.push_str(&format!("; the first {RUNS_MAX} have pages"));
    }
    report::finish(dir, &note, &rows)
}

/// Writes the pages of one run and gives their rows in an index.
pub(super) fn write(dir: &Path, judged: &Judged) -> Result<Vec<IndexRow>, String> {
    let case = &judged.run.case;
    let token = replay_token(judged);
    let mut rows = Vec::new();
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
        report::write(dir, &name, &html::page(&page))?;
        rows.push(report::row(format!("seed {}", case.seed), name, finding));
    }
    Ok(rows)
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
