//! A builder of histories by hand: each call appends what would be recorded if this happened.
//!
//! The lock is `lock`, the storage has one domain, clients are numbers, and a lease is the client's
//! number in the hundreds, so that stories read easily.

use leasehold::history::{
    ApplyRow, Boundary, Cause, Commit, Event, EventKind, Function, History, HoldingId, KeyChange,
    KeyEvent, NodeName, OpId, OpKind, Outcome, Phase, Reply, RequestId, RowResult,
};

/// A history in the making.
#[derive(Debug, Clone, Default)]
pub struct Story {
    events: Vec<Event>,
    ops: Vec<(u8, Option<u64>, Function)>,
    queue: Vec<(String, i64)>,
    revision: i64,
    applied: u64,
    /// Which life of the storage it is.
    pub boot: u32,
    /// The number of the requests that are applied from now on.
    pub numbered: Option<RequestId>,
}

impl Story {
    /// A story in its traffic phase.
    pub fn new() -> Story {
        let mut story = Story { boot: 1, revision: 10, ..Story::default() };
        story.phase(Phase::Setup);
        story.phase(Phase::Traffic);
        story
    }

    /// The history so far, with what every complete history ends with.
    pub fn finish(mut self) -> History {
        for phase in [Phase::Heal, Phase::Settle, Phase::FinalReads] {
            self.phase(phase);
        }
        History { events: self.events }
    }

    pub fn record(&mut self, node: NodeName, kind: EventKind) -> u64 {
        let seq = self.events.len() as u64;
        self.events.push(Event { seq, at_ns: seq * 100_000_000, node, kind });
        seq
    }

    pub fn phase(&mut self, phase: Phase) -> u64 {
        self.record(NodeName::Nemesis, EventKind::Phase(phase))
    }

    pub fn invoke(&mut self, client: u8, holding: Option<u64>, f: Function) -> u64 {
        let op = self.ops.len() as u64 + 1;
        self.ops.push((client, holding, f.clone()));
        let holding = holding.map(HoldingId);
        self.record(NodeName::Client(client), EventKind::Invoke { op: OpId(op), holding, f });
        op
    }

    pub fn answer(&mut self, op: u64, outcome: Outcome) -> u64 {
        let client = self.ops[op as usize - 1].0;
        self.record(NodeName::Client(client), EventKind::Return { op: OpId(op), outcome })
    }

    pub fn ok(&mut self, op: u64) -> u64 {
        self.answer(op, Outcome::Ok(Reply::Done))
    }

    pub fn unknown(&mut self, op: u64) -> u64 {
        self.answer(op, Outcome::Unknown("timed out".to_owned()))
    }

    pub fn fail(&mut self, op: u64) -> u64 {
        self.answer(op, Outcome::Fail("stale token".to_owned()))
    }

    fn commit(&mut self, cause: Cause, change: KeyChange, key: &str, create_revision: i64) -> u64 {
        self.revision += 1;
        let events =
            vec![KeyEvent { change, key: key.to_owned(), create_revision, lease: lease_of(key) }];
        let index = self.revision as u64 - 10;
        let revision = self.revision;
        let commit = Commit { index, revision, cause, member_ns: 0, events };
        self.record(NodeName::Etcd(1), EventKind::Commit(commit))
    }

    /// The queue key of a client's session.
    pub fn key(client: u8) -> String {
        format!("lock/{:x}", u64::from(client) * 0x100)
    }

    /// The client's queue key comes into being; gives its create revision.
    pub fn enqueue(&mut self, client: u8) -> i64 {
        if let Some(known) = self.queued(client) {
            return known;
        }
        let (key, created) = (Self::key(client), self.revision + 1);
        self.commit(Cause::Txn, KeyChange::Put, &key, created);
        self.queue.push((key, created));
        created
    }

    /// The client's queue key goes.
    pub fn dequeue(&mut self, client: u8, cause: Cause) {
        let key = Self::key(client);
        let Some(at) = self.queue.iter().position(|(queued, _)| *queued == key) else { return };
        let (_, created) = self.queue.remove(at);
        self.commit(cause, KeyChange::Delete, &key, created);
    }

    /// The create revision of the client's queue key, if it is there.
    pub fn queued(&self, client: u8) -> Option<i64> {
        let key = Self::key(client);
        self.queue.iter().find(|(queued, _)| *queued == key).map(|(_, created)| *created)
    }

    /// The create revision of the owner's queue key.
    pub fn first(&self) -> Option<i64> {
        self.queue.iter().map(|(_, created)| *created).min()
    }

    /// The client's session is opened, with its lease.
    pub fn session(&mut self, client: u8) {
        let op = self.invoke(client, None, Function::OpenSession { ttl_s: 10 });
        let lease = i64::from(client) * 0x100;
        self.answer(op, Outcome::Ok(Reply::Session { lease, ttl_s: 10 }));
    }

    /// Whether nobody is in the queue.
    pub fn is_free(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn expire(&mut self, client: u8) {
        self.dequeue(client, Cause::Expiry(i64::from(client) * 0x100));
    }

    pub fn lock(&mut self, client: u8, holding: u64) -> u64 {
        self.invoke(client, Some(holding), Function::Lock { name: "lock".to_owned() })
    }

    pub fn acquired(&mut self, op: u64, token: i64) -> u64 {
        let key = Self::key(self.ops[op as usize - 1].0);
        self.answer(op, Outcome::Ok(Reply::Acquired { key, token }))
    }

    /// Lock, the key's creation and the ok in one; gives the token.
    pub fn acquire(&mut self, client: u8, holding: u64) -> i64 {
        let op = self.lock(client, holding);
        let token = self.enqueue(client);
        self.acquired(op, token);
        token
    }

    pub fn unlock(&mut self, client: u8, holding: u64) -> u64 {
        self.invoke(client, Some(holding), Function::Unlock { name: "lock".to_owned() })
    }

    /// Unlock, the key's deletion and the ok in one.
    pub fn release(&mut self, client: u8, holding: u64) {
        let op = self.unlock(client, holding);
        self.dequeue(client, Cause::Txn);
        self.ok(op);
    }

    pub fn reading(&mut self, client: u8, holding: u64, key: &str) -> u64 {
        let (domain, key) = (String::new(), key.to_owned());
        self.invoke(client, Some(holding), Function::Read { domain, key })
    }

    pub fn writing(
        &mut self,
        client: u8,
        holding: u64,
        (key, value): (&str, &str),
        based_on: Option<u64>,
    ) -> u64 {
        let (domain, key, value) = (String::new(), key.to_owned(), value.to_owned());
        let based_on = based_on.map(OpId);
        self.invoke(client, Some(holding), Function::Write { domain, key, value, based_on })
    }

    /// A request of the operation is applied; gives the event's `seq`.
    pub fn apply(&mut self, op: u64, token: Option<i64>, result: RowResult) -> u64 {
        let effect = result == RowResult::Admitted;
        self.apply_read(op, token, result, None, effect)
    }

    /// As [`Story::apply`], with the value that a read answers and the effect that was seen.
    pub fn apply_read(
        &mut self,
        op: u64,
        token: Option<i64>,
        result: RowResult,
        read: Option<&str>,
        effect: bool,
    ) -> u64 {
        let (kind, key, value) = match &self.ops[op as usize - 1].2 {
            Function::Write { key, value, .. } => (OpKind::Write, key, Some(value.clone())),
            Function::Enter { key, .. }
            | Function::Read { key, .. }
            | Function::FinalRead { key, .. } => (OpKind::Read, key, read.map(str::to_owned)),
            other => panic!("{other:?} does not go to the storage"),
        };
        self.applied += 1;
        let row = ApplyRow {
            boot: self.boot,
            request: self.applied,
            index: self.applied,
            domain: String::new(),
            id: self.numbered,
            tag: Some(op),
            token,
            kind,
            key: key.clone(),
            value,
            result,
            effect: effect && kind == OpKind::Write,
        };
        self.record(NodeName::Storage, EventKind::Apply(row))
    }

    /// The answer to the last applied request leaves the storage.
    pub fn answered(&mut self) {
        let (boot, request) = (self.boot, self.applied);
        let answer = EventKind::Storage(Boundary::Answer { boot, request });
        self.record(NodeName::Storage, answer);
    }

    /// A fenced read that answers this value; gives the operation.
    pub fn read(&mut self, client: u8, holding: u64, key: &str, token: i64, value: &str) -> u64 {
        let op = self.reading(client, holding, key);
        let value = Some(value).filter(|value| !value.is_empty());
        self.apply_read(op, Some(token), RowResult::Admitted, value, false);
        self.answer(op, Outcome::Ok(Reply::Value(value.map(str::to_owned))));
        op
    }

    /// A write that is let in and acknowledged.
    pub fn write(
        &mut self,
        client: u8,
        holding: u64,
        pair: (&str, &str),
        token: i64,
        based_on: Option<u64>,
    ) -> u64 {
        let op = self.writing(client, holding, pair, based_on);
        self.apply(op, Some(token), RowResult::Admitted);
        self.ok(op);
        op
    }
}

fn lease_of(key: &str) -> i64 {
    let lease = key.rsplit_once('/').and_then(|(_, hex)| i64::from_str_radix(hex, 16).ok());
    lease.unwrap_or(0)
}
