//! How the judge's time grows with the length of a history, on one core.
//!
//! `cargo bench --bench judge` prints, for histories of 1,000 to 100,000 operations in which up to
//! ten are open or of unknown outcome at a time, the time of judging one with every checker, per
//! operation too, and what the parts of that take; and the same for linearizability alone when
//! there is no apply log and an order has to be searched. Near-linear growth shows as nearly equal
//! times per operation; what remains is that a long history does not fit a cache. Each time is the
//! least of several: what else the machine does can only add to it.
#![allow(clippy::print_stdout)]

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use leasehold::{
    checker::{self, Index, assumption, class, judge, reached},
    history::{
        ApplyRow, Boundary, Cause, Commit, Event, EventKind, Function, History, HoldingId,
        KeyChange, KeyEvent, LeaseChange, LeaseEvent, NodeName, OpId, OpKind, Outcome, Phase,
        Reply, RequestId, RowResult,
    },
};

const CLIENTS: u64 = 10;
const ROUNDS: usize = 9;
/// Operations of a tenure: the lock, so many reads and writes, the unlock.
const PAIRS: u64 = 4;

/// Writes a history as a run would leave it.
#[derive(Default)]
struct Writer {
    events: Vec<Event>,
    ops: u64,
    revision: i64,
    applied: u64,
    value: Option<String>,
    /// True time between two events.
    step_ns: u64,
}

impl Writer {
    fn record(&mut self, node: NodeName, kind: EventKind) {
        let seq = self.events.len() as u64;
        self.events.push(Event { seq, at_ns: seq * self.step_ns, node, kind });
    }

    fn phase(&mut self, phase: Phase) {
        self.record(NodeName::Nemesis, EventKind::Phase(phase));
    }

    fn invoke(&mut self, client: u64, holding: Option<u64>, f: Function) -> u64 {
        self.ops += 1;
        let (op, holding) = (OpId(self.ops), holding.map(HoldingId));
        self.record(NodeName::Client(client as u8), EventKind::Invoke { op, holding, f });
        self.ops
    }

    fn end(&mut self, client: u64, op: u64, outcome: Outcome) {
        let kind = EventKind::Return { op: OpId(op), outcome };
        self.record(NodeName::Client(client as u8), kind);
    }

    fn commit(&mut self, cause: Cause, change: KeyChange, client: u64, created: Option<i64>) {
        self.revision += 1;
        let create_revision = created.unwrap_or(self.revision);
        let lease = client as i64 * 0x100;
        let key = format!("lock/{lease:x}");
        let events = vec![KeyEvent { change, key, create_revision, lease }];
        let member_ns = self.events.len() as u64 * 1_000_000;
        let (index, revision) = (self.revision as u64, self.revision);
        let commit = Commit { index, revision, cause, member_ns, events };
        self.record(NodeName::Etcd(1), EventKind::Commit(commit));
    }

    fn lease(&mut self, client: u64, change: LeaseChange) {
        let member_ns = self.events.len() as u64 * 1_000_000;
        let event = LeaseEvent { lease: client as i64 * 0x100, change, member_ns };
        self.record(NodeName::Etcd(1), EventKind::Lease(event));
    }

    fn apply(&mut self, op: u64, token: i64, write: Option<&str>, result: RowResult) {
        self.applied += 1;
        let (boot, request) = (1, self.applied);
        self.record(NodeName::Storage, EventKind::Storage(Boundary::Arrival { boot, request }));
        let effect = write.is_some() && result == RowResult::Admitted;
        if effect {
            self.value = write.map(str::to_owned);
        }
        let value = if write.is_some() { write.map(str::to_owned) } else { self.value.clone() };
        let row = ApplyRow {
            boot,
            request,
            index: self.applied,
            domain: "d".to_owned(),
            id: Some(RequestId { token, seq: op }),
            tag: Some(op),
            token: Some(token),
            kind: if write.is_some() { OpKind::Write } else { OpKind::Read },
            key: "k".to_owned(),
            value,
            result,
            effect,
        };
        self.record(NodeName::Storage, EventKind::Apply(row));
        self.record(NodeName::Storage, EventKind::Storage(Boundary::Answer { boot, request }));
    }
}

fn write(value: &str, based_on: Option<u64>) -> Function {
    let (domain, key, value) = ("d".to_owned(), "k".to_owned(), value.to_owned());
    Function::Write { domain, key, value, based_on: based_on.map(OpId) }
}

/// A history in its traffic phase: every client has its session.
fn opened(step_ns: u64) -> Writer {
    let mut writer = Writer { step_ns, ..Writer::default() };
    writer.phase(Phase::Setup);
    writer.phase(Phase::Traffic);
    for client in 1..=CLIENTS {
        let op = writer.invoke(client, None, Function::OpenSession { ttl_s: 3600 });
        writer.lease(client, LeaseChange::Granted { ttl_s: 3600 });
        let reply = Reply::Session { lease: client as i64 * 0x100, ttl_s: 3600 };
        writer.end(client, op, Outcome::Ok(reply));
    }
    writer
}

/// Ten clients wait in one queue, each for seconds, long after everything has healed; whoever is
/// first writes once, stands still before it, unlocks and queues again. What waits, believes and is
/// hindered is what some checkers look at most.
fn contended(operations: u64) -> History {
    let mut writer = opened(100_000_000);
    for node in (1..=CLIENTS).map(|client| NodeName::Client(client as u8)) {
        writer.record(node, EventKind::Rate { permille: 1000 });
    }
    writer.record(NodeName::Etcd(1), EventKind::Rate { permille: 1000 });
    writer.phase(Phase::Heal);
    writer.phase(Phase::Settle);
    let mut waiting: VecDeque<(u64, u64, u64, i64)> = VecDeque::new();
    let name = || "lock".to_owned();
    for holding in 1.. {
        let client = holding % CLIENTS + 1;
        let node = NodeName::Client(client as u8);
        if holding > CLIENTS {
            let (client, holding, lock, token) = waiting.pop_front().expect("ten wait");
            let key = format!("lock/{:x}", client * 0x100);
            writer.end(client, lock, Outcome::Ok(Reply::Acquired { key, token }));
            let op = writer.invoke(client, Some(holding), write(&holding.to_string(), None));
            let name = "client.before_write".to_owned();
            writer.record(node, EventKind::Point { name });
            writer.record(node, EventKind::Stop);
            writer.record(node, EventKind::Go);
            writer.apply(op, token, Some(&holding.to_string()), RowResult::Admitted);
            writer.end(client, op, Outcome::Ok(Reply::Done));
            let f = Function::Unlock { name: "lock".to_owned() };
            let unlock = writer.invoke(client, Some(holding), f);
            writer.commit(Cause::Txn, KeyChange::Delete, client, Some(token));
            writer.end(client, unlock, Outcome::Ok(Reply::Done));
        }
        if writer.ops >= operations {
            break;
        }
        writer.lease(client, LeaseChange::Renewed);
        let lock = writer.invoke(client, Some(holding), Function::Lock { name: name() });
        writer.commit(Cause::Txn, KeyChange::Put, client, None);
        waiting.push_back((client, holding, lock, writer.revision));
    }
    writer.phase(Phase::FinalReads);
    History { events: writer.events }
}

/// Ten clients take turns. Each leaves its last write behind, of unknown outcome; it lands, and is
/// refused, when the others have had their turns.
fn history(operations: u64) -> History {
    let mut writer = opened(1_000_000);
    let mut late: BTreeMap<u64, (u64, i64, String)> = BTreeMap::new();
    let mut holding = 0;
    while writer.ops < operations {
        holding += 1;
        let client = holding % CLIENTS + 1;
        if let Some((op, token, value)) = late.remove(&client) {
            writer.apply(op, token, Some(&value), RowResult::Refused);
            writer.end(client, op, Outcome::Unknown("timed out".to_owned()));
        }
        writer.lease(client, LeaseChange::Renewed);
        let name = "lock".to_owned();
        let lock = writer.invoke(client, Some(holding), Function::Lock { name });
        writer.commit(Cause::Txn, KeyChange::Put, client, None);
        let token = writer.revision;
        let key = format!("lock/{:x}", client * 0x100);
        writer.end(client, lock, Outcome::Ok(Reply::Acquired { key, token }));
        for pair in 0..PAIRS {
            let (domain, key) = ("d".to_owned(), "k".to_owned());
            let read = writer.invoke(client, Some(holding), Function::Read { domain, key });
            writer.apply(read, token, None, RowResult::Admitted);
            let value = writer.value.clone();
            writer.end(client, read, Outcome::Ok(Reply::Value(value)));
            let value = format!("{holding} {pair}");
            let op = writer.invoke(client, Some(holding), write(&value, Some(read)));
            if pair + 1 == PAIRS {
                late.insert(client, (op, token, value));
            } else {
                writer.apply(op, token, Some(&value), RowResult::Admitted);
                writer.end(client, op, Outcome::Ok(Reply::Done));
            }
        }
        // Its lease's key goes; its last write is still under way.
        writer.commit(Cause::Delete, KeyChange::Delete, client, Some(token));
    }
    for phase in [Phase::Heal, Phase::Settle, Phase::FinalReads] {
        writer.phase(phase);
    }
    History { events: writer.events }
}

fn time(mut work: impl FnMut()) -> Duration {
    let once = || {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    std::iter::repeat_with(once).take(ROUNDS).min().unwrap_or_default()
}

fn report(name: &str, operations: u64, time: Duration) {
    println!(
        "{name:<34} {operations:>7} operations {:>9.2} ms {:>7.0} ns an operation",
        time.as_secs_f64() * 1e3,
        time.as_nanos() as f64 / operations as f64
    );
}

fn every_checker(name: &str, operations: u64, history: &History) {
    let judgement = judge(history, &BTreeMap::new());
    assert_eq!(judgement.violation(), None);
    report(name, operations, time(|| drop(judge(history, &BTreeMap::new()))));
}

/// Looks at every event and every value: what the caches alone make of a longer history.
fn read(history: &History) -> u64 {
    let value = |value: &Option<String>| {
        value.iter().filter_map(|value| value.bytes().last()).map(u64::from).sum::<u64>()
    };
    let look = |event: &Event| match &event.kind {
        EventKind::Apply(row) => value(&row.value),
        EventKind::Return { outcome: Outcome::Ok(Reply::Value(told)), .. } => value(told),
        EventKind::Invoke { f: Function::Write { value, .. }, .. } => value.len() as u64,
        _ => 1,
    };
    std::hint::black_box(history.events.iter().map(look).sum())
}

fn main() {
    println!("least of {ROUNDS}, one core:");
    for operations in [1_000, 10_000, 100_000] {
        let history = history(operations);
        every_checker("every checker", operations, &history);
        report("  (only reading the history)", operations, time(|| _ = read(&history)));
        report("  the index", operations, time(|| drop(Index::new(&history))));
        let index = Index::new(&history);
        report("  the assumptions", operations, time(|| drop(assumption::failures(&index))));
        report("  the classes", operations, time(|| drop(class::classify(&index))));
        let and_reached = time(|| drop(reached(&history, &BTreeMap::new())));
        report("  index, classes, what was reached", operations, and_reached);
        for checker in checker::all() {
            let took = time(|| drop(checker.check(&index)));
            report(&format!("  {}", checker.name()), operations, took);
        }
        let events = history.events.into_iter();
        let bare = events.filter(|event| !matches!(event.kind, EventKind::Apply(_)));
        let events = (0..).zip(bare).map(|(seq, event)| Event { seq, ..event }).collect();
        let bare = History { events };
        let index = Index::new(&bare);
        let search = checker::by_name("linearizability").expect("a checker of the catalog");
        assert!(search.check(&index).verdict.is_pass(), "{}", search.check(&index).verdict);
        every_checker("every checker, everybody waits", operations, &contended(operations));
        report("search without an apply log", operations, time(|| drop(search.check(&index))));
    }
}
