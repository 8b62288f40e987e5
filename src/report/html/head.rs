//! The top of a page: the verdict in a sentence, the command that shows it again, the plan.

use std::fmt::Write;

use crate::checker::{self, Verdict};

use super::{Page, escape, fault, scene::Scene};

/// The title of the document.
pub(super) fn title(page: &Page<'_>) -> String {
    let run =
        page.facts.first().map_or_else(String::new, |(name, value)| format!(", {name} {value}"));
    match page.finding.verdict.violation() {
        Some(violation) => format!("{}: {}{run}", page.finding.checker, violation.rule),
        None => format!("{}: {}{run}", page.finding.checker, word(&page.finding.verdict)),
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Violation(_) => "violation",
        Verdict::Unknown(_) => "unknown",
        Verdict::NotRun(_) => "not run",
    }
}

/// Verdict, facts, commands, what the other checkers say.
pub(super) fn head(page: &Page<'_>) -> String {
    let finding = page.finding;
    let (rule, message) = match &finding.verdict {
        Verdict::Violation(violation) => (Some(violation.rule), violation.message.as_str()),
        Verdict::Unknown(why) | Verdict::NotRun(why) => (None, why.as_str()),
        Verdict::Pass => (None, "every rule holds"),
    };
    let look = word(&finding.verdict).replace(' ', "-");
    let mut out = format!(
        "<header class=\"top\">\n<p class=\"badges\"><span class=\"badge {look}\">{}</span> \
         <span class=\"checker\">{}</span>",
        word(&finding.verdict),
        escape::text(finding.checker)
    );
    if let Some(rule) = rule {
        let _ = write!(out, " <span class=\"rule\">{}</span>", escape::text(rule));
    }
    let _ = writeln!(out, "</p>\n<h1>{}</h1>", escape::text(&sentence(message)));
    if let Some(known) = checker::by_name(finding.checker) {
        let _ = writeln!(out, "<p class=\"help\">The rule: {}</p>", escape::text(known.help()));
    }
    out.push_str("<dl class=\"facts\">");
    for (name, value) in &page.facts {
        let _ = write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape::text(name),
            escape::text(value)
        );
    }
    out.push_str("</dl>\n");
    commands(&mut out, page);
    others(&mut out, page);
    out.push_str("</header>\n");
    out
}

fn commands(out: &mut String, page: &Page<'_>) {
    let Some(first) = page.commands.first() else { return };
    let _ = write!(out, "<div class=\"command\"><code>{}</code>", escape::whole(&first.text));
    for command in &page.commands {
        let _ = write!(
            out,
            "<button type=\"button\" data-copy=\"{}\">{}</button>",
            escape::whole(&command.text),
            escape::text(&command.label)
        );
    }
    out.push_str("<output></output></div>\n");
}

/// The verdicts of all checkers, and the classes of the writes.
fn others(out: &mut String, page: &Page<'_>) {
    out.push_str("<p class=\"others\">");
    for finding in &page.judgement.findings {
        let look = word(&finding.verdict);
        let _ = write!(
            out,
            "<span class=\"verdict {}\" title=\"{}\">{} <b>{look}</b></span> ",
            look.replace(' ', "-"),
            escape::text(&finding.verdict.to_string()),
            escape::text(finding.checker)
        );
    }
    out.push_str("</p>\n<p class=\"others\">writes: ");
    for (class, count) in page.judgement.classes.rows() {
        let none = if count == 0 { " none" } else { "" };
        let _ = write!(
            out,
            "<span class=\"count{none}\"><i class=\"m {}\"></i>{} <b>{count}</b></span> ",
            class.name(),
            class.name()
        );
    }
    out.push_str("</p>\n");
}

/// The text as a sentence: a great letter first, a full stop last.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}

/// The plan as sentences, each with what became of it.
pub(super) fn plan(scene: &Scene<'_>) -> String {
    let mut out = "<section id=\"plan\"><h2>What was done to the cluster</h2>\n".to_owned();
    if scene.faults.is_empty() && scene.spans.is_empty() {
        out.push_str("<p>Nothing: no faults.</p></section>\n");
        return out;
    }
    out.push_str("<ul>\n");
    let known = scene.faults.keys().chain(scene.spans.keys());
    let mut indexes: Vec<u32> = known.copied().collect();
    indexes.sort_unstable();
    indexes.dedup();
    for index in indexes {
        let span = scene.spans.get(&index);
        let (_, colour) = fault::family(scene, index);
        let sentence = match scene.faults.get(&index) {
            Some(note) => note.fault.to_string(),
            None => "a fault; the plan is not part of the history".to_owned(),
        };
        let link = match span {
            Some(span) => {
                format!("<a href=\"#fault-{index}\" data-go=\"{}\">F{index}</a>", span.begin)
            }
            None => format!("F{index}"),
        };
        let idle = span.is_none_or(|span| span.skipped.is_some() || span.effect == Some(0));
        let _ = writeln!(
            out,
            "<li{}><i class=\"swatch\" style=\"--c:{}\"></i>{link} {} <span class=\"outcome\">{}\
             </span></li>",
            if idle { " class=\"idle\"" } else { "" },
            escape::whole(colour),
            escape::text(&sentence),
            escape::text(&fault::outcome(span))
        );
    }
    out.push_str("</ul></section>\n");
    out
}
