//! Random stories of sessions that renew their leases and say "held", mostly right, then damaged:
//! the checker of their honesty must say what its naive copy says.

use std::collections::BTreeMap;

use leasehold::{
    checker::{self, Index},
    history::{
        Event, EventKind, FaultAction, Function, History, HoldingId, LeaseChange, LeaseEvent,
        NodeName, OpId, Outcome, Reply,
    },
    seed::{Seed, Stream},
};

use super::naive_honest;

const MS: u64 = 1_000_000;

/// A client as it knows itself.
#[derive(Clone, Copy)]
struct Client {
    /// By how much its clock is ahead of true time: a suspend would have moved it.
    ahead_ns: u64,
    deadline_ns: u64,
    holding: Option<u64>,
}

struct Teller {
    stream: Stream,
    history: History,
    at_ns: u64,
    ops: u64,
    holdings: u64,
    ttl_s: u64,
    clients: [Client; 2],
}

impl Teller {
    fn record(&mut self, node: NodeName, kind: EventKind) {
        let seq = self.history.events.len() as u64;
        self.history.events.push(Event { seq, at_ns: self.at_ns, node, kind });
    }

    fn lease(&mut self, client: usize, change: LeaseChange) {
        let lease = LeaseEvent { lease: client as i64 * 0x100, change, member_ns: self.at_ns };
        self.record(NodeName::Etcd(1), EventKind::Lease(lease));
    }

    /// A call of a client that takes a while, in which `during` happens.
    fn call(
        &mut self,
        client: usize,
        holding: Option<u64>,
        (f, reply): (Function, Reply),
        during: impl FnOnce(&mut Self),
    ) {
        self.ops += 1;
        let (op, node) = (OpId(self.ops), NodeName::Client(client as u8 + 1));
        let holding = holding.map(HoldingId);
        self.record(node, EventKind::Invoke { op, holding, f });
        self.at_ns += self.stream.below(20) * MS;
        during(self);
        self.at_ns += self.stream.below(20) * MS;
        self.record(node, EventKind::Return { op, outcome: Outcome::Ok(reply) });
    }

    fn held(&mut self, client: usize, holding: u64) {
        let Client { ahead_ns, deadline_ns, .. } = self.clients[client];
        let (local_ns, holding) = (self.at_ns + ahead_ns, HoldingId(holding));
        let held = local_ns < deadline_ns;
        let node = NodeName::Client(client as u8 + 1);
        self.record(node, EventKind::Held { holding, held, local_ns, deadline_ns });
    }

    /// Until when in true time the client may say "held".
    fn known_until_ns(&self, client: usize) -> u64 {
        self.clients[client].deadline_ns.saturating_sub(self.clients[client].ahead_ns)
    }

    /// A renewal is sent, and processed a little later.
    fn renew(&mut self, client: usize) {
        let sent_ns = self.at_ns + self.clients[client].ahead_ns;
        self.at_ns += self.stream.below(50) * MS;
        self.lease(client, LeaseChange::Renewed);
        if self.stream.chance(800) {
            // It was acknowledged.
            self.clients[client].deadline_ns = sent_ns + self.ttl_s * 1_000 * MS;
        }
    }

    fn open(&mut self, client: usize) {
        let ttl_s = self.ttl_s as i64;
        let sent_ns = self.at_ns + self.clients[client].ahead_ns;
        let reply = Reply::Session { lease: client as i64 * 0x100, ttl_s };
        let asked = (Function::OpenSession { ttl_s }, reply);
        self.call(client, None, asked, |teller| {
            teller.lease(client, LeaseChange::Granted { ttl_s });
        });
        self.clients[client].deadline_ns = sent_ns + self.ttl_s * 1_000 * MS;
    }

    fn step(&mut self) {
        let client = self.stream.below(2) as usize;
        let node = NodeName::Client(client as u8 + 1);
        self.at_ns += self.stream.below(400) * MS;
        match (self.stream.below(8), self.clients[client].holding) {
            (0..=1, None) if self.at_ns + 40 * MS < self.known_until_ns(client) => {
                self.holdings += 1;
                let holding = self.holdings;
                let key = format!("lock/{:x}", client * 0x100);
                let f = Function::Lock { name: "lock".to_owned() };
                let asked = (f, Reply::Acquired { key, token: 7 });
                self.call(client, Some(holding), asked, |_| {});
                self.clients[client].holding = Some(holding);
                if self.stream.chance(200) {
                    let fault = EventKind::Fault { index: 0, action: FaultAction::Begin };
                    self.record(node, fault);
                }
                self.held(client, holding);
            }
            (0..=3, Some(holding)) => self.held(client, holding),
            (4, Some(_)) if self.stream.chance(200) => self.clients[client].holding = None,
            (5..=6, _) => self.renew(client),
            (7, _) if self.stream.chance(50) => {
                self.clients[client].ahead_ns += self.stream.below(3000) * MS;
            }
            (7, _) if self.stream.chance(50) => {
                self.record(node, EventKind::Rate { permille: 900 });
            }
            _ => {}
        }
    }
}

pub fn session_history(seed: Seed) -> History {
    let mut stream = seed.stream("honesty");
    let ttl_s = stream.between(1, 3);
    let client = Client { ahead_ns: 0, deadline_ns: 0, holding: None };
    let history = History::default();
    let mut teller =
        Teller { stream, history, at_ns: 0, ops: 0, holdings: 0, ttl_s, clients: [client; 2] };
    for client in 0..2 {
        teller.open(client);
    }
    for _ in 0..40 {
        teller.step();
    }
    teller.history
}

/// When in true time the lease of the client of an event is over, by what was processed before it.
fn over_ns(history: &History, at: usize) -> Option<u64> {
    let NodeName::Client(client) = history.events[at].node else { return None };
    let wanted = (i64::from(client) - 1) * 0x100;
    let mut ttl_ns = None;
    let mut last_ns = None;
    for event in &history.events[..at] {
        match &event.kind {
            EventKind::Lease(lease) if lease.lease == wanted => {
                if let LeaseChange::Granted { ttl_s } = lease.change {
                    ttl_ns = Some(ttl_s as u64 * 1_000 * MS);
                }
                last_ns = Some(event.at_ns);
            }
            _ => {}
        }
    }
    Some(ttl_ns? + last_ns?)
}

/// Damages the history in one place.
fn mutate(history: &mut History, stream: &mut Stream) {
    let choice = stream.below(8);
    let fits = |kind: &EventKind| match kind {
        EventKind::Held { .. } => choice <= 3 || choice >= 6,
        EventKind::Lease(_) => choice == 4,
        EventKind::Return { .. } => choice == 5,
        _ => false,
    };
    let places: Vec<usize> =
        (0..history.events.len()).filter(|at| fits(&history.events[*at].kind)).collect();
    if places.len() < 2 {
        return;
    }
    let at = *stream.pick(&places);
    let by_ns = stream.below(2000) * MS;
    let over_ns = over_ns(history, at).unwrap_or_default();
    let event = &mut history.events[at];
    match &mut event.kind {
        EventKind::Held { held, local_ns, deadline_ns, .. } => match choice {
            0 => *held = !*held,
            1 => *deadline_ns += by_ns,
            // Said when the lease is over or a moment before; a deadline just right, or just not.
            6 => {
                event.at_ns = over_ns - stream.below(2).min(over_ns);
                (*local_ns, *deadline_ns) = (event.at_ns, over_ns + 1);
            }
            7 => {
                let left_ns = over_ns.saturating_sub(event.at_ns);
                *deadline_ns = *local_ns + left_ns + stream.below(2);
            }
            2 => *deadline_ns = deadline_ns.saturating_sub(by_ns).max(1),
            // Said at the very end of the time that the client knows of, or a moment before.
            _ => *local_ns = *deadline_ns - stream.below(2).min(*deadline_ns),
        },
        EventKind::Lease(lease) => match lease.change {
            LeaseChange::Granted { .. } => lease.change = LeaseChange::Granted { ttl_s: 1 },
            _ => drop(history.events.remove(at)),
        },
        // An answer comes later than the client's next word.
        _ => {
            let moved = history.events.remove(at);
            history.events.insert((at + 2).min(history.events.len()), moved);
        }
    }
    super::chaos::renumber(history);
}

/// The checker of honesty equals its naive copy; what was not damaged passes; and every rule is
/// kept and broken often enough.
#[test]
fn honesty_and_naive_copy_agree() {
    let checker = checker::by_name("session-honesty").expect("a checker of the catalog");
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..400 {
        let mut history = session_history(Seed(seed));
        let mut stream = Seed(seed).stream("damage");
        for round in 0..6 {
            let finding = checker.check(&Index::new(&history));
            let rule = finding.verdict.violation().map(|violation| violation.rule);
            let what = format!("seed {seed}, after {round} mutations: {}", finding.verdict);
            assert_eq!((finding.judged, rule), naive_honest::session_honesty(&history), "{what}");
            assert!(round > 0 || rule.is_none(), "{what}");
            *seen.entry(rule.unwrap_or("pass")).or_default() += 1;
            mutate(&mut history, &mut stream);
        }
    }
    let often = seen.values().filter(|count| **count >= 30).count();
    assert_eq!((seen.len(), often), (5, 5), "{seen:?}");
}
