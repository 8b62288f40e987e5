//! The timeline as markup: every bar and mark says its times, the style sheet places them.
//!
//! Positions are numbers of seconds in custom properties (`--a`, `--b`), and the window is two
//! more (`--from`, `--span`): to zoom is to change these two. What lies outside the first window
//! is `off` from the start, so the page is right, and prints right, without its script.

use std::fmt::Write;

use super::{
    escape, lane, mark,
    scene::{Bar, Lane, Mark, Scene, Track},
};

/// The whole section of the timeline.
pub(super) fn timeline(scene: &Scene<'_>) -> String {
    let lanes = lane::lanes(scene);
    let (from, to) = scene.window;
    let mut out = String::new();
    let (total, shown) = (scene.index.history.events.len(), scene.kept.len());
    let note = match shown < total {
        true => format!(
            " <span class=\"note\">showing {shown} of {total} events, those nearest to \
                         the evidence</span>"
        ),
        false => String::new(),
    };
    let _ =
        writeln!(out, "<section id=\"timeline\" aria-label=\"Timeline\">\n<h2>Timeline{note}</h2>");
    out.push_str(&toolbar());
    let _ = writeln!(
        out,
        "<div id=\"chart\" tabindex=\"0\" data-end=\"{}\" data-from=\"{}\" data-to=\"{}\" \
         style=\"--from:{};--span:{}\">",
        escape::position(scene.end_ns),
        escape::position(from),
        escape::position(to),
        escape::position(from),
        escape::position(to - from)
    );
    out.push_str(&overview(scene, &lanes));
    out.push_str(&axis(scene));
    for lane in &lanes {
        draw_lane(&mut out, scene, lane);
    }
    out.push_str("<div class=\"guides\" aria-hidden=\"true\">");
    for seq in &scene.evidence {
        let at_ns = scene.at_ns(*seq);
        let _ = write!(out, "<i class=\"t guide{}\" {}></i>", off(scene, at_ns, at_ns), at(at_ns));
    }
    out.push_str("</div>\n</div>\n");
    out.push_str("<div id=\"details\" aria-live=\"polite\"><p>Point at anything, or press Tab or ");
    out.push_str("n, to see all of it here.</p></div>\n");
    out.push_str(&legend(scene));
    out.push_str("</section>\n");
    out
}

fn toolbar() -> String {
    let buttons = [
        ("evidence", "e", "Around the evidence"),
        ("all", "a", "Whole run"),
        ("in", "+", "Zoom in"),
        ("out", "-", "Zoom out"),
        ("left", "←", "Earlier"),
        ("right", "→", "Later"),
        ("previous", "p", "Previous step"),
        ("next", "n", "Next step"),
    ];
    let mut out = "<div class=\"tools\" role=\"toolbar\" aria-label=\"Timeline\">".to_owned();
    for (action, key, label) in buttons {
        let _ = write!(
            out,
            "<button type=\"button\" data-do=\"{action}\">{label} <kbd>{key}</kbd></button>"
        );
    }
    out.push_str("<span class=\"hint\">drag to move, Ctrl+wheel to zoom</span></div>\n");
    out
}

/// The whole run as a strip: faults, evidence, and where the window is.
fn overview(scene: &Scene<'_>, lanes: &[Lane]) -> String {
    let percent = |ns: u64| {
        let permyriad = u128::from(ns) * 1_000_000 / u128::from(scene.end_ns);
        format!("{}.{:04}%", permyriad / 10_000, permyriad % 10_000)
    };
    let mut out = "<div class=\"row overview\"><span class=\"name\">whole run</span>\
                   <div class=\"plot\" id=\"overview\" title=\"Click to go there\">"
        .to_owned();
    let bands = lanes.iter().flat_map(|lane| &lane.tracks).filter(|track| track.look == "faults");
    for band in bands.flat_map(|track| &track.bars).filter(|band| band.id.is_some()) {
        let _ = write!(
            out,
            "<i class=\"band\" style=\"left:{};width:{};--c:{}\"></i>",
            percent(band.from_ns),
            percent(band.to_ns - band.from_ns),
            escape::whole(band.colour.as_deref().unwrap_or_default())
        );
    }
    for seq in &scene.evidence {
        let _ = write!(out, "<i class=\"tick\" style=\"left:{}\"></i>", percent(scene.at_ns(*seq)));
    }
    let (from, to) = scene.window;
    let _ = writeln!(
        out,
        "<i id=\"window\" style=\"left:{};width:{}\"></i></div></div>",
        percent(from),
        percent(to - from)
    );
    out
}

/// The axis, with a pin for each step of the story. The script puts the numbers of seconds in.
fn axis(scene: &Scene<'_>) -> String {
    let (from, to) = scene.window;
    let mut out = "<div class=\"row axis\"><span class=\"name\">true time</span>\
                   <div class=\"plot\" id=\"axis\"><div id=\"ticks\">"
        .to_owned();
    for part in 0..5u64 {
        let at_ns = from + (to - from) / 5 * part;
        let _ = write!(
            out,
            "<span class=\"t tick-label\" {}>{}</span>",
            at(at_ns),
            escape::seconds(at_ns)
        );
    }
    out.push_str("</div>");
    for (number, seq) in (1..).zip(&scene.evidence) {
        let at_ns = scene.at_ns(*seq);
        let said = scene.event(*seq).map_or_else(String::new, |event| scene.words(event));
        let _ = write!(
            out,
            "<a class=\"t pin{}\" href=\"#s{seq}\" data-e=\"{seq}\" {} title=\"{}\">{number}</a>",
            off(scene, at_ns, at_ns),
            at(at_ns),
            escape::text(&said)
        );
    }
    out.push_str("</div></div>\n");
    out
}

fn draw_lane(out: &mut String, scene: &Scene<'_>, lane: &Lane) {
    let name = lane::title(lane.node);
    let tint = lane::tint(lane.node);
    let _ = writeln!(
        out,
        "<div class=\"lane {tint}\" id=\"lane-{}\" data-node=\"{}\" role=\"group\" \
         aria-label=\"{name}\"><span class=\"node\">{name}</span><div class=\"shades\" \
         aria-hidden=\"true\">",
        lane.node, lane.node
    );
    for shade in &lane.shades {
        draw_bar(out, scene, shade, 0);
    }
    out.push_str("</div>\n");
    for track in &lane.tracks {
        draw_track(out, scene, track);
    }
    out.push_str("</div>\n");
}

fn draw_track(out: &mut String, scene: &Scene<'_>, track: &Track) {
    let rows = track.stacked();
    // Most of the time there is nothing on these: then they take no room.
    let sparse = ["faults", "clocks", "omitted"].contains(&track.look);
    let bars = track.bars.iter().map(|bar| (bar.from_ns, bar.to_ns));
    let mut times = bars.chain(track.marks.iter().map(|mark| (mark.at_ns, mark.at_ns)));
    let idle = sparse && times.all(|(from_ns, to_ns)| !off(scene, from_ns, to_ns).is_empty());
    let height = rows.iter().max().map_or(1, |row| row + 1);
    let _ = write!(
        out,
        "<div class=\"row track {}{}{}\" style=\"--rows:{height}\"><span class=\"name\" \
         title=\"{}\">{}</span><div class=\"plot\">",
        track.look,
        if sparse { " sparse" } else { "" },
        if idle { " off" } else { "" },
        escape::text(&track.label),
        escape::text(&track.label)
    );
    for (bar, row) in track.bars.iter().zip(rows) {
        draw_bar(out, scene, bar, row);
    }
    for mark in &track.marks {
        draw_mark(out, scene, mark);
    }
    out.push_str("</div></div>\n");
}

fn draw_bar(out: &mut String, scene: &Scene<'_>, bar: &Bar, row: usize) {
    let _ = write!(
        out,
        "<a class=\"t bar {}{}{}\" style=\"--a:{};--b:{}",
        bar.look,
        off(scene, bar.from_ns, bar.to_ns),
        tiny(scene, bar),
        escape::position(bar.from_ns),
        escape::position(bar.to_ns)
    );
    if row > 0 {
        let _ = write!(out, ";--r:{row}");
    }
    if let Some(colour) = &bar.colour {
        let _ = write!(out, ";--c:{}", escape::whole(colour));
    }
    out.push('"');
    if let Some(id) = &bar.id {
        let _ = write!(out, " id=\"{}\"", escape::whole(id));
    }
    if let Some(seq) = bar.event.filter(|seq| scene.kept.binary_search(seq).is_ok()) {
        let _ = write!(out, " data-e=\"{seq}\" href=\"#e{seq}\"");
    }
    if !bar.title.is_empty() {
        let _ = write!(out, " title=\"{}\"", escape::text(&bar.title).replace("\\u{a}", "\n"));
    }
    let _ = writeln!(out, "><span>{}</span></a>", escape::text(&bar.label));
}

fn draw_mark(out: &mut String, scene: &Scene<'_>, mark: &Mark) {
    let step = scene.step(mark.seq);
    let number = step.map_or_else(String::new, |step| format!("<b>{step}</b>"));
    let _ = writeln!(
        out,
        "<a class=\"t m {}{}{}\" id=\"m{seq}\" data-e=\"{seq}\" href=\"#e{seq}\" {} \
         title=\"#{} at {}&#10;{}\">{number}</a>",
        mark.look,
        if step.is_some() { " evidence" } else { "" },
        off(scene, mark.at_ns, mark.at_ns),
        at(mark.at_ns),
        mark.seq,
        escape::seconds(mark.at_ns),
        escape::text(&mark.title).replace("\\u{a}", "\n"),
        seq = mark.seq,
    );
}

fn at(at_ns: u64) -> String {
    format!("style=\"--a:{}\"", escape::position(at_ns))
}

fn off(scene: &Scene<'_>, from_ns: u64, to_ns: u64) -> &'static str {
    let (from, to) = scene.window;
    if to_ns < from || from_ns > to { " off" } else { "" }
}

/// A bar that is too short for its label in the first window, on a usual screen.
fn tiny(scene: &Scene<'_>, bar: &Bar) -> &'static str {
    let (from, to) = scene.window;
    let seen = bar.to_ns.min(to).saturating_sub(bar.from_ns.max(from));
    if seen < (to - from) / 35 { " tiny" } else { "" }
}

fn legend(scene: &Scene<'_>) -> String {
    let mut out = "<details id=\"legend\" open><summary>Legend</summary><ul>".to_owned();
    for (look, meaning) in mark::LEGEND {
        let _ = write!(out, "<li><i class=\"m {look}\"></i><span>{meaning}</span></li>");
    }
    out.push_str(
        "<li><i class=\"m write evidence\"><b>1</b></i><span>a step of the story</span></li>",
    );
    let bars = [
        ("tenure c0", "owner of the lock, by the commit log"),
        ("belief c0", "what a client believes"),
        ("mark-span c0", "the storage's mark, recomputed"),
        ("op wait ok", "waiting for the lock"),
        ("op writing ok", "a call; dashed if nobody knows its end"),
        ("clock", "clock at another rate than true time, measured"),
        ("down", "no process"),
        ("stopped", "the process stands still"),
    ];
    for (look, meaning) in bars {
        let _ = write!(out, "<li><i class=\"bar sample {look}\"></i><span>{meaning}</span></li>");
    }
    let mut families: Vec<(&str, &str)> =
        scene.spans.keys().map(|index| super::fault::family(scene, *index)).collect();
    families.sort_unstable();
    families.dedup();
    for (family, colour) in families {
        let _ = write!(
            out,
            "<li><i class=\"bar sample fault\" style=\"--c:{}\"></i><span>fault: {}</span></li>",
            escape::whole(colour),
            escape::text(family)
        );
    }
    out.push_str("</ul></details>\n");
    out
}
