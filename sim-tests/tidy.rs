//! House rules as a test: the sources of this crate are parsed and judged.
//!
//! What the crate docs promise about its structure (layers, where the two builds differ, what may
//! read the clock) holds only as long as something checks it. Each rule is a function from a parsed
//! source file to findings; [`RULES`] lists them, `fixture` feeds each of them good and bad code.
//!
//! It relies on `syn` and on line numbers in spans. It does not expand macros: inside a macro call
//! it looks at the tokens, and it does not see what other crates do.

mod arrow;
mod fixture;
mod leftover;
mod outside;
mod path;
mod place;
mod reach;
mod size;
mod source;
mod token;

use std::path::Path;

use source::{Finding, Source};

/// A rule that looks at one file at a time.
struct Rule {
    /// The word in front of each of its findings.
    name: &'static str,
    check: fn(&Source) -> Vec<Finding>,
}

/// Every rule but that against dead files, which needs the whole tree and lives in `reach`.
const RULES: &[Rule] = &[
    Rule { name: "layer", check: arrow::layers },
    Rule { name: "simulation", check: arrow::simulation },
    Rule { name: "cfg", check: place::cfg_madsim },
    Rule { name: "select", check: place::select_biased },
    Rule { name: "hash", check: place::hash_collections },
    Rule { name: "watch", check: place::watch_channels },
    Rule { name: "static", check: place::mutable_statics },
    Rule { name: "clock", check: outside::clock_and_random },
    Rule { name: "net", check: outside::network },
    Rule { name: "outside", check: outside::process },
    Rule { name: "size", check: size::sizes },
    Rule { name: "head", check: size::head },
    Rule { name: "leftover", check: leftover::leftovers },
    Rule { name: "name", check: leftover::module_names },
    Rule { name: "assert", check: leftover::tests_assert },
];

/// The findings of all rules on one file, in the order of its lines.
fn judge(source: &Source) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        RULES.iter().flat_map(|rule| (rule.check)(source).into_iter()).collect();
    findings.sort();
    findings
}

/// The sources keep the house rules: all findings are listed at once, each with its remedy.
#[test]
fn house_rules_hold() {
    let tree = source::Tree::read(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(tree.sources.len() >= 10, "the sources were not found: {:?}", tree.sources.len());
    let mut findings = tree.broken.clone();
    findings.extend(tree.sources.iter().flat_map(judge));
    findings.extend(reach::dead_files(&tree));
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "{} findings\n{}", lines.len(), lines.join("\n"));
}
