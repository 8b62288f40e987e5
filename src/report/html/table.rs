//! All events as a table with a filter, and as data for the details.

use std::fmt::Write;

use super::{escape, mark, scene::Scene};

/// Events whose JSON is longer than this are shown in the table only.
const DATA_MAX: usize = 4_000;

/// The table; it says so if it does not hold all events.
pub(super) fn table(scene: &Scene<'_>) -> String {
    let total = scene.index.history.events.len();
    let shown = scene.kept.len();
    let note = match shown < total {
        true => format!("showing {shown} of {total}, those nearest to the evidence"),
        false => format!("all {total}"),
    };
    let mut out = format!(
        "<section><details id=\"events\"><summary><h2>Events</h2> <span>{note}</span></summary>\n\
         <p class=\"filter\"><label>Filter <input type=\"search\" id=\"filter\" \
         placeholder=\"client-2 write\" autocomplete=\"off\"></label> \
         <output id=\"matches\"></output></p>\n<table><thead><tr><th scope=\"col\">seq</th>\
         <th scope=\"col\">true time</th><th scope=\"col\">node</th><th scope=\"col\">what</th>\
         </tr></thead><tbody>\n"
    );
    for event in scene.events() {
        let class = scene.classes.get(&event.seq);
        let class = class.map_or_else(String::new, |class| {
            format!(" <span class=\"chip {}\">{}</span>", class.name(), class.name())
        });
        let drawn = mark::look(scene, event).is_some();
        let place = if drawn { format!("m{}", event.seq) } else { "timeline".to_owned() };
        let step = scene.step(event.seq);
        let number = step.map_or_else(String::new, |step| format!(" <b>{step}</b>"));
        let _ = writeln!(
            out,
            "<tr id=\"e{seq}\"{}><td><a href=\"#{place}\" data-go=\"{seq}\">{seq}</a>{number}</td>\
             <td>{}</td><td>{}</td><td>{}{class}</td></tr>",
            if step.is_some() { " class=\"evidence\"" } else { "" },
            escape::seconds(event.at_ns),
            event.node,
            escape::text(&scene.words(event)),
            seq = event.seq
        );
    }
    out.push_str("</tbody></table></details></section>\n");
    out
}

/// Every field of every listed event, as JSON by its `seq`.
pub(super) fn data(scene: &Scene<'_>) -> String {
    let mut out = "<script type=\"application/json\" id=\"data\">{".to_owned();
    let mut first = true;
    for event in scene.events() {
        let json = serde_json::to_string(event).unwrap_or_default();
        if json.is_empty() || json.len() > DATA_MAX {
            continue;
        }
        let comma = if std::mem::take(&mut first) { "\n" } else { ",\n" };
        let _ = write!(out, "{comma}\"{}\":{}", event.seq, escape::json(&json));
    }
    out.push_str("\n}</script>\n");
    out
}
