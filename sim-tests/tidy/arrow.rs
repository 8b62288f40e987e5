//! Layers: a module names only modules below it, and the pure ones know no simulation.
//!
//! This is the list of layers of the crate docs in a form that can be checked. A new module gets a
//! rank here before anything may use it. A new arrow between siblings is a row in `SIBLINGS`, and a
//! change of its own that says why.

use std::collections::BTreeSet;

use super::{
    path::{self, Kind},
    source::{Finding, Source},
};

/// Each module right below the crate root with its rank: arrows point to smaller ranks only.
const LAYERS: &[(&str, u8)] = &[
    ("history", 0),
    ("plan", 0),
    ("case", 0),
    ("seed", 0),
    ("time", 1),
    ("net", 1),
    ("point", 1),
    ("etcd", 2),
    ("conformance", 3),
    ("concurrency", 3),
    ("storage", 3),
    ("contrib", 4),
    ("system", 4),
    ("cluster", 5),
    ("fault", 6),
    ("workload", 6),
    ("checker", 6),
    ("bug", 6),
    ("demo", 7),
    ("judge", 7),
    ("scenario", 7),
    ("runner", 7),
    ("explore", 8),
    ("shrink", 8),
    ("corpus", 8),
    ("report", 8),
    ("hunt", 9),
    ("testing", 9),
    ("cli", 10),
    ("main", 10),
];

/// Arrows between modules of the same rank.
const SIBLINGS: &[(&str, &str)] = &[
    // A case is a seed and a plan, so it holds both.
    ("case", "plan"),
    ("case", "seed"),
    // A fault has a target, and a replay token the hash of its run.
    ("plan", "history"),
    ("case", "history"),
    // A delivery takes time, and a pause at a code point lasts some.
    ("net", "time"),
    ("point", "time"),
    // A workload brings the checkers that judge it, a known bug the one that must catch it.
    ("workload", "checker"),
    ("bug", "checker"),
    // A run is a run of a scenario, and is judged; the demo fails as a run does.
    ("runner", "scenario"),
    ("judge", "runner"),
    ("judge", "scenario"),
    ("demo", "runner"),
    ("demo", "scenario"),
    // Shrinking runs cases as an exploration does, and a corpus judges what such a run gave.
    ("shrink", "explore"),
    ("corpus", "explore"),
    // The program's first file starts the command line.
    ("main", "cli"),
];

/// Modules that may name these of ours and no others, whatever the ranks say.
const ONLY: &[(&str, &[&str])] = &[
    ("history", &[]),
    ("plan", &["history"]),
    ("case", &["history", "plan", "seed"]),
    ("checker", &["history"]),
    ("report", &["history", "checker", "plan"]),
];

/// Modules that only these may name.
const NAMED_BY: &[(&str, &[&str])] = &[("bug", &["cli", "hunt", "testing"])];

/// Modules that must not know that there is a simulation.
const UNSIMULATED: &[&str] =
    &["history", "plan", "case", "seed", "checker", "concurrency", "storage", "contrib", "report"];

fn rank(module: &str) -> Option<u8> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, rank)| *rank)
}

/// Whether `from` may name `to`; if not, why.
fn forbidden(from: &str, to: &str) -> Option<String> {
    let row = |table: &[(&str, &'static [&'static str])], key: &str| {
        table.iter().find(|(name, _)| *name == key).map(|(_, listed)| *listed)
    };
    let listed = |modules: &[&str]| match modules {
        [] => "nothing of ours".to_string(),
        modules => format!("only {}", modules.join(", ")),
    };
    let (Some(from_rank), Some(to_rank)) = (rank(from), rank(to)) else {
        return Some(format!("`{to}` has no layer; give it a rank in sim-tests/tidy/arrow.rs"));
    };
    if let Some(allowed) = row(ONLY, from)
        && !allowed.contains(&to)
    {
        return Some(format!("`{from}` may name {}; hand the value in", listed(allowed)));
    }
    if let Some(allowed) = row(NAMED_BY, to)
        && !allowed.contains(&from)
    {
        return Some(format!("`{to}` may be named by {}; use its public type", listed(allowed)));
    }
    if to_rank < from_rank || SIBLINGS.contains(&(from, to)) {
        return None;
    }
    Some("arrows point down only; move the type down, or hand the value in".to_string())
}

/// Every path into another module of the crate points down.
pub(super) fn layers(source: &Source) -> Vec<Finding> {
    let from = source.area();
    let mut findings = Vec::new();
    if !source.in_src() || from.is_empty() {
        return findings;
    }
    if rank(from).is_none() {
        let what = format!("module `{from}` has no layer; give it a rank in LAYERS");
        return vec![source.finding("layer", 1, what)];
    }
    let mut seen = BTreeSet::new();
    for name in path::named(source) {
        let Some(full) = path::from_root(source, &name) else { continue };
        let to = match (full.first(), name.kind) {
            (Some(to), _) => to.clone(),
            (None, Kind::Glob) => "*".to_string(),
            (None, _) => continue,
        };
        if to == from || !seen.insert((to.clone(), name.line)) {
            continue;
        }
        if let Some(why) = forbidden(from, &to) {
            let what = format!("`{from}` names `crate::{to}`: {why}");
            findings.push(source.finding("layer", name.line, what));
        }
    }
    findings
}

/// Pure data and the code under test name nothing of the simulation runtime.
pub(super) fn simulation(source: &Source) -> Vec<Finding> {
    if !source.is_within(UNSIMULATED) || source.is_within(&["storage/disk"]) {
        return Vec::new();
    }
    let names = path::named(source);
    let lines: BTreeSet<usize> = names
        .iter()
        .filter(|name| name.segments[0] == "madsim" && name.segments.len() > 1 && !name.in_test)
        .map(|name| name.line)
        .collect();
    let what = "names `madsim` where nothing may know of the simulation; go through crate::time, \
                crate::net or crate::point";
    lines.into_iter().map(|line| source.finding("simulation", line, what.to_string())).collect()
}
