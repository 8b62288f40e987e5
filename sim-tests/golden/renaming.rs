//! What no verdict may hang on: the names of operations, holdings and clients, the distance of one
//! revision or one moment from the next, the traffic of strangers.
//!
//! Each golden history of each checker, good or bad, is told again with all of that changed, and
//! must be judged as before.

use leasehold::{
    checker::{self, Index, Verdict},
    history::{
        ApplyRow, Cause, Commit, Event, EventKind, Function, History, HoldingId, KeyChange,
        KeyEvent, LeaseChange, LeaseEvent, NodeName, OpId, OpKind, Outcome, Phase, Reply,
        RowResult,
    },
};

use super::{chaos::renumber, golden_files};

/// Leaves the order of revisions, of tokens and of places in the logs as it is, and widens it.
fn widen(history: &mut History) {
    for event in &mut history.events {
        match &mut event.kind {
            EventKind::Commit(commit) => {
                commit.revision *= 3;
                commit.index *= 3;
                commit.events.iter_mut().for_each(|change| change.create_revision *= 3);
            }
            EventKind::Return { outcome: Outcome::Ok(Reply::Acquired { token, .. }), .. } => {
                *token *= 3;
            }
            EventKind::Apply(row) => {
                row.index *= 3;
                row.token.iter_mut().for_each(|token| *token *= 3);
                row.id.iter_mut().for_each(|id| id.token *= 3);
            }
            _ => {}
        }
    }
}

fn other_client(node: &mut NodeName) {
    if let NodeName::Client(n) = node {
        *n += 40;
    }
}

/// Gives other names to operations, holdings and clients; a name stands for the same as before.
fn rename(history: &mut History) {
    let other_op = |op: &mut OpId| op.0 = 2 * op.0 + 5;
    let other_holding = |holding: &mut HoldingId| holding.0 = 2 * holding.0 + 7;
    for event in &mut history.events {
        other_client(&mut event.node);
        match &mut event.kind {
            EventKind::Invoke { op, holding, f } => {
                other_op(op);
                holding.iter_mut().for_each(other_holding);
                if let Function::Write { based_on, .. } = f {
                    based_on.iter_mut().for_each(other_op);
                }
            }
            EventKind::Return { op, .. } | EventKind::Deadline { op, .. } => other_op(op),
            EventKind::LossNoticed { holding } | EventKind::Held { holding, .. } => {
                other_holding(holding);
            }
            EventKind::Apply(row) => {
                row.tag.iter_mut().for_each(|tag| *tag = 2 * *tag + 5);
            }
            EventKind::Link { from, to, .. } => {
                other_client(from);
                other_client(to);
            }
            _ => {}
        }
    }
}

/// Everything happens a minute later, on all clocks.
fn postpone(history: &mut History) {
    const LATER_NS: u64 = 60_000_000_000;
    for event in &mut history.events {
        event.at_ns += LATER_NS;
        match &mut event.kind {
            EventKind::Commit(commit) => commit.member_ns += LATER_NS,
            EventKind::Lease(lease) => lease.member_ns += LATER_NS,
            EventKind::Held { local_ns, deadline_ns, .. } => {
                *local_ns += LATER_NS;
                *deadline_ns += LATER_NS;
            }
            EventKind::Deadline { started_ns, deadline_ns, ended_ns, .. } => {
                for time_ns in [started_ns, deadline_ns, ended_ns] {
                    *time_ns += LATER_NS;
                }
            }
            _ => {}
        }
    }
}

const STRANGER: NodeName = NodeName::Client(99);
const LEASE: i64 = 0x6300;

/// What a stranger does, all at one moment.
struct Visit {
    at_ns: u64,
    ops: u64,
    events: Vec<Event>,
}

impl Visit {
    fn record(&mut self, node: NodeName, kind: EventKind) {
        self.events.push(Event { seq: 0, at_ns: self.at_ns, node, kind });
    }

    fn call(&mut self, f: Function, reply: Reply, during: Option<(NodeName, EventKind)>) {
        self.ops += 1;
        let op = OpId(9000 + self.ops);
        let none = matches!(
            f,
            Function::OpenSession { .. } | Function::CloseSession | Function::FinalRead { .. }
        );
        let holding = (!none).then_some(HoldingId(9000));
        self.record(STRANGER, EventKind::Invoke { op, holding, f });
        if let Some((node, kind)) = during {
            self.record(node, kind);
        }
        self.record(STRANGER, EventKind::Return { op, outcome: Outcome::Ok(reply) });
    }
}

impl Visit {
    /// A write in a domain of its own after this place of the apply order, and the read of it:
    /// nobody else reads it at the end.
    fn write(&mut self, (boot, index): (u32, u64), token: i64) {
        let strange = || "strange".to_owned();
        let row = ApplyRow {
            boot,
            request: 9000,
            index: index + 1,
            domain: strange(),
            id: None,
            tag: Some(9003),
            token: Some(token),
            kind: OpKind::Write,
            key: strange(),
            value: Some(strange()),
            result: RowResult::Admitted,
            effect: true,
        };
        let read = ApplyRow {
            request: 9001,
            index: index + 2,
            tag: Some(9004),
            token: None,
            kind: OpKind::Read,
            effect: false,
            ..row.clone()
        };
        let (domain, key, value, based_on) = (strange(), strange(), strange(), None);
        let f = Function::Write { domain, key, value, based_on };
        self.call(f, Reply::Done, Some((NodeName::Storage, EventKind::Apply(row))));
        let f = Function::FinalRead { domain: strange(), key: strange() };
        let told = Reply::Value(Some(strange()));
        self.call(f, told, Some((NodeName::Storage, EventKind::Apply(read))));
    }
}

/// A stranger locks another lock, writes in a domain of its own, and is gone again: all of it
/// before the event at `at` of a widened history. Without `writes` it leaves the storage alone.
fn visit(history: &mut History, at: usize, writes: bool) {
    let past = || history.events[..at].iter().rev();
    let last = past().find_map(|event| match &event.kind {
        EventKind::Commit(commit) => Some((commit.index, commit.revision)),
        _ => None,
    });
    let (index, revision) = last.unwrap_or((0, 3));
    let row = |event: &Event| match &event.kind {
        EventKind::Apply(row) => Some((row.boot, row.index)),
        _ => None,
    };
    let first = || history.events.iter().find_map(row).map(|(boot, index)| (boot, index - 3));
    let place = past().find_map(row).or_else(first);
    let mut nodes = history.events.iter().map(|event| event.node);
    let member = |node: &NodeName| matches!(node, NodeName::Etcd(_));
    let etcd = nodes.rfind(member).unwrap_or(NodeName::Etcd(1));
    let leases = past().any(|event| matches!(event.kind, EventKind::Lease(_)));
    let at_ns = history.events[at].at_ns;
    let mut visit = Visit { at_ns, ops: 0, events: Vec::new() };
    let lease = |change| {
        let told = EventKind::Lease(LeaseEvent { lease: LEASE, change, member_ns: at_ns });
        leases.then_some((etcd, told))
    };
    let commit = |more: u8, change| {
        let lease = if leases { LEASE } else { 0 };
        let key = "strange/6300".to_owned();
        let events = vec![KeyEvent { change, key, create_revision: revision + 1, lease }];
        let (index, revision) = (index + u64::from(more), revision + i64::from(more));
        let (cause, member_ns) = (Cause::Txn, at_ns);
        Some((etcd, EventKind::Commit(Commit { index, revision, cause, member_ns, events })))
    };
    let reply = Reply::Session { lease: LEASE, ttl_s: 1 };
    let granted = lease(LeaseChange::Granted { ttl_s: 1 });
    visit.call(Function::OpenSession { ttl_s: 1 }, reply, granted);
    let name = || "strange".to_owned();
    let acquired = Reply::Acquired { key: "strange/6300".to_owned(), token: revision + 1 };
    visit.call(Function::Lock { name: name() }, acquired, commit(1, KeyChange::Put));
    if let Some(place) = place.filter(|_| writes) {
        visit.write(place, revision + 1);
    }
    visit.call(Function::Unlock { name: name() }, Reply::Done, commit(2, KeyChange::Delete));
    visit.call(Function::CloseSession, Reply::Done, lease(LeaseChange::Revoked));
    history.events.splice(at..at, visit.events);
    renumber(history);
}

fn ends(lease: &LeaseEvent) -> bool {
    matches!(lease.change, LeaseChange::Expired | LeaseChange::Revoked)
}

/// What a checker says: kind of verdict, broken rule, evidence.
fn said(checker: &dyn checker::Checker, history: &History) -> (&'static str, Vec<u64>) {
    match checker.check(&Index::new(history)).verdict {
        Verdict::Pass => ("pass", Vec::new()),
        Verdict::Violation(violation) => (violation.rule, violation.events),
        Verdict::Unknown(_) => ("unknown", Vec::new()),
        Verdict::NotRun(why) => panic!("{why}"),
    }
}

/// Every golden history, told with other names, at another time, with wider steps, and with a
/// stranger at any point of its traffic, is judged as it was.
#[test]
fn verdicts_do_not_hang_on_names_or_strangers() {
    let (mut good, mut bad, mut visits) = (0, 0, 0);
    for checker in checker::all() {
        for (path, history) in golden_files(*checker) {
            let before = said(*checker, &history);
            good += u32::from(before.0 == "pass");
            bad += u32::from(before.0 != "pass");
            let mut wide = history.clone();
            widen(&mut wide);
            let (mut renamed, mut postponed) = (history.clone(), history);
            rename(&mut renamed);
            postpone(&mut postponed);
            assert_eq!(said(*checker, &wide), before, "{path:?}, widened");
            assert_eq!(said(*checker, &renamed), before, "{path:?}, renamed");
            assert_eq!(said(*checker, &postponed), before, "{path:?}, postponed");
            let phase = |wanted| {
                let mut events = wide.events.iter();
                events.position(|event| event.kind == EventKind::Phase(wanted))
            };
            let Some(heal) = phase(Phase::Heal) else { continue };
            for at in phase(Phase::Traffic).map_or(1, |traffic| traffic + 1)..=heal {
                // A member ends a lease and commits that in one step.
                if matches!(&wide.events[at - 1].kind, EventKind::Lease(lease) if ends(lease)) {
                    continue;
                }
                let mut visited = wide.clone();
                // An answer to a stranger, too, pins all that was applied before it.
                visit(&mut visited, at, checker.name() != "durability");
                let more = (visited.events.len() - wide.events.len()) as u64;
                let later = |seq: &u64| if *seq >= at as u64 { seq + more } else { *seq };
                let expected = (before.0, before.1.iter().map(later).collect::<Vec<u64>>());
                assert_eq!(said(*checker, &visited), expected, "{path:?}, a visit before {at}");
                visits += 1;
            }
        }
    }
    assert!(good > 25 && bad > 60 && visits > 1000, "{good} good, {bad} bad, {visits} visits");
}
