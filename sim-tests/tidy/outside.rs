//! The world outside a run: clocks, randomness, sockets, environment, files, the terminal.
//!
//! Code that only tests compile is exempt: a test may read a file or measure itself.

use super::{
    path::{self, Aliases, Kind, Named},
    source::{Finding, Source},
};

/// A path that is banned but in some places, with all that lies below it.
struct Ban {
    path: &'static [&'static str],
    /// Where it may be named all the same.
    allowed: &'static [&'static str],
    remedy: &'static str,
}

const CLOCK: &str = "use crate::time, the node's own clock";
const RANDOM: &str = "draw from a stream of the seed: Seed::stream(name)";
const TRAFFIC: &str = "use crate::net: all traffic goes through it";
const PROCESS: &str = "only cli and testing touch the process; hand the value in or return it";

const CLOCKS: &[Ban] = &[
    Ban {
        path: &["std", "time", "Instant"],
        allowed: &["cli", "testing", "main", "time/real"],
        remedy: CLOCK,
    },
    Ban {
        path: &["std", "time", "SystemTime"],
        allowed: &["cli", "testing", "main", "time/real"],
        remedy: CLOCK,
    },
    Ban { path: &["tokio", "time"], allowed: &["time"], remedy: CLOCK },
    Ban { path: &["madsim", "time"], allowed: &["time", "net", "point", "cluster"], remedy: CLOCK },
    Ban {
        path: &["std", "thread", "sleep"],
        allowed: &["cli", "testing", "main"],
        remedy: "wait with crate::time::sleep",
    },
    Ban { path: &["madsim", "rand", "thread_rng"], allowed: &["cluster"], remedy: RANDOM },
    Ban { path: &["madsim", "rand", "random"], allowed: &["cluster"], remedy: RANDOM },
    Ban { path: &["rand"], allowed: &["cli", "testing"], remedy: RANDOM },
    Ban { path: &["fastrand"], allowed: &["cli", "testing"], remedy: RANDOM },
    Ban { path: &["getrandom"], allowed: &["cli", "testing"], remedy: RANDOM },
];

const SOCKETS: &[Ban] = &[
    Ban { path: &["std", "net", "TcpStream"], allowed: &["net", "cli"], remedy: TRAFFIC },
    Ban { path: &["std", "net", "TcpListener"], allowed: &["net", "cli"], remedy: TRAFFIC },
    Ban { path: &["std", "net", "UdpSocket"], allowed: &["net", "cli"], remedy: TRAFFIC },
    Ban { path: &["tokio", "net"], allowed: &["net"], remedy: TRAFFIC },
    Ban { path: &["madsim", "net"], allowed: &["net", "cluster"], remedy: TRAFFIC },
];

const PROCESSES: &[Ban] = &[
    Ban { path: &["std", "env"], allowed: &["cli", "testing", "main"], remedy: PROCESS },
    Ban {
        path: &["std", "fs"],
        allowed: &["cli", "testing", "main", "storage/disk"],
        remedy: PROCESS,
    },
    Ban {
        path: &["tokio", "fs"],
        allowed: &["cli", "testing", "main", "storage/disk"],
        remedy: PROCESS,
    },
];

/// No clock but the node's own, no randomness but the seed's.
pub(super) fn clock_and_random(source: &Source) -> Vec<Finding> {
    banned(source, &path::named(source), "clock", CLOCKS)
}

/// No sockets but those of `crate::net`.
pub(super) fn network(source: &Source) -> Vec<Finding> {
    banned(source, &path::named(source), "net", SOCKETS)
}

/// Environment, files and terminal belong to the programs.
pub(super) fn process(source: &Source) -> Vec<Finding> {
    const PRINTS: &[&str] = &["println", "eprintln", "print", "eprint"];
    let names = path::named(source);
    let mut findings = banned(source, &names, "outside", PROCESSES);
    let prints = names.iter().filter(|name| {
        let last = name.segments.last().map_or("", String::as_str);
        name.kind == Kind::Macro && PRINTS.contains(&last) && !name.in_test
    });
    if source.in_src() && !source.is_within(&["cli", "testing", "main"]) {
        findings.extend(prints.map(|name| {
            let what =
                format!("`{}!` prints; return the text, or log it", name.segments.join("::"));
            source.finding("outside", name.line, what)
        }));
    }
    findings
}

fn banned(source: &Source, names: &[Named], rule: &'static str, bans: &[Ban]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.in_src() {
        return findings;
    }
    let aliases = Aliases::of(names);
    for name in names.iter().filter(|name| !name.in_test) {
        let full = aliases.resolve(name);
        // A single word in running code is a variable more often than a crate.
        if full.len() < 2 && !matches!(name.kind, Kind::Import | Kind::Glob) {
            continue;
        }
        // A banned import is one finding; its uses under the short name are no further ones.
        let imported = if full == name.segments { 0 } else { full.len() + 1 - name.segments.len() };
        let hit = bans.iter().find(|ban| {
            let same = full.iter().zip(ban.path).all(|(part, banned)| part == banned);
            let covers = full.len() >= ban.path.len() || name.kind == Kind::Glob;
            same && covers && imported < ban.path.len() && !source.is_within(ban.allowed)
        });
        if let Some(ban) = hit {
            let what = format!("`{}` is not for here; {}", full.join("::"), ban.remedy);
            findings.push(source.finding(rule, name.line, what));
        }
    }
    findings.dedup();
    findings
}
