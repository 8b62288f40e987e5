//! The page of pages: what did not pass, one row each.

use std::fmt::Write;

use super::{STYLE, document, escape};

/// A row of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    /// The name of the page's file, next to the index; `None` if there is no page.
    pub file: Option<String>,
    /// Which run, such as `seed 7`.
    pub run: String,
    /// The verdict in one word.
    pub verdict: String,
    /// The checker, and its broken rule.
    pub rule: String,
    /// What happened, in one sentence.
    pub message: String,
}

/// The index of several pages. `note` says what it is about, and what it leaves out; `older` are
/// the files next to it that hold pages of earlier runs.
pub fn index(note: &str, rows: &[IndexRow], older: &[String]) -> String {
    let (look, found) = match rows.len() {
        0 => ("pass", "no finding".to_owned()),
        1 => ("violation", "1 finding".to_owned()),
        n => ("violation", format!("{n} findings")),
    };
    let mut body = format!(
        "<header class=\"top\"><p class=\"badges\"><span class=\"badge {look}\">{found}\
         </span></p>\n<h1>{}</h1></header>\n<main>\n",
        escape::text(note)
    );
    if !rows.is_empty() {
        body.push_str(&table(rows));
    }
    if !older.is_empty() {
        body.push_str("<p>Pages of earlier runs, not of this one:</p>\n<ul class=\"older\">\n");
        for file in older {
            let (link, shown) = (escape::whole(file), escape::text(file));
            let _ = writeln!(body, "<li><a href=\"{link}\">{shown}</a></li>");
        }
        body.push_str("</ul>\n");
    }
    body.push_str("</main>\n");
    document("Leasehold: what did not pass", STYLE, &body, "")
}

fn table(rows: &[IndexRow]) -> String {
    let mut body = "<table class=\"index\"><thead><tr><th scope=\"col\">run</th>\
                    <th scope=\"col\">verdict</th><th scope=\"col\">rule</th>\
                    <th scope=\"col\">what happened</th></tr></thead><tbody>\n"
        .to_owned();
    for row in rows {
        let run = match &row.file {
            Some(file) => {
                format!("<a href=\"{}\">{}</a>", escape::whole(file), escape::text(&row.run))
            }
            None => escape::text(&row.run),
        };
        let _ = writeln!(
            body,
            "<tr><td>{run}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape::text(&row.verdict),
            escape::text(&row.rule),
            escape::text(&row.message)
        );
    }
    body.push_str("</tbody></table>\n");
    body
}
