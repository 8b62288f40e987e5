//! The least events of the violation as a story: what happened, and how things stood just then.

use std::fmt::Write;

use super::{
    escape, lane, mark,
    record::{self, MarkSpan},
    scene::Scene,
    sentence,
};

/// The numbered list; nothing if there is no evidence.
pub(super) fn story(scene: &Scene<'_>) -> String {
    let mut out = "<section id=\"story\"><h2>What shows it</h2>\n".to_owned();
    if scene.evidence.is_empty() {
        out.push_str("<p>No single events show it: see the timeline.</p></section>\n");
        return out;
    }
    let holders = lane::holders(scene);
    let marks = record::mark_spans(scene);
    out.push_str("<ol>\n");
    let mut before_ns = None;
    for (number, seq) in (1..).zip(&scene.evidence) {
        let Some(event) = scene.event(*seq) else { continue };
        let passed = before_ns.map_or_else(String::new, |before: u64| {
            format!(" <span class=\"passed\">+{}</span>", escape::seconds(event.at_ns - before))
        });
        before_ns = Some(event.at_ns);
        let look = mark::look(scene, event).unwrap_or("plain");
        let class = scene.classes.get(seq);
        let class = class.map_or_else(String::new, |class| {
            format!(" <span class=\"chip {}\">{}</span>", class.name(), class.name())
        });
        let _ = writeln!(
            out,
            "<li id=\"s{seq}\"><a href=\"#m{seq}\" data-e=\"{seq}\" data-go=\"{seq}\">\
             <span class=\"number\">{number}</span>\
             <span class=\"when\">{}{passed}</span> \
             <span class=\"where\"><i class=\"m {look}\"></i>{}</span> \
             <span class=\"what\">{}{class}</span> \
             <span class=\"state\">{}</span></a></li>",
            escape::seconds(event.at_ns),
            event.node,
            escape::text(&sentence::sentence(scene, &holders, event)),
            state(scene, &holders, &marks, *seq)
        );
    }
    out.push_str("</ol></section>\n");
    out
}

/// Who owned the lock, who believed so, and the mark, just after an event.
fn state(
    scene: &Scene<'_>,
    holders: &std::collections::BTreeMap<usize, usize>,
    marks: &[MarkSpan<'_>],
    seq: u64,
) -> String {
    let holdings = scene.index.holdings.iter();
    let believers = holdings.filter(|h| h.belief.is_some_and(|belief| belief.contains(seq)));
    let mut believers: Vec<String> = believers.map(|holding| holding.node.to_string()).collect();
    believers.sort_unstable();
    believers.dedup();
    let two = believers.len() > 1 && scene.index.locks.iter().filter(|lock| lock.named).count() < 2;
    let believers = match believers.as_slice() {
        [] => "nobody".to_owned(),
        some => some.join(", "),
    };
    let now = marks.iter().filter(|span| span.from <= seq && seq < span.to);
    let now: Vec<String> = now.map(|span| span.mark.to_string()).collect();
    let now = if now.is_empty() { "none yet".to_owned() } else { now.join(", ") };
    let owner = record::owners_at(scene, holders, seq);
    format!(
        "owner <b>{}</b> · believes <b{}>{}</b> · mark <b>{}</b>",
        escape::text(&owner),
        if two { " class=\"two\"" } else { "" },
        escape::text(&believers),
        escape::text(&now)
    )
}
