//! A violation as one page of HTML that needs nothing else: no network, no fonts, no files.
//!
//! A pure function of the history, the finding and the plan, so the same run gives the same bytes.
//! The page is whole without its script; the script only zooms, fills in details and filters. All
//! text that comes from a history goes through `escape.rs`.
//!
//! `scene.rs` gathers what is shown, `lane.rs`, `record.rs`, `fault.rs`, `clock.rs` and `mark.rs`
//! make bars and marks of it, `draw.rs`, `story.rs` and `table.rs` write them.

mod clock;
mod draw;
mod escape;
mod fault;
mod head;
mod index;
mod lane;
mod mark;
mod record;
mod scene;
mod sentence;
mod story;
mod table;

use std::collections::BTreeMap;

pub use index::{IndexRow, index};

use crate::{
    checker::{Finding, Index, Judgement},
    history::History,
    plan::Fault,
};
use scene::Scene;

/// The first line of every file that this module makes: by it a file is known to be ours.
pub const SIGNATURE: &str = "<!doctype html><!-- made by leasehold -->";

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// What a page is made of.
#[derive(Debug)]
pub struct Page<'a> {
    /// What happened.
    pub history: &'a History,
    /// What it is about: a violation, or why there is no verdict.
    pub finding: &'a Finding,
    /// The verdicts of the other checkers, and the classes of the writes.
    pub judgement: &'a Judgement,
    /// The faults of the plan by their index, if there is a plan.
    pub faults: BTreeMap<u32, FaultNote<'a>>,
    /// What else is known of the run, such as its seed: names and values, in this order.
    pub facts: Vec<(&'a str, String)>,
    /// The commands that show it again, the best one first; each can be copied.
    pub commands: Vec<Command>,
}

/// A fault of the plan, and how it looks.
#[derive(Debug, Clone)]
pub struct FaultNote<'a> {
    /// The fault.
    pub fault: &'a Fault,
    /// The name of its family.
    pub family: &'a str,
    /// The colour of its family, `#rrggbb`.
    pub colour: &'a str,
}

/// A command line to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What the button says.
    pub label: String,
    /// What is copied.
    pub text: String,
}

/// Writes the page.
pub fn page(page: &Page<'_>) -> String {
    let evidence = page.finding.verdict.violation().map(|violation| violation.events.as_slice());
    let index = Index::new(page.history);
    let scene = Scene::new(index, evidence.unwrap_or_default(), &page.faults);
    let mut body = head::head(page);
    body.push_str("<main>\n<div class=\"tell\">\n");
    body.push_str(&story::story(&scene));
    body.push_str(&head::plan(&scene));
    body.push_str("</div>\n");
    body.push_str(&draw::timeline(&scene));
    body.push_str(&table::table(&scene));
    body.push_str("</main>\n");
    body.push_str(&table::data(&scene));
    document(&head::title(page), STYLE, &body, SCRIPT)
}

/// A document around a body. Style and script are ours: they hold nothing of a history.
fn document(title: &str, style: &str, body: &str, script: &str) -> String {
    let script = match script {
        "" => String::new(),
        script => format!("<script>\n{script}</script>\n"),
    };
    format!(
        "{SIGNATURE}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}{script}</body>\n\
         </html>\n",
        escape::text(title)
    )
}
