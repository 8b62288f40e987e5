//! Which faults have begun in which phase of a lock's life: the coverage matrix.
//!
//! A pure function of a history: the phase of a client is taken from what it invoked and was told,
//! and from etcd's commits, at the moment the fault began. A fault that has a client for its target
//! counts for that one, one that hits the owner of the lock for the owner, and one that hits a
//! server for each client. What it leaves out: whether the fault then had an effect.

mod stay;

use std::collections::BTreeMap;

pub(super) use stay::{Stay, stays, traffic_began_ns};

use serde::{Deserialize, Serialize};

use crate::history::{
    Commit, EventKind, FaultAction, Function, History, KeyChange, NodeName, OpId, Outcome, Reply,
};

/// Where a client stands with its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockPhase {
    /// It has asked for the lock, and another owns it.
    Waiting,
    /// It owns the lock and has not been told.
    GrantedUnseen,
    /// It believes to hold the lock, and does.
    Holding,
    /// The same, and it has checked that it does: the write that follows has not landed.
    BeforeWrite,
    /// It is giving the lock back, or ends its session.
    Releasing,
    /// It believes to hold the lock, and its key is gone.
    ExpiredUnaware,
}

impl LockPhase {
    /// All phases, in their order.
    pub const ALL: [LockPhase; 6] = [
        LockPhase::Waiting,
        LockPhase::GrantedUnseen,
        LockPhase::Holding,
        LockPhase::BeforeWrite,
        LockPhase::Releasing,
        LockPhase::ExpiredUnaware,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LockPhase::Waiting => "waiting",
            LockPhase::GrantedUnseen => "granted-unseen",
            LockPhase::Holding => "holding",
            LockPhase::BeforeWrite => "before-write",
            LockPhase::Releasing => "releasing",
            LockPhase::ExpiredUnaware => "expired-unaware",
        }
    }
}

/// The families whose target is whoever owns the lock.
const OF_OWNER: [&str; 3] = ["forced-revoke", "lease-runs-out", "outside-delete"];

/// Why no fault of this family can begin in this phase; none if it can.
pub fn unreachable(family: &str, phase: LockPhase) -> Option<&'static str> {
    match phase {
        LockPhase::Waiting | LockPhase::ExpiredUnaware if OF_OWNER.contains(&family) => {
            Some("its target is the owner of the lock")
        }
        _ => None,
    }
}

/// How many faults of each family have begun in each phase. Sums over runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage(BTreeMap<String, BTreeMap<LockPhase, u64>>);

impl Coverage {
    /// The matrix of a history. `families` names the family of each fault of the plan by its index.
    pub fn of(history: &History, families: &BTreeMap<u32, &'static str>) -> Self {
        let mut coverage = Coverage::default();
        let mut world = World::default();
        for event in &history.events {
            if let EventKind::Fault { index, action: FaultAction::Begin } = &event.kind
                && let Some(family) = families.get(index)
            {
                for phase in world.hit(family, event.node, event.at_ns) {
                    coverage.add(family, phase, 1);
                }
            }
            world.see(event.at_ns, event.node, &event.kind);
        }
        coverage
    }

    /// How many faults of the family have begun in the phase.
    pub fn count(&self, family: &str, phase: LockPhase) -> u64 {
        self.0.get(family).and_then(|row| row.get(&phase)).copied().unwrap_or(0)
    }

    fn add(&mut self, family: &str, phase: LockPhase, count: u64) {
        *self.0.entry(family.to_owned()).or_default().entry(phase).or_default() += count;
    }

    /// The cells of these families that could have been reached and were not.
    pub fn missing<'a>(
        &self,
        families: impl IntoIterator<Item = &'a str>,
    ) -> Vec<(&'a str, LockPhase)> {
        let cells = families.into_iter().flat_map(|f| LockPhase::ALL.map(|phase| (f, phase)));
        let empty = |(family, phase): &(&str, LockPhase)| {
            unreachable(family, *phase).is_none() && self.count(family, *phase) == 0
        };
        cells.filter(empty).collect()
    }
}

impl std::ops::AddAssign<&Coverage> for Coverage {
    fn add_assign(&mut self, other: &Coverage) {
        for (family, row) in &other.0 {
            for (phase, count) in row {
                self.add(family, *phase, *count);
            }
        }
    }
}

/// What is known at one moment of a history.
#[derive(Default)]
struct World {
    clients: BTreeMap<NodeName, Client>,
    /// Sessions' leases with their clients, locks' names, and the live queue keys by creation.
    leases: BTreeMap<i64, NodeName>,
    locks: Vec<String>,
    queue: BTreeMap<i64, (String, NodeName)>,
    /// A fault is recorded after it has begun: what a kill or a deletion at this very moment has
    /// changed, as it was before.
    killed: Option<(u64, NodeName, Option<LockPhase>)>,
    deposed: Option<(u64, Option<LockPhase>)>,
}

/// What a client knows and does.
#[derive(Default)]
struct Client {
    opens: Option<OpId>,
    locks: Option<OpId>,
    releases: Option<OpId>,
    writes: Option<OpId>,
    believes: bool,
    checked: bool,
    /// When it was given the lock: what it asks its session at that instant is no check of a write.
    given_ns: Option<u64>,
}

impl World {
    /// The phases that a fault has hit.
    fn hit(&self, family: &str, node: NodeName, at_ns: u64) -> Vec<LockPhase> {
        if OF_OWNER.contains(&family) {
            return match &self.deposed {
                Some((at, phase)) if *at == at_ns => phase.iter().copied().collect(),
                _ => self.owner().and_then(|owner| self.phase(owner)).into_iter().collect(),
            };
        }
        match &self.killed {
            Some((at, killed, phase)) if *at == at_ns && *killed == node => {
                return phase.iter().copied().collect();
            }
            _ => {}
        }
        match node {
            NodeName::Client(_) => self.phase(node).into_iter().collect(),
            _ => self.clients.keys().filter_map(|client| self.phase(*client)).collect(),
        }
    }

    fn owner(&self) -> Option<NodeName> {
        self.queue.first_key_value().map(|(_, (_, client))| *client)
    }

    fn phase(&self, node: NodeName) -> Option<LockPhase> {
        let client = self.clients.get(&node)?;
        let queued = self.queue.values().any(|(_, of)| *of == node);
        match client {
            Client { releases: Some(_), .. } => Some(LockPhase::Releasing),
            Client { locks: Some(_), .. } if self.owner() == Some(node) => {
                Some(LockPhase::GrantedUnseen)
            }
            Client { locks: Some(_), .. } => Some(LockPhase::Waiting),
            Client { believes: true, .. } if !queued => Some(LockPhase::ExpiredUnaware),
            Client { believes: true, checked: true, .. } => Some(LockPhase::BeforeWrite),
            Client { believes: true, .. } => Some(LockPhase::Holding),
            _ => None,
        }
    }

    fn see(&mut self, at_ns: u64, node: NodeName, kind: &EventKind) {
        match kind {
            EventKind::Commit(commit) => self.commit(at_ns, commit),
            EventKind::Apply(row) => {
                for client in self.clients.values_mut() {
                    client.checked &= row.tag.is_none() || client.writes.map(|op| op.0) != row.tag;
                }
            }
            EventKind::Killed if matches!(node, NodeName::Client(_)) => {
                self.killed = Some((at_ns, node, self.phase(node)));
                self.clients.insert(node, Client::default());
            }
            EventKind::Invoke { op, f, .. } => {
                if let Function::Lock { name } | Function::TryLock { name } = f
                    && !self.locks.contains(name)
                {
                    self.locks.push(name.clone());
                }
                self.clients.entry(node).or_default().invoke(*op, f);
            }
            EventKind::Return { op, outcome } => {
                let client = self.clients.entry(node).or_default();
                if client.opens == Some(*op)
                    && let Outcome::Ok(Reply::Session { lease, .. }) = outcome
                {
                    self.leases.insert(*lease, node);
                }
                if matches!(outcome, Outcome::Ok(Reply::Acquired { .. })) {
                    client.given_ns = Some(at_ns);
                }
                client.told(*op, outcome);
            }
            EventKind::LossNoticed { .. } => {
                self.clients.entry(node).or_default().believes = false;
            }
            EventKind::Held { held, .. } => {
                let client = self.clients.entry(node).or_default();
                client.checked = *held && client.given_ns != Some(at_ns);
            }
            _ => {}
        }
    }

    fn commit(&mut self, at_ns: u64, commit: &Commit) {
        let owner = self.owner();
        let phase = owner.and_then(|owner| self.phase(owner));
        for event in &commit.events {
            let of_lock = self.locks.iter().any(|name| {
                event.key.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'))
            });
            match event.change {
                KeyChange::Put if of_lock => {
                    if let Some(client) = self.leases.get(&event.lease) {
                        self.queue.insert(event.create_revision, (event.key.clone(), *client));
                    }
                }
                KeyChange::Put => {}
                KeyChange::Delete => self.queue.retain(|_, (key, _)| *key != event.key),
            }
        }
        if self.owner() != owner && owner.is_some() {
            self.deposed = Some((at_ns, phase));
        }
    }
}

impl Client {
    fn invoke(&mut self, op: OpId, f: &Function) {
        match f {
            Function::OpenSession { .. } => self.opens = Some(op),
            Function::Lock { .. } | Function::TryLock { .. } => self.locks = Some(op),
            Function::Unlock { .. } | Function::CloseSession => {
                self.releases = Some(op);
                self.believes = false;
                self.checked = false;
            }
            Function::Write { .. } => self.writes = Some(op),
            Function::Enter { .. } | Function::Read { .. } | Function::FinalRead { .. } => {}
        }
    }

    fn told(&mut self, op: OpId, outcome: &Outcome) {
        if self.locks == Some(op) {
            self.locks = None;
            self.believes = matches!(outcome, Outcome::Ok(_));
            self.checked = false;
        }
        if self.releases == Some(op) {
            self.releases = None;
        }
        if self.writes == Some(op) {
            self.writes = None;
            self.checked = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{ApplyRow, Cause, Event, HoldingId, KeyEvent, OpKind, RowResult};

    const CLIENT: NodeName = NodeName::Client(1);

    fn key(change: KeyChange, cause: Cause, key: &str, lease: i64) -> EventKind {
        let create_revision = lease;
        let event = KeyEvent { change, key: key.to_owned(), create_revision, lease };
        let (index, revision) = (1, create_revision);
        EventKind::Commit(Commit { index, revision, cause, member_ns: 0, events: vec![event] })
    }

    fn opens(node: NodeName, op: u64, lease: i64) -> [(NodeName, EventKind); 2] {
        let (op, session) = (OpId(op), Outcome::Ok(Reply::Session { lease, ttl_s: 2 }));
        let invoke = EventKind::Invoke { op, holding: None, f: Function::OpenSession { ttl_s: 2 } };
        [(node, invoke), (node, EventKind::Return { op, outcome: session })]
    }

    fn applied(tag: u64) -> EventKind {
        EventKind::Apply(ApplyRow {
            boot: 1,
            request: 1,
            index: 1,
            domain: "lock".into(),
            id: None,
            tag: Some(tag),
            token: Some(7),
            kind: OpKind::Write,
            key: "k".into(),
            value: None,
            result: RowResult::Admitted,
            effect: true,
        })
    }

    /// One life of a holding, with a fault in each phase: each is told as what it is.
    #[test]
    fn each_phase_is_told() {
        let (lock, holding) = ("/lock".to_owned(), Some(HoldingId(1)));
        let invoke = |op, f| EventKind::Invoke { op: OpId(op), holding, f };
        let told = |op, reply| EventKind::Return { op: OpId(op), outcome: Outcome::Ok(reply) };
        let held =
            |held| EventKind::Held { holding: HoldingId(1), held, local_ns: 0, deadline_ns: 1 };
        let write = Function::Write {
            domain: "lock".into(),
            key: "k".into(),
            value: "1".into(),
            based_on: None,
        };
        let acquired = Reply::Acquired { key: "/lock/7".into(), token: 7 };
        let begin = || EventKind::Fault { index: 0, action: FaultAction::Begin };
        let mut events = [opens(NodeName::Client(2), 1, 5), opens(CLIENT, 2, 7)].concat();
        let etcd = |kind| (NodeName::Etcd(1), kind);
        events.push((CLIENT, invoke(3, Function::Lock { name: lock.clone() })));
        events.push(etcd(key(KeyChange::Put, Cause::Txn, "/lock/5", 5)));
        events.push(etcd(key(KeyChange::Put, Cause::Txn, "/lock/7", 7)));
        events.push((CLIENT, begin()));
        events.push(etcd(key(KeyChange::Delete, Cause::Expiry(5), "/lock/5", 5)));
        events.push((CLIENT, begin()));
        events.push((CLIENT, told(3, acquired)));
        events.push((CLIENT, begin()));
        events.push((CLIENT, held(true)));
        events.push((CLIENT, begin()));
        events.push((CLIENT, invoke(4, write)));
        events.push((CLIENT, begin()));
        events.push((NodeName::Storage, applied(4)));
        events.push((NodeName::Nemesis, begin()));
        events.push(etcd(key(KeyChange::Delete, Cause::Expiry(7), "/lock/7", 7)));
        events.push((CLIENT, begin()));
        events.push((CLIENT, invoke(5, Function::Unlock { name: lock })));
        events.push((CLIENT, begin()));
        events.push((CLIENT, told(5, Reply::Done)));
        events.push((CLIENT, begin()));
        let events = (0..).zip(events);
        let events = events.map(|(seq, (node, kind))| Event { seq, at_ns: seq, node, kind });
        let families = BTreeMap::from([(0, "pause")]);
        let coverage = Coverage::of(&History { events: events.collect() }, &families);
        let counts = LockPhase::ALL.map(|phase| coverage.count("pause", phase));
        assert_eq!(counts, [1, 1, 2, 2, 1, 1]);
        assert_eq!(coverage.missing(["pause"]), []);
        let missing = coverage.missing(["forced-revoke"]).len();
        assert_eq!(missing, 4, "the owner neither waits nor has lost its key");
    }

    /// A fault that kills, or takes the owner's key, is counted where it found its target.
    #[test]
    fn a_fault_is_counted_where_it_found_its_target() {
        let mut events = opens(CLIENT, 1, 7).to_vec();
        let lock = Function::Lock { name: "/lock".to_owned() };
        events.push((CLIENT, EventKind::Invoke { op: OpId(2), holding: None, f: lock }));
        events.push((NodeName::Etcd(1), key(KeyChange::Put, Cause::Txn, "/lock/7", 7)));
        let begin = |index| EventKind::Fault { index, action: FaultAction::Begin };
        events.push((NodeName::Etcd(1), key(KeyChange::Delete, Cause::Delete, "/lock/7", 7)));
        events.push((NodeName::Nemesis, begin(0)));
        events.push((CLIENT, EventKind::Killed));
        events.push((CLIENT, begin(1)));
        let event = |(seq, (node, kind))| Event { seq, at_ns: 9, node, kind };
        let history = History { events: (0..).zip(events).map(event).collect() };
        let families = BTreeMap::from([(0, "outside-delete"), (1, "kill")]);
        let coverage = Coverage::of(&history, &families);
        assert_eq!(coverage.count("outside-delete", LockPhase::GrantedUnseen), 1);
        assert_eq!(coverage.count("kill", LockPhase::Waiting), 1);
    }
}
