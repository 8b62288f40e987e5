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

/// The index of several pages. `note` says what it is about, and what it leaves out.
pub fn index(note: &str, rows: &[IndexRow]) -> String {
    let mut body = format!(
        "<header class=\"top\"><p class=\"badges\"><span class=\"badge violation\">{} not passed\
         </span></p>\n<h1>{}</h1></header>\n<main><table class=\"index\"><thead><tr>\
         <th scope=\"col\">run</th><th scope=\"col\">verdict</th><th scope=\"col\">rule</th>\
         <th scope=\"col\">what happened</th></tr></thead><tbody>\n",
        rows.len(),
        escape::text(note)
    );
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
    body.push_str("</tbody></table></main>\n");
    document("Leasehold: what did not pass", STYLE, &body, "")
}
