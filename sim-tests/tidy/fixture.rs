//! Tests of the rules themselves: each is fed code that breaks it and code that keeps it.
//!
//! A case names a path, since many rules depend on where a file lies, and the lines on which the
//! rule must fire; no lines mean that it must keep silent.

use std::collections::BTreeSet;

use super::{
    RULES, judge, reach,
    source::{Source, Tree},
};

/// Code, where it lies, and the lines on which the rule fires.
struct Case {
    rule: &'static str,
    path: &'static str,
    code: &'static str,
    lines: &'static [usize],
}

const fn case(
    rule: &'static str,
    path: &'static str,
    code: &'static str,
    lines: &'static [usize],
) -> Case {
    Case { rule, path, code, lines }
}

const STRUCTURE: &[Case] = &[
    case("layer", "src/etcd/server.rs", "use crate::cluster::Node;", &[1]),
    case("layer", "src/etcd/server.rs", "use crate::{time, cluster::Node};", &[1]),
    case("layer", "src/etcd/server.rs", "fn f() { crate::cluster::f() }", &[1]),
    case("layer", "src/etcd/server.rs", "fn f() { x!(1, crate::cluster::f()) }", &[1]),
    case("layer", "src/etcd/server.rs", "fn f(node: &super::super::cluster::Node) {}", &[1]),
    case("layer", "src/etcd/server.rs", "mod m {\n    use super::super::super::cluster;\n}", &[2]),
    case("layer", "src/etcd/server.rs", "use crate::time;\nuse super::model;", &[]),
    case("layer", "src/etcd/server.rs", "use crate::history::Commit as C;", &[]),
    case("layer", "src/etcd/server.rs", "use crate::*;", &[1]),
    case("layer", "src/etcd/server.rs", "use crate::Seed;", &[1]),
    case("layer", "src/etcd/mod.rs", "pub(crate) mod a {\n    pub(super) struct S;\n}", &[]),
    case("layer", "src/storage/client.rs", "use crate::concurrency::Mutex;", &[1]),
    case("layer", "src/storage/client.rs", "use crate::{etcd, history, net, point, time};", &[]),
    case(
        "layer",
        "src/storage/client.rs",
        "// crate::cluster\nconst S: &str = \"crate::cli\";",
        &[],
    ),
    case("layer", "src/history/op.rs", "use crate::seed::Seed;", &[1]),
    case("layer", "src/case.rs", "use crate::{plan::Plan, seed::Seed};", &[]),
    case("layer", "src/case.rs", "use crate::history::NodeName;", &[]),
    case("layer", "src/plan.rs", "use crate::seed::Seed;", &[1]),
    case("layer", "src/plan.rs", "use crate::case::Case;", &[1]),
    case("layer", "src/point/sim.rs", "use crate::time;", &[]),
    case("layer", "src/time/sim.rs", "use crate::point;", &[1]),
    case("layer", "src/checker/stale.rs", "use crate::history::Event;\nuse crate::time;", &[2]),
    case("layer", "src/workload/a.rs", "use crate::checker;\nuse crate::fault;", &[2]),
    case("layer", "src/fault/pause.rs", "use crate::cluster;\nuse crate::workload;", &[2]),
    case("layer", "src/report/text.rs", "use crate::{history, checker, plan};", &[]),
    case("layer", "src/report/text.rs", "use crate::runner;", &[1]),
    case("layer", "src/scenario.rs", "use crate::bug;", &[1]),
    case("layer", "src/explore.rs", "use crate::runner;\nuse crate::bug::ROWS;", &[2]),
    case("layer", "src/cli/list.rs", "use crate::bug::ROWS;", &[]),
    case("layer", "src/runner.rs", "use crate::scenario::Scenario;", &[]),
    case("layer", "src/scenario.rs", "use crate::runner;", &[1]),
    case("layer", "src/main.rs", "fn main() { leasehold::cli::main() }", &[]),
    case("layer", "src/novel.rs", "use std::fmt;", &[1]),
    case("simulation", "src/concurrency/mutex.rs", "use madsim::task::NodeId;", &[1]),
    case("simulation", "src/history/op.rs", "fn f() { madsim::task::spawn(g()) }", &[1]),
    case("simulation", "src/concurrency/mutex.rs", "fn f(madsim: u8) { madsim; }", &[]),
    case("simulation", "src/storage/disk/sim.rs", "use madsim::task::NodeId;", &[]),
    case("simulation", "src/cluster.rs", "use madsim::runtime::Handle;", &[]),
    case("cfg", "src/storage/client.rs", "#[cfg(madsim)]\nfn f() {}", &[1]),
    case("cfg", "src/storage/client.rs", "#[cfg(all(unix, not(madsim)))]\nfn f() {}", &[1]),
    case("cfg", "src/testing.rs", "#[cfg_attr(madsim, inline)]\nfn f() {}", &[1]),
    case("cfg", "src/testing.rs", "fn f() -> bool {\n    cfg!(madsim)\n}", &[2]),
    case("cfg", "src/testing.rs", "#[cfg(test)]\nfn f(madsim: u8) { madsim; }", &[]),
    case("cfg", "src/net.rs", "#[cfg(madsim)]\nmod sim;", &[]),
    case("cfg", "src/etcd/mod.rs", "#[cfg(madsim)]\nmod sim;", &[]),
    case("cfg", "src/etcd/server.rs", "#[cfg(madsim)]\nmod sim;", &[1]),
];

const DETERMINISM: &[Case] = &[
    case("select", "src/etcd/a.rs", "fn f() { tokio::select! { a = b => {} } }", &[1]),
    case("select", "sim-tests/a.rs", "fn f() { x!({ select! { a = b => {} } }) }", &[1]),
    case("select", "src/etcd/a.rs", "fn f() { tokio::select! { biased; a = b => {} } }", &[]),
    case("select", "src/etcd/a.rs", "fn f() { tokio::select! { biased = b => {} } }", &[1]),
    case("select", "src/etcd/a.rs", "fn f() { select(a, b) }", &[]),
    case("hash", "src/etcd/a.rs", "use std::collections::{BTreeMap, HashMap};", &[1]),
    case("hash", "src/etcd/a.rs", "fn f() { vec![HashSet::new()] }", &[1]),
    case("hash", "src/etcd/a.rs", "//! HashMap\nuse std::collections::BTreeMap;", &[]),
    case("watch", "src/storage/server.rs", "use tokio::sync::{Semaphore, watch};", &[1]),
    case("watch", "src/storage/server.rs", "use tokio::sync::{Notify, Semaphore};", &[]),
    case("hash", "sim-tests/a.rs", "use std::collections::HashMap;", &[]),
    case("static", "src/etcd/a.rs", "static mut N: u32 = 0;", &[1]),
    case(
        "static",
        "src/etcd/a.rs",
        "fn f() {\n    static N: AtomicU64 = AtomicU64::new(0);\n}",
        &[2],
    ),
    case("static", "src/etcd/a.rs", "static N: [std::sync::Mutex<u8>; 1] = M;", &[1]),
    case("static", "src/etcd/a.rs", "thread_local! { static N: u8 = 0; }", &[1]),
    case("static", "src/etcd/a.rs", "static NAMES: &[&'static str] = &[];", &[]),
    case("static", "src/etcd/a.rs", "struct S { n: Mutex<u8> }", &[]),
    case("static", "src/cli/a.rs", "static N: AtomicU64 = AtomicU64::new(0);", &[]),
    case("static", "src/cluster/quiet.rs", "static N: AtomicU64 = AtomicU64::new(0);", &[]),
    case("clock", "src/etcd/a.rs", "use std::time::{Duration, Instant};", &[1]),
    case("clock", "src/etcd/a.rs", "use std::time::Duration;", &[]),
    case("clock", "src/etcd/a.rs", "use std::time;\nfn f() { time::Instant::now(); }", &[2]),
    case("clock", "src/etcd/a.rs", "use std::time as t;\nfn f() { t::Instant::now(); }", &[2]),
    case("clock", "src/etcd/a.rs", "use std::time::*;", &[1]),
    case("clock", "src/etcd/a.rs", "use tokio::time;\nfn f() { time::sleep(d); }", &[1]),
    case("clock", "src/etcd/a.rs", "use crate::time;\nfn f() { time::Instant::now(); }", &[]),
    case("clock", "src/etcd/a.rs", "fn f() { std::thread::sleep(d); }", &[1]),
    case("clock", "src/etcd/a.rs", "use std::thread;\nfn f() { thread::sleep(d); }", &[2]),
    case("clock", "src/explore.rs", "use std::thread;\nfn f() { thread::spawn(g); }", &[]),
    case("clock", "src/explore.rs", "use std::time::Instant;", &[1]),
    case("clock", "src/cli/explore.rs", "use std::time::Instant;", &[]),
    case("clock", "src/cluster/node.rs", "use madsim::time::TimeHandle;", &[]),
    case("clock", "src/fault/a.rs", "use madsim::time::TimeHandle;", &[1]),
    case("clock", "src/fault/a.rs", "fn f() { rand::random::<u8>(); }", &[1]),
    case("clock", "src/fault/a.rs", "use rand::thread_rng;\nfn f() { thread_rng(); }", &[1]),
    case("clock", "src/fault/a.rs", "fn f(rand: &Stream) { rand.below(1); }", &[]),
    case(
        "clock",
        "src/time/real.rs",
        "pub use tokio::time::sleep;\nuse std::time::SystemTime;",
        &[],
    ),
    case(
        "clock",
        "src/etcd/a.rs",
        "#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}",
        &[],
    ),
    case(
        "clock",
        "src/etcd/a.rs",
        "#[cfg(not(test))]\nmod m {\n    use std::time::Instant;\n}",
        &[3],
    ),
    case("net", "src/storage/server.rs", "use tokio::net::TcpStream;", &[1]),
    case("net", "src/storage/server.rs", "use crate::net::TcpStream;", &[]),
    case("net", "src/net/real.rs", "use tokio::net::TcpStream;", &[]),
    case("outside", "src/runner.rs", "fn f() { std::env::var(\"X\"); }", &[1]),
    case("outside", "src/runner.rs", "fn f() { env!(\"CARGO_PKG_VERSION\"); }", &[]),
    case("outside", "src/corpus.rs", "use std::{fs, io};", &[1]),
    case(
        "outside",
        "src/runner.rs",
        "fn f() {\n    println!(\"x\");\n    std::eprint!(\"x\");\n}",
        &[2, 3],
    ),
    case("outside", "src/runner.rs", "fn f() { x!(println!(\"x\")); }", &[1]),
    case("outside", "src/storage/disk/real.rs", "use std::fs;", &[]),
    case("outside", "src/storage/disk/real.rs", "fn f() { println!(\"x\"); }", &[1]),
    case("outside", "src/cli/mod.rs", "use std::env;\nfn f() { println!(\"x\"); }", &[]),
    case("outside", "src/runner.rs", "#[test]\nfn f() { println!(\"x\"); }", &[]),
];

const FORM: &[Case] = &[
    case("head", "src/etcd/a.rs", "//! What it is.", &[]),
    case("head", "src/etcd/a.rs", "// What it is.\n//! Too late.", &[1]),
    case("leftover", "src/etcd/a.rs", "fn f() { todo!() }", &[1]),
    case("leftover", "sim-tests/a.rs", "fn f() {\n    vec![dbg!(1)]\n}", &[2]),
    case("leftover", "src/etcd/a.rs", "fn f() { unreachable!(\"why\") }", &[]),
    case(
        "leftover",
        "sim-tests/a.rs",
        "#[test]\n#[ignore = \"slow\"]\nfn f() { assert!(true) }",
        &[2],
    ),
    case("leftover", "sim-tests/a.rs", "#[cfg_attr(unix, ignore)]\nfn f() {}", &[1]),
    case("leftover", "sim-tests/a.rs", "#[serde(ignore)]\nfn ignore() {}", &[]),
    case("name", "src/etcd/utils.rs", "", &[1]),
    case("name", "src/common/lease.rs", "", &[1]),
    case("name", "src/etcd/a.rs", "mod lease {}\nmod helpers {}", &[2]),
    case("name", "src/etcd/lease.rs", "", &[]),
    case("assert", "sim-tests/a.rs", "#[test]\nfn f() { g() }", &[2]),
    case(
        "assert",
        "sim-tests/a.rs",
        "#[tokio::test(start_paused = true)]\nasync fn f() { g() }",
        &[2],
    ),
    case(
        "assert",
        "sim-tests/a.rs",
        "mod m {\n    #[test]\n    fn f() { g().expect(\"why\") }\n}",
        &[3],
    ),
    case(
        "assert",
        "sim-tests/a.rs",
        "proptest! {\n    #[test]\n    fn f(n in 0..9) { g(n) }\n}",
        &[3],
    ),
    case(
        "assert",
        "sim-tests/a.rs",
        "proptest! {\n    #[test]\n    fn f(n in 0..9) { prop_assert!(n) }\n}",
        &[],
    ),
    case("assert", "sim-tests/a.rs", "#[test]\nfn f() { if g() { assert_eq!(1, 1) } }", &[]),
    case("assert", "sim-tests/a.rs", "#[test]\nfn f() { expect_refused(g()) }", &[]),
    case("assert", "sim-tests/a.rs", "#[test]\nfn f() { testing::check(g()) }", &[]),
    case("assert", "sim-tests/a.rs", "#[test]\nfn f() { g().unwrap_err(); }", &[]),
    case(
        "assert",
        "sim-tests/a.rs",
        "#[test]\n#[should_panic(expected = \"x\")]\nfn f() { g() }",
        &[],
    ),
    case("assert", "sim-tests/a.rs", "#[test]\n#[should_panic]\nfn f() { g() }", &[3]),
    case("assert", "sim-tests/a.rs", "#[cfg(test)]\nfn f() { g() }", &[]),
];

fn cases() -> impl Iterator<Item = &'static Case> {
    [STRUCTURE, DETERMINISM, FORM].into_iter().flatten()
}

/// The lines on which a rule fires on this code.
fn fired(rule: &str, path: &str, code: &str) -> Vec<usize> {
    let source = Source::parse(path, code).expect("a case is Rust");
    let findings = judge(&source).into_iter().filter(|finding| finding.rule == rule);
    findings.map(|finding| finding.line).collect()
}

/// Each rule fires where the case says and nowhere else, so that a silent rule is a kept rule.
#[test]
fn rules_fire_on_bad_code_only() {
    let wrong: Vec<String> = cases()
        .filter_map(|case| {
            let lines = fired(case.rule, case.path, case.code);
            let differs = lines != case.lines;
            differs.then(|| format!("{} in {}: {lines:?}\n{}", case.rule, case.path, case.code))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Each rule has a case that breaks it and one that keeps it; sizes have a test of their own.
#[test]
fn every_rule_has_good_and_bad_code() {
    let with = |bad: bool| -> BTreeSet<&str> {
        cases().filter(|case| case.lines.is_empty() != bad).map(|case| case.rule).collect()
    };
    let rules: BTreeSet<&str> =
        RULES.iter().map(|rule| rule.name).filter(|name| *name != "size").collect();
    assert_eq!((with(true), with(false)), (rules.clone(), rules));
}

/// A limit holds up to its last line or column, and not one further.
#[test]
fn sizes_have_sharp_limits() {
    let path = "src/etcd/a.rs";
    let body = |lines: usize| format!("\nfn f() {{{}}}", "\n".repeat(lines - 1));
    assert_eq!(fired("size", path, &body(70)), [0usize; 0]);
    assert_eq!(fired("size", path, &body(71)), [2]);
    let method = |lines: usize| format!("impl S {{ {} }}", body(lines));
    assert_eq!(fired("size", path, &method(71)), [2]);
    assert_eq!(fired("size", path, &"\n".repeat(600)), [0usize; 0]);
    assert_eq!(fired("size", path, &"\n".repeat(601)), [1]);
    let comment = |columns: usize| format!("// {}", "ä".repeat(columns - 3));
    assert_eq!(fired("size", path, &comment(100)), [0usize; 0]);
    assert_eq!(fired("size", path, &comment(101)), [1]);
    assert_eq!(fired("size", path, &format!("{} https://a.b/c", comment(100))), [0usize; 0]);
}

fn dead(files: &[(&str, &str)]) -> Vec<String> {
    let tree = Tree::parse(files.iter().copied());
    reach::dead_files(&tree).into_iter().map(|finding| finding.path).collect()
}

/// A file without a `mod` line is dead, and so is what only it names; the usual layouts live.
#[test]
fn dead_files_are_found() {
    let live = [
        ("src/lib.rs", "mod etcd;\nmod time;\nmod inline { mod deep; }"),
        ("src/main.rs", ""),
        ("src/etcd/mod.rs", "mod server;"),
        ("src/etcd/server.rs", "#[path = \"../odd.rs\"]\nmod other;"),
        ("src/odd.rs", ""),
        ("src/time.rs", "mod sim;"),
        ("src/time/sim.rs", ""),
        ("src/inline/deep.rs", ""),
        ("sim-tests/sim.rs", "mod area;"),
        ("sim-tests/area/mod.rs", ""),
        ("examples/own.rs", ""),
        ("examples/tour/main.rs", ""),
    ];
    assert_eq!(dead(&live), Vec::<String>::new());
    let stray = [("src/lib.rs", ""), ("src/a.rs", "mod b;"), ("src/a/b.rs", "")];
    assert_eq!(dead(&stray), ["src/a.rs", "src/a/b.rs"]);
}

/// A file behind `#[cfg(test)] mod …;` is test code, unless another way leads to it.
#[test]
fn test_only_files_are_told_apart() {
    let clock = "use std::time::Instant;";
    let rules = |head: &str| {
        let files = [("src/lib.rs", "mod etcd;"), ("src/etcd.rs", head), ("src/etcd/a.rs", clock)];
        let tree = Tree::parse(files.into_iter());
        let found: Vec<&str> =
            tree.sources.iter().flat_map(judge).map(|finding| finding.rule).collect();
        found.contains(&"clock")
    };
    assert!(rules("mod a;"));
    assert!(!rules("#[cfg(test)]\nmod a;"));
}

/// What cannot be parsed is a finding with its line, not a file that is passed over.
#[test]
fn broken_code_is_a_finding() {
    let tree = Tree::parse([("src/lib.rs", "\nfn f( {}")].into_iter());
    let at: Vec<_> = tree.broken.iter().map(|finding| (finding.rule, finding.line)).collect();
    assert_eq!(at, [("syntax", 2)]);
}
