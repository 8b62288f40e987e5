//! What the verdicts rest on (D11). A failed assumption makes the verdicts that lean on it unknown.
//!
//! "Tokens are not forged" is not asked here: a token that is not its tenure's own is a violation
//! of token order already.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{Checker, Finding, Verdict, index::Index, value::Value};
use crate::history::{Cause, Event, EventKind, FaultAction, Function, NodeName, Phase};

const NAME: &str = "assumptions";

/// Something that must hold of a history before it can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// All five phases are there, once and in order, answered operations have their rows, and every
    /// key that was written was read at the end.
    CompleteHistory,
    /// No two writes offer the same value: a read tells whose value it saw.
    UniqueValues,
    /// Commit indexes and revisions rise, and nothing was restored from a backup.
    OneLineage,
    /// No two locks protect the same domain.
    OneDomainALock,
    /// Apply order respects real time: a request is applied between its arrival and its answer.
    RealTimeOrder,
    /// Every fault that began has ended, and none began after the heal: nodes run, links are open,
    /// no clock stands still.
    Healed,
}

impl Assumption {
    /// Every assumption.
    pub const ALL: [Assumption; 6] = [
        Assumption::CompleteHistory,
        Assumption::UniqueValues,
        Assumption::OneLineage,
        Assumption::OneDomainALock,
        Assumption::RealTimeOrder,
        Assumption::Healed,
    ];

    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Assumption::CompleteHistory => "complete history",
            Assumption::UniqueValues => "unique values",
            Assumption::OneLineage => "one lineage of revisions",
            Assumption::OneDomainALock => "one domain a lock",
            Assumption::RealTimeOrder => "apply order respects real time",
            Assumption::Healed => "healed",
        }
    }

    /// Why it does not hold of this history; `None` if it holds.
    pub fn failure(self, index: &Index<'_>) -> Option<String> {
        match self {
            Assumption::CompleteHistory => incomplete(index),
            Assumption::UniqueValues => repeated_value(index),
            Assumption::OneLineage => broken_lineage(index),
            Assumption::OneDomainALock => shared_domain(index),
            Assumption::RealTimeOrder => order_against_time(index),
            Assumption::Healed => not_healed(index),
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every assumption that fails, and why.
pub fn failures(index: &Index<'_>) -> Vec<(Assumption, String)> {
    let failure = |assumption: Assumption| Some((assumption, assumption.failure(index)?));
    Assumption::ALL.into_iter().filter_map(failure).collect()
}

/// The assumptions as a checker: it answers pass or unknown.
#[derive(Debug)]
pub struct Assumptions;

impl Checker for Assumptions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "the history is complete and in order, so that the other verdicts mean something"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let failures = index.failed_assumptions().iter();
        let failures: Vec<String> = failures.map(|(a, why)| format!("{a}: {why}")).collect();
        let verdict = match failures.is_empty() {
            true => Verdict::Pass,
            false => Verdict::Unknown(failures.join("; ")),
        };
        Finding { checker: NAME, judged: Assumption::ALL.len() as u64, verdict }
    }
}

fn incomplete(index: &Index<'_>) -> Option<String> {
    let phases: Vec<Phase> = index
        .beside
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Phase(phase) => Some(phase),
            _ => None,
        })
        .collect();
    let all = [Phase::Setup, Phase::Traffic, Phase::Heal, Phase::Settle, Phase::FinalReads];
    if phases != all {
        return Some(format!("its phases are {phases:?}"));
    }
    let is_final = |op: &&super::index::Op<'_>| matches!(op.f, Function::FinalRead { .. });
    if let Some(op) = index.ops.iter().filter(is_final).find(|op| !op.is_ok()) {
        return Some(format!("final read {} was not answered", op.id.0));
    }
    if let Some(key) = unread(index) {
        return Some(format!("key {key:?} was written, and there is no final read of it"));
    }
    // Where requests carry no tags, rows belong to no operation, and nothing is missing by that.
    let tagged = index.rows.iter().any(|row| row.op.is_some());
    let answered = |op: &super::index::Op<'_>| {
        let at_storage =
            matches!(op.f, Function::Enter { .. } | Function::Read { .. } | Function::Write { .. });
        tagged && at_storage && op.is_ok()
    };
    (0..index.ops.len())
        .find(|op| answered(&index.ops[*op]) && index.rows_of(*op).next().is_none())
        .map(|op| format!("operation {} was answered but never applied", index.ops[op].id.0))
}

fn repeated_value(index: &Index<'_>) -> Option<String> {
    let mut values: Vec<Value<'_>> = index
        .ops
        .iter()
        .filter_map(|op| match op.f {
            Function::Write { value, .. } => Some(Value::new(value)),
            _ => None,
        })
        .collect();
    values.sort_unstable();
    values
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| format!("{:?} was written by two operations", pair[0].text))
}

fn broken_lineage(index: &Index<'_>) -> Option<String> {
    let (mut last_index, mut last_revision) = (0, i64::MIN);
    for event in &index.beside {
        let EventKind::Commit(commit) = &event.kind else { continue };
        if commit.cause == Cause::Restore {
            return Some(format!("event {} restores a backup", event.seq));
        }
        if commit.index <= last_index || commit.revision <= last_revision {
            return Some(format!(
                "event {} commits revision {} at index {} after revision {last_revision} at index \
                 {last_index}",
                event.seq, commit.revision, commit.index
            ));
        }
        (last_index, last_revision) = (commit.index, commit.revision);
    }
    None
}

fn shared_domain(index: &Index<'_>) -> Option<String> {
    let mut lock_of: BTreeMap<u32, usize> = BTreeMap::new();
    for row in &index.rows {
        let Some(holding) = row.holding else { continue };
        let lock = index.holdings[holding].lock;
        let first = *lock_of.entry(row.domain).or_insert(lock);
        if first != lock {
            return Some(format!(
                "locks {:?} and {:?} share domain {:?}",
                index.locks[first].name, index.locks[lock].name, row.row.domain
            ));
        }
    }
    None
}

fn order_against_time(index: &Index<'_>) -> Option<String> {
    let (mut last_place, mut last_seq) = ((0, 0), None);
    for row in &index.rows {
        let (_, at) = row.place();
        if row.place() <= last_place || last_seq >= Some(row.seq) {
            return Some(format!("apply index {at} is out of order"));
        }
        (last_place, last_seq) = (row.place(), Some(row.seq));
        if row.arrival.is_some_and(|arrival| arrival > row.seq) {
            return Some(format!("apply index {at} is before the request's arrival"));
        }
        if row.answer.is_some_and(|answer| answer < row.seq) {
            return Some(format!("apply index {at} is after its answer"));
        }
        if row.op.is_some_and(|op| index.ops[op].invoke > row.seq) {
            return Some(format!("apply index {at} is before the operation's invocation"));
        }
    }
    let late = |op: &usize| {
        let ended = index.ops[*op].end.filter(|_| index.ops[*op].is_ok());
        let first = index.rows_of(*op).next();
        ended.zip(first).is_some_and(|((end, _), row)| end < row.seq)
    };
    (0..index.ops.len())
        .find(late)
        .map(|op| format!("operation {} was answered before it was applied", index.ops[op].id.0))
}

/// A key that was written, and not read at the end.
fn unread<'h>(index: &Index<'h>) -> Option<&'h str> {
    let read = |op: &super::index::Op<'h>| match op.f {
        Function::FinalRead { domain, key } => Some((domain.as_str(), key.as_str())),
        _ => None,
    };
    let read: BTreeSet<(&str, &str)> = index.ops.iter().filter_map(read).collect();
    index.ops.iter().find_map(|op| match op.f {
        Function::Write { domain, key, .. } => {
            (!read.contains(&(domain.as_str(), key.as_str()))).then_some(key.as_str())
        }
        _ => None,
    })
}

/// Something that must be over before the settling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    Fault(u32),
    Clock(NodeName),
    Stop(NodeName),
    Outage(NodeName),
    Link(NodeName, NodeName),
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Harm::Fault(index) => write!(f, "fault {index}"),
            Harm::Clock(node) => write!(f, "the standstill of the clock of {node}"),
            Harm::Stop(node) => write!(f, "the stop of {node}"),
            Harm::Outage(node) => write!(f, "the outage of {node}"),
            Harm::Link(from, to) => write!(f, "the cut from {from} to {to}"),
        }
    }
}

/// The harm that an event is of, and whether it begins with it or ends.
fn harm(event: &Event) -> Option<(Harm, bool)> {
    let node = event.node;
    match &event.kind {
        EventKind::Fault { index, action: FaultAction::Begin } => Some((Harm::Fault(*index), true)),
        EventKind::Fault { index, action: FaultAction::End } => Some((Harm::Fault(*index), false)),
        EventKind::Rate { permille } => Some((Harm::Clock(node), *permille == 0)),
        EventKind::Stop => Some((Harm::Stop(node), true)),
        EventKind::Go => Some((Harm::Stop(node), false)),
        EventKind::Link { from, to, open, .. } => Some((Harm::Link(*from, *to), !open)),
        // A client may be gone for good; a server is needed.
        EventKind::Killed if !matches!(node, NodeName::Client(_)) => {
            Some((Harm::Outage(node), true))
        }
        EventKind::Restarted => Some((Harm::Outage(node), false)),
        _ => None,
    }
}

fn not_healed(index: &Index<'_>) -> Option<String> {
    let mut open: BTreeMap<Harm, u64> = BTreeMap::new();
    let mut healed = false;
    for event in &index.beside {
        if event.kind == EventKind::Phase(Phase::Settle) {
            if let Some((harm, begun)) = open.first_key_value() {
                return Some(format!("{harm}, begun at event {begun}, never ended"));
            }
            healed = true;
        }
        match harm(event) {
            Some((harm, true)) if healed => return Some(format!("{harm} began after the heal")),
            Some((harm, true)) => drop(open.insert(harm, event.seq)),
            Some((harm, false)) => drop(open.remove(&harm)),
            None => {}
        }
    }
    (!healed).then(|| "it never settled".to_owned())
}
