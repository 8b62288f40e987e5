//! Random histories of the storage over restarts, of leases, and of calls with deadlines, mostly
//! right, then damaged: the checkers must say what the naive copies say, whatever the history.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::{
    checker::{self, Index, Verdict},
    history::{
        ApplyRow, Cause, Commit, Event, EventKind, FaultAction, Function, History, KeyChange,
        KeyEvent, LeaseChange, LeaseEvent, NodeName, OpId, Outcome, Reply, RequestId, RowResult,
    },
    seed::{Seed, Stream},
};

use super::{naive, naive_lease, naive_storage, naive_time, story::Story};

/// The verdict of a checker: none if there was nothing to judge, else the broken rule.
pub fn judged(name: &str, history: &History) -> Option<Option<&'static str>> {
    let checker = checker::by_name(name).expect("a checker of the catalog");
    match checker.check(&Index::new(history)).verdict {
        Verdict::Pass => Some(None),
        Verdict::Violation(violation) => Some(Some(violation.rule)),
        Verdict::NotRun(_) => None,
        Verdict::Unknown(why) => panic!("{why}"),
    }
}

pub fn renumber(history: &mut History) {
    for (seq, event) in (0..).zip(&mut history.events) {
        event.seq = seq;
    }
}

/// What a storage that does it right keeps.
#[derive(Clone, Default)]
struct Machine {
    values: BTreeMap<&'static str, String>,
    mark: i64,
    last: BTreeMap<i64, (u64, bool, &'static str, String)>,
}

impl Machine {
    fn apply(&mut self, asked: &Asked) -> (RowResult, Option<String>) {
        let body = (asked.seq, asked.write, asked.key, asked.value.clone());
        let last = self.last.get(&asked.token);
        let value = asked.write.then(|| asked.value.clone());
        if asked.write && last == Some(&body) {
            return (RowResult::Replayed, value);
        }
        if asked.token < self.mark {
            return (RowResult::Refused, value);
        }
        if last.is_some_and(|last| last.0 > asked.seq || last.0 == asked.seq && *last != body) {
            return (RowResult::Rejected, value);
        }
        self.mark = asked.token;
        self.last.insert(asked.token, body);
        if asked.write {
            self.values.insert(asked.key, asked.value.clone());
            return (RowResult::Admitted, value);
        }
        (RowResult::Admitted, self.values.get(asked.key).cloned())
    }
}

/// A request.
#[derive(Clone)]
struct Asked {
    op: u64,
    token: i64,
    seq: u64,
    write: bool,
    key: &'static str,
    value: String,
}

/// A history of a storage that forgets at a restart what it may forget.
pub fn storage_history(seed: Seed) -> History {
    let mut stream = seed.stream("chaos");
    let mut story = Story::new();
    let (mut machine, mut kept) = (Machine::default(), Vec::<Machine>::new());
    let mut tokens = vec![(1u8, 1u64, story.acquire(1, 1))];
    let mut flying: Vec<Asked> = Vec::new();
    for _ in 0..40 {
        match stream.below(12) {
            0 => {
                let (client, holding) = (tokens.len() as u8 + 1, tokens.len() as u64 + 1);
                story.expire(client - 1);
                tokens.push((client, holding, story.acquire(client, holding)));
            }
            1 if story.boot < 3 => {
                story.boot += 1;
                if !kept.is_empty() {
                    machine = stream.pick(&kept).clone();
                }
                kept = vec![machine.clone()];
            }
            2..=6 => {
                let (client, holding, token) = *stream.pick(&tokens);
                let key = *stream.pick(&["k", "l"]);
                let write = stream.chance(500);
                let value = format!("{}", stream.below(1_000_000));
                let op = match write {
                    true => story.writing(client, holding, (key, &value), None),
                    false => story.reading(client, holding, key),
                };
                let value = if write { value } else { String::new() };
                flying.push(Asked { op, token, seq: op, write, key, value });
            }
            _ if !flying.is_empty() => {
                let at = stream.below(flying.len() as u64) as usize;
                let again = stream.chance(200);
                let asked = if again { flying[at].clone() } else { flying.remove(at) };
                let (result, value) = machine.apply(&asked);
                let id = RequestId { token: asked.token, seq: asked.seq };
                let effect = result == RowResult::Admitted;
                story.numbered = Some(id);
                let token = Some(asked.token);
                story.apply_read(asked.op, token, result, value.as_deref(), effect);
                kept.push(machine.clone());
                if stream.chance(600) {
                    story.answered();
                    kept = vec![machine.clone()];
                }
                if !again && stream.chance(500) {
                    answer(&mut story, &asked, result, value);
                    kept = vec![machine.clone()];
                }
            }
            _ => {}
        }
    }
    story.finish()
}

fn answer(story: &mut Story, asked: &Asked, result: RowResult, value: Option<String>) {
    let done = matches!(result, RowResult::Admitted | RowResult::Replayed);
    match (done, asked.write) {
        (true, true) => story.ok(asked.op),
        (true, false) => story.answer(asked.op, Outcome::Ok(Reply::Value(value))),
        (false, _) => story.unknown(asked.op),
    };
}

fn row(history: &mut History, at: usize) -> &mut ApplyRow {
    let rows = history.events.iter_mut().filter_map(|event| match &mut event.kind {
        EventKind::Apply(row) => Some(row),
        _ => None,
    });
    rows.into_iter().nth(at).expect("so many rows")
}

/// Damages the storage's part of a history in one place.
fn mutate_storage(history: &mut History, stream: &mut Stream) {
    let rows = naive_storage::rows(history).len() as u64;
    if rows < 2 {
        return;
    }
    let at = stream.below(rows) as usize;
    match stream.below(7) {
        0 => {
            let results = [RowResult::Admitted, RowResult::Refused, RowResult::Replayed];
            row(history, at).result = *stream.pick(&results);
        }
        1 => row(history, at).effect = stream.chance(500),
        2 => row(history, at).value = Some(stream.below(9).to_string()),
        3 => {
            let other = row(history, stream.below(rows) as usize).value.clone();
            row(history, at).value = other;
        }
        4 => row(history, at).token = Some(stream.below(20) as i64),
        5 => row(history, at).id = None,
        _ => {
            let mut events = (0..history.events.len()).filter(|at| {
                matches!(history.events[*at].kind, EventKind::Return { .. } | EventKind::Storage(_))
            });
            let count = events.clone().count() as u64;
            if count > 0 {
                let gone = events.nth(stream.below(count) as usize).expect("so many");
                history.events.remove(gone);
                renumber(history);
            }
        }
    }
}

/// Linearizability and durability equal their naive copies; what was not damaged passes; and every
/// rule is broken somewhere.
#[test]
fn storage_checkers_and_naive_copies_agree() {
    let (mut seen, mut restarts) = (BTreeSet::new(), 0);
    for seed in 0..400 {
        let mut history = storage_history(Seed(seed));
        let mut stream = Seed(seed).stream("damage");
        for round in 0..6 {
            let what = format!("seed {seed}, after {round} mutations");
            let rows = naive_storage::rows(&history);
            let survives = |row: &ApplyRow| naive::survives(&history, &rows, row);
            let linear = judged("linearizability", &history);
            let by_rows = naive_storage::linear_rows(&history).map(|(_, rule)| rule);
            let untrue = naive_storage::untrue_answers(&history, &survives);
            match (by_rows, linear) {
                (Some(rule), found) => assert_eq!(found, Some(Some(rule)), "{what}"),
                (None, Some(found)) => assert_eq!(found.is_some(), untrue, "{what}: {found:?}"),
                (None, None) => assert_eq!(rows.len(), 0, "{what}"),
            }
            let durable = judged("durability", &history);
            let broken = naive_storage::not_durable(&history, &survives);
            assert_eq!(durable.flatten().is_some(), broken, "{what}: {durable:?}");
            if round == 0 {
                assert_eq!((linear.flatten(), durable.flatten()), (None, None), "{what}");
                restarts += u64::from(durable.is_some());
            }
            seen.extend(linear.flatten());
            seen.extend(durable.flatten());
            mutate_storage(&mut history, &mut stream);
        }
    }
    let expected = [
        "answer",
        "applied-twice",
        "lost-data",
        "lost-mark",
        "lost-requests",
        "never-applied",
        "read",
        "refused-but-written",
        "stale-admitted",
        "wrongly-refused",
    ];
    for rule in expected {
        assert!(seen.contains(rule), "{rule} was never broken: {seen:?}");
    }
    assert!(restarts > 100, "only {restarts} histories had a restart");
}

/// A history of two leases with two keys; `stream` decides how wrong it is.
pub fn lease_history(seed: Seed) -> History {
    let mut stream = seed.stream("leases");
    let mut events: Vec<(NodeName, EventKind)> = Vec::new();
    let etcd = NodeName::Etcd(1);
    let mut history = History::default();
    let mut revision = 1;
    for step in 0..30u64 {
        let lease = stream.between(1, 2) as i64;
        let member_ns = step * 1_000_000_000;
        let told = |change| EventKind::Lease(LeaseEvent { lease, change, member_ns });
        let mut commit = |cause, changes: Vec<(KeyChange, &str, i64)>| {
            revision += 1;
            let event = |(change, key, lease): (KeyChange, &str, i64)| KeyEvent {
                change,
                key: key.to_owned(),
                create_revision: revision,
                lease,
            };
            let events = changes.into_iter().map(event).collect();
            let index = revision as u64;
            EventKind::Commit(Commit { index, revision, cause, member_ns, events })
        };
        let keys = ["lock/1", "lock/2"];
        let key = *stream.pick(&keys);
        match stream.below(10) {
            0..=1 => {
                let ttl_s = stream.between(3, 9) as i64;
                events.push((etcd, told(LeaseChange::Granted { ttl_s })));
            }
            2..=4 => events.push((etcd, told(LeaseChange::Renewed))),
            5 => events.push((etcd, told(LeaseChange::Promoted { extend_ms: 1000 }))),
            6 => {
                let cause = *stream.pick(&[Cause::Txn, Cause::Delete, Cause::Put]);
                events.push((etcd, commit(cause, vec![(KeyChange::Delete, key, lease)])));
            }
            7..=8 => {
                events.push((etcd, commit(Cause::Txn, vec![(KeyChange::Put, key, lease)])));
            }
            _ => {
                let (change, cause) = match stream.chance(500) {
                    true => (LeaseChange::Expired, Cause::Expiry(lease)),
                    false => (LeaseChange::Revoked, Cause::Revoke(lease)),
                };
                if stream.chance(900) {
                    events.push((etcd, told(change)));
                }
                let taken: Vec<&str> = keys.into_iter().filter(|_| stream.chance(600)).collect();
                let gone = taken.into_iter().map(|key| (KeyChange::Delete, key, lease));
                events.push((etcd, commit(cause, gone.collect())));
            }
        }
    }
    for (seq, (node, kind)) in (0..).zip(events) {
        history.events.push(Event { seq, at_ns: seq * 1_000_000_000, node, kind });
    }
    history
}

/// The two checkers of leases equal their naive copies.
#[test]
fn lease_checkers_and_naive_copies_agree() {
    let (mut safety, mut atomicity) = (BTreeMap::new(), BTreeMap::new());
    for seed in 0..3000 {
        let history = lease_history(Seed(seed));
        // So much of it that neither verdict is always the same.
        let length = Seed(seed).stream("length").between(2, 30) as usize;
        let events = history.events.into_iter().take(length).collect();
        let history = History { events };
        let found = judged("lease-safety", &history).flatten();
        assert_eq!(found, naive_lease::lease_safety(&history), "seed {seed}");
        *safety.entry(found).or_insert(0) += 1;
        let found = judged("lease-atomicity", &history).flatten();
        assert_eq!(
            found.is_some(),
            naive_lease::lease_atomicity(&history),
            "seed {seed}: {found:?}"
        );
        *atomicity.entry(found).or_insert(0) += 1;
    }
    assert_eq!((safety.len(), atomicity.len()), (3, 4), "{safety:?} {atomicity:?}");
    assert!(safety.values().chain(atomicity.values()).all(|count| *count > 20));
}

/// Calls with deadlines on clocks of changing rates, of nodes that stand still at times.
pub fn deadline_history(seed: Seed) -> History {
    let mut stream = seed.stream("deadlines");
    let mut history = History::default();
    let mut at_ns = 0;
    for seq in 0..40 {
        at_ns += stream.between(1, 400) * 1_000_000;
        let node = NodeName::Client(stream.between(1, 3) as u8);
        let permille = *stream.pick(&[0, 500, 1000, 1500, 2000]);
        let kind = match stream.below(8) {
            // Of the third client no rate is known.
            0..=1 if node != NodeName::Client(3) => EventKind::Rate { permille },
            2 => EventKind::Stop,
            3 => EventKind::Go,
            4..=6 => {
                let ended_ns = at_ns + 5_000_000_000;
                let deadline_ns = ended_ns - stream.below(2000) * 1_000_000;
                let cleanup_ns = stream.below(700) * 1_000_000;
                let op = OpId(seq);
                EventKind::Deadline { op, started_ns: 0, deadline_ns, ended_ns, cleanup_ns }
            }
            _ => EventKind::Point { name: "nothing".to_owned() },
        };
        history.events.push(Event { seq, at_ns, node, kind });
    }
    history
}

/// The checker of deadlines equals its naive copy.
#[test]
fn deadlines_and_naive_copy_agree() {
    let (mut late, mut early) = (0, 0);
    for seed in 0..600 {
        let mut history = deadline_history(Seed(seed));
        history.events.truncate(Seed(seed).stream("length").between(6, 40) as usize);
        let checker = checker::by_name("call-deadline").expect("a checker of the catalog");
        let finding = checker.check(&Index::new(&history));
        let found = (finding.judged, finding.verdict.violation().is_some());
        assert_eq!(found, naive_lease::call_deadline(&history), "seed {seed}");
        late += u32::from(found.1);
        early += u32::from(!found.1 && found.0 > 0);
    }
    assert!(late > 50 && early > 50, "{late} late, {early} in time");
}

/// One client's session, renewed when nothing hinders it, and what hinders it.
pub fn session_history(seed: Seed) -> History {
    let mut stream = seed.stream("session");
    let (client, etcd) = (NodeName::Client(1), NodeName::Etcd(1));
    let mut history = History::default();
    let mut at_ns = 0;
    let mut record = |at_ns: u64, node, kind| {
        let seq = history.events.len() as u64;
        history.events.push(Event { seq, at_ns, node, kind });
    };
    let lease = |change| EventKind::Lease(LeaseEvent { lease: 256, change, member_ns: 0 });
    for node in [client, etcd] {
        record(0, node, EventKind::Rate { permille: 1000 });
    }
    let ttl_s = stream.between(2, 5) as i64;
    at_ns += 2_000_000_000;
    let f = Function::OpenSession { ttl_s };
    record(at_ns, client, EventKind::Invoke { op: OpId(1), holding: None, f });
    record(at_ns, etcd, lease(LeaseChange::Granted { ttl_s }));
    let outcome = Outcome::Ok(Reply::Session { lease: 256, ttl_s });
    record(at_ns, client, EventKind::Return { op: OpId(1), outcome });
    for index in 0..stream.below(8) as u32 {
        at_ns += stream.between(1, 15) * naive_time::CELL_NS;
        let node = if index % 4 < 2 || stream.chance(500) { client } else { etcd };
        let (from, to) = if stream.chance(500) { (client, etcd) } else { (etcd, client) };
        let (open, delay_ms) = (stream.chance(600), stream.below(4) * 100);
        let kind = match stream.below(9) {
            0..=2 => EventKind::Link { from, to, open, delay_ms },
            3 => {
                if stream.chance(500) {
                    EventKind::Stop
                } else {
                    EventKind::Go
                }
            }
            4 => EventKind::Rate { permille: *stream.pick(&[900, 1000]) },
            5 if node == etcd && stream.chance(500) => EventKind::Killed,
            5 if node == etcd => EventKind::Restarted,
            6 => EventKind::Fault { index: index / 2, action: FaultAction::Begin },
            7 => EventKind::Fault { index: index / 2, action: FaultAction::End },
            _ => lease(LeaseChange::Renewed),
        };
        let node = match kind {
            EventKind::Lease(_) => etcd,
            EventKind::Fault { index, .. } => {
                if index % 2 == 0 {
                    client
                } else {
                    etcd
                }
            }
            _ => node,
        };
        record(at_ns, node, kind);
    }
    at_ns += stream.between(1, 60) * naive_time::CELL_NS;
    if stream.chance(400) {
        let (op, holding, f) = (OpId(2), None, Function::CloseSession);
        record(at_ns, client, EventKind::Invoke { op, holding, f });
        at_ns += naive_time::CELL_NS;
    }
    record(at_ns, etcd, lease(LeaseChange::Expired));
    history
}

/// The checker of sessions' survival equals its naive copy.
#[test]
fn survival_and_naive_copy_agree() {
    let (mut expired, mut excused) = (0, 0);
    for seed in 0..1500 {
        let history = session_history(Seed(seed));
        let checker = checker::by_name("session-survival").expect("a checker of the catalog");
        let finding = checker.check(&Index::new(&history));
        let found = (finding.judged, finding.verdict.violation().is_some());
        assert_eq!(found, naive_time::session_survival(&history), "seed {seed}");
        expired += u32::from(found.1);
        excused += u32::from(!found.1 && found.0 > 0);
    }
    assert!(expired > 100 && excused > 100, "{expired} expired, {excused} excused");
}
