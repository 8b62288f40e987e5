//! Random stories of clients that wait for a lock after the heal: the checker of liveness must say
//! what its naive copy says.

use std::collections::BTreeMap;

use leasehold::{
    checker::{self, Index},
    history::{
        Cause, Commit, Event, EventKind, Function, History, HoldingId, KeyChange, KeyEvent,
        LeaseChange, LeaseEvent, NodeName, OpId, Outcome, Phase, Reply,
    },
    seed::{Seed, Stream},
};

use super::naive_live;

const ETCD: NodeName = NodeName::Etcd(1);

struct Teller {
    stream: Stream,
    history: History,
    at_ns: u64,
    revision: i64,
    ops: u64,
    holdings: u64,
    /// Live keys, each with its create revision.
    keys: BTreeMap<u8, i64>,
    /// What each client is doing: an open acquire, or a holding.
    open: BTreeMap<u8, (u64, u64)>,
    held: BTreeMap<u8, u64>,
    leaving: BTreeMap<u8, u64>,
}

impl Teller {
    fn record(&mut self, node: NodeName, kind: EventKind) {
        let seq = self.history.events.len() as u64;
        self.history.events.push(Event { seq, at_ns: self.at_ns, node, kind });
        // Times rise, so that naive and fast need not agree on equal ones.
        self.at_ns += 1_000_000;
    }

    fn lease(&mut self, lease: i64, change: LeaseChange) {
        let member_ns = self.at_ns;
        self.record(ETCD, EventKind::Lease(LeaseEvent { lease, change, member_ns }));
    }

    fn commit(&mut self, change: KeyChange, client: u8, lease: i64) {
        self.revision += 1;
        let (revision, member_ns) = (self.revision, self.at_ns);
        let create_revision = match change {
            KeyChange::Put => *self.keys.entry(client).or_insert(revision),
            KeyChange::Delete => self.keys.remove(&client).unwrap_or(revision),
        };
        let key = format!("lock/{:x}", u64::from(client) * 0x100);
        let events = vec![KeyEvent { change, key, create_revision, lease }];
        let index = revision as u64;
        let commit = Commit { index, revision, cause: Cause::Txn, member_ns, events };
        self.record(ETCD, EventKind::Commit(commit));
    }

    fn invoke(&mut self, client: u8, holding: Option<u64>, f: Function) -> u64 {
        self.ops += 1;
        let (op, holding) = (OpId(self.ops), holding.map(HoldingId));
        self.record(NodeName::Client(client), EventKind::Invoke { op, holding, f });
        self.ops
    }

    fn end(&mut self, client: u8, op: u64, outcome: Outcome) {
        let kind = EventKind::Return { op: OpId(op), outcome };
        self.record(NodeName::Client(client), kind);
    }

    fn open_session(&mut self, client: u8) {
        let (ttl_s, lease) = (self.stream.between(2, 4) as i64, i64::from(client) * 0x100);
        let op = self.invoke(client, None, Function::OpenSession { ttl_s });
        self.lease(lease, LeaseChange::Granted { ttl_s });
        self.end(client, op, Outcome::Ok(Reply::Session { lease, ttl_s }));
    }

    fn step(&mut self) {
        self.at_ns += self.stream.below(25) * 100_000_000;
        let client = self.stream.between(1, 3) as u8;
        let lease = i64::from(client) * 0x100;
        let name = || "lock".to_owned();
        match self.stream.below(14) {
            0..=2 if !self.open.contains_key(&client) && !self.held.contains_key(&client) => {
                self.holdings += 1;
                let holding = self.holdings;
                let op = self.invoke(client, Some(holding), Function::Lock { name: name() });
                self.open.insert(client, (op, holding));
            }
            3..=4 => {
                let none = self.stream.chance(100);
                self.commit(KeyChange::Put, client, if none { 0 } else { lease });
            }
            5 => {
                if let (Some((op, holding)), Some(token)) =
                    (self.open.get(&client).copied(), self.keys.get(&client).copied())
                {
                    self.open.remove(&client);
                    self.held.insert(client, holding);
                    let key = format!("lock/{lease:x}");
                    self.end(client, op, Outcome::Ok(Reply::Acquired { key, token }));
                }
            }
            6 => {
                if let Some(holding) = self.held.remove(&client) {
                    let f = Function::Unlock { name: name() };
                    let op = self.invoke(client, Some(holding), f);
                    self.leaving.insert(client, op);
                }
            }
            7 => {
                if let Some(op) = self.leaving.remove(&client) {
                    self.end(client, op, Outcome::Unknown("timed out".to_owned()));
                }
            }
            8 if self.keys.contains_key(&client) => self.commit(KeyChange::Delete, client, lease),
            9 if self.stream.chance(300) => {
                let node = NodeName::Client(client);
                self.record(node, EventKind::Killed);
                self.open.remove(&client);
                self.held.remove(&client);
                self.leaving.remove(&client);
            }
            10 => {
                if let Some((op, _)) = self.open.remove(&client) {
                    self.end(client, op, Outcome::Unknown("timed out".to_owned()));
                }
            }
            11 if self.stream.chance(200) => {
                self.lease(0, LeaseChange::Promoted { extend_ms: 1000 });
            }
            _ => self.lease(lease, LeaseChange::Renewed),
        }
    }
}

pub fn waiting_history(seed: Seed) -> History {
    let mut teller = Teller {
        stream: seed.stream("waiting"),
        history: History::default(),
        at_ns: 0,
        revision: 1,
        ops: 0,
        holdings: 0,
        keys: BTreeMap::new(),
        open: BTreeMap::new(),
        held: BTreeMap::new(),
        leaving: BTreeMap::new(),
    };
    teller.record(NodeName::Nemesis, EventKind::Phase(Phase::Setup));
    teller.record(ETCD, EventKind::Rate { permille: 1000 });
    for client in 1..=teller.stream.between(2, 3) as u8 {
        teller.open_session(client);
    }
    let heal = teller.stream.below(12);
    for step in 0..40 {
        if step == heal {
            teller.record(NodeName::Nemesis, EventKind::Phase(Phase::Heal));
            teller.record(NodeName::Nemesis, EventKind::Phase(Phase::Settle));
        }
        teller.step();
    }
    if teller.stream.chance(700) {
        teller.record(NodeName::Nemesis, EventKind::Phase(Phase::FinalReads));
    }
    teller.history
}

/// The checker of liveness equals its naive copy, and every rule is broken somewhere.
#[test]
fn liveness_and_naive_copy_agree() {
    let checker = checker::by_name("liveness").expect("a checker of the catalog");
    let mut rules: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..800 {
        let history = waiting_history(Seed(seed));
        let finding = checker.check(&Index::new(&history));
        let rule = finding.verdict.violation().map(|violation| violation.rule);
        let found = (finding.judged, rule.is_some());
        assert_eq!(found, naive_live::liveness(&history), "seed {seed}: {}", finding.verdict);
        *rules.entry(rule.unwrap_or("pass")).or_default() += 1;
    }
    let expected = [
        "dead-not-expired",
        "foreign-key",
        "ghost",
        "key-without-lease",
        "lost-wake-up",
        "own-key-gone",
        "pass",
    ];
    for rule in expected {
        assert!(rules.contains_key(rule), "{rule} was never seen: {rules:?}");
    }
}
