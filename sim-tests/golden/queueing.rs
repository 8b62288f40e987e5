//! Random stories of clients that queue for a lock, mostly right, then damaged: the checkers of
//! grants, releases and tokens must say what their naive copies say.

use std::collections::BTreeMap;

use leasehold::{
    checker::{self, Index},
    history::{Commit, EventKind, Function, History, HoldingId, Outcome, Reply, RowResult},
    seed::{Seed, Stream},
};

use super::{chaos::renumber, naive_lock, story::Story};

/// What a client is about.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Nothing,
    Waits { op: u64, holding: u64 },
    Holds { holding: u64, token: i64 },
    GivesBack { op: u64 },
}

struct Teller {
    stream: Stream,
    story: Story,
    clients: [At; 3],
    holdings: u64,
}

impl Teller {
    fn step(&mut self) {
        let client = self.stream.below(3) as u8 + 1;
        let at = usize::from(client) - 1;
        let queued = self.story.queued(client);
        self.clients[at] = match (self.clients[at], self.stream.below(10)) {
            (At::Nothing, 0..=6) => {
                self.holdings += 1;
                let op = self.story.lock(client, self.holdings);
                At::Waits { op, holding: self.holdings }
            }
            (At::Waits { op, holding }, 0..=6) => match queued {
                None => {
                    self.story.enqueue(client);
                    At::Waits { op, holding }
                }
                Some(token) if self.story.first() == Some(token) => {
                    self.story.acquired(op, token);
                    At::Holds { holding, token }
                }
                Some(_) => At::Waits { op, holding },
            },
            (At::Waits { op, .. }, 7) => {
                self.story.unknown(op);
                self.story.expire(client);
                At::Nothing
            }
            (At::Holds { holding, token }, 0..=4) => {
                let read = self.stream.chance(500);
                let op = match read {
                    true => self.story.reading(client, holding, "k"),
                    false => self.story.writing(client, holding, ("k", "v"), None),
                };
                let results = [RowResult::Admitted, RowResult::Admitted, RowResult::Refused];
                self.story.apply(op, Some(token), *self.stream.pick(&results));
                At::Holds { holding, token }
            }
            (At::Holds { holding, .. }, 5..=7) => {
                At::GivesBack { op: self.story.unlock(client, holding) }
            }
            (At::GivesBack { op }, 0..=7) if queued.is_none() => {
                self.story.ok(op);
                At::Nothing
            }
            (At::GivesBack { op }, 0..=7) => {
                self.story.dequeue(client, leasehold::history::Cause::Txn);
                At::GivesBack { op }
            }
            (stays, 9) if self.stream.chance(300) => {
                self.story.expire(client);
                stays
            }
            (stays, _) => stays,
        };
    }
}

pub fn queueing_history(seed: Seed) -> History {
    let stream = seed.stream("queueing");
    let mut teller = Teller { stream, story: Story::new(), clients: [At::Nothing; 3], holdings: 0 };
    for client in 1..=3 {
        teller.story.session(client);
    }
    for _ in 0..70 {
        teller.step();
    }
    teller.story.finish()
}

/// The positions of the events of a kind.
fn places(history: &History, wanted: impl Fn(&EventKind) -> bool) -> Vec<usize> {
    let events = history.events.iter().enumerate();
    events.filter(|(_, event)| wanted(&event.kind)).map(|(at, _)| at).collect()
}

fn is_commit(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Commit(_))
}

fn commit(history: &mut History, at: usize) -> &mut Commit {
    match &mut history.events[at].kind {
        EventKind::Commit(commit) => commit,
        other => panic!("{other:?} is no commit"),
    }
}

/// Damages what was told of the lock in one place.
fn mutate_told(history: &mut History, stream: &mut Stream) {
    let revision = 10 + stream.below(20) as i64;
    let holdings = places(history, |kind| matches!(kind, EventKind::Invoke { .. })).len() as u64;
    let choice = stream.below(6);
    let invoked = |f: &Function| match choice {
        0 => matches!(f, Function::Lock { .. }),
        _ => !matches!(f, Function::Lock { .. } | Function::OpenSession { .. }),
    };
    let fits = |kind: &EventKind| match kind {
        EventKind::Invoke { f, .. } => choice < 2 && invoked(f),
        EventKind::Return { outcome: Outcome::Ok(Reply::Acquired { .. }), .. } => choice >= 2,
        EventKind::Return { outcome: Outcome::Unknown(_) | Outcome::Ok(Reply::Done), .. } => {
            choice == 4
        }
        EventKind::Apply(_) => choice == 5,
        _ => false,
    };
    let places = places(history, fits);
    if places.is_empty() {
        return;
    }
    let keys = [Story::key(1), Story::key(2), Story::key(3), "other/100".to_owned()];
    match &mut history.events[*stream.pick(&places)].kind {
        EventKind::Invoke { f: Function::Lock { name }, .. } => "other".clone_into(name),
        EventKind::Invoke { holding, .. } => {
            // Only a holding that is known by then: others are none.
            let earlier = holding.map_or(1, |holding| holding.0).min(holdings);
            *holding = Some(HoldingId(stream.between(1, earlier)));
        }
        EventKind::Return { outcome: Outcome::Ok(Reply::Acquired { key, token }), .. } => {
            match choice {
                2 => *key = stream.pick(&keys).clone(),
                _ => *token = revision,
            }
        }
        EventKind::Return { outcome, .. } => {
            let done = Outcome::Ok(Reply::Done);
            let unknown = Outcome::Unknown("timed out".to_owned());
            *outcome = if *outcome == done { unknown } else { done };
        }
        EventKind::Apply(row) => row.token = Some(revision),
        other => panic!("{other:?} is not damaged"),
    }
}

/// Damages the commit log, or the order of events, in one place.
fn mutate_order(history: &mut History, stream: &mut Stream) {
    let commits = places(history, is_commit);
    let returns = places(history, |kind| matches!(kind, EventKind::Return { .. }));
    if commits.len() < 2 || returns.is_empty() {
        return;
    }
    let (one, other) = (*stream.pick(&commits), *stream.pick(&commits));
    match stream.below(5) {
        0 => drop(history.events.remove(one)),
        1 => {
            let revision = commit(history, other).events[0].create_revision;
            commit(history, one).events[0].create_revision = revision;
        }
        2 => {
            // What was once committed comes again.
            let again = history.events[one.min(other)].clone();
            history.events.insert(one.max(other), again);
        }
        3 => {
            // A commit comes sooner or later than it did.
            let moved = history.events.remove(one);
            let to = (one + stream.below(11) as usize).saturating_sub(5);
            history.events.insert(to.min(history.events.len()), moved);
        }
        _ => {
            // An answer comes later, or sooner, but after its question.
            let at = *stream.pick(&returns);
            let node = history.events[at].node;
            let moved = history.events.remove(at);
            let later = (at + 1..history.events.len()).take(8);
            let later = later.take_while(|to| history.events[*to].node != node).last();
            let sooner = (0..at).rev().take(8);
            let sooner = sooner.take_while(|to| history.events[*to].node != node).last();
            let to = if stream.chance(500) { later } else { sooner };
            history.events.insert(to.unwrap_or(at), moved);
        }
    }
    renumber(history);
}

fn found(name: &str, history: &History) -> (u64, Option<(&'static str, Vec<u64>)>) {
    let checker = checker::by_name(name).expect("a checker of the catalog");
    let finding = checker.check(&Index::new(history));
    let violation = finding.verdict.violation();
    (finding.judged, violation.map(|violation| (violation.rule, violation.events.clone())))
}

/// The checkers of grants, releases and tokens equal their naive copies; what was not damaged
/// passes; and every rule is kept and broken often enough.
#[test]
fn lock_checkers_and_naive_copies_agree() {
    let mut seen: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for seed in 0..300 {
        let mut history = queueing_history(Seed(seed));
        let mut stream = Seed(seed).stream("damage");
        for round in 0..5 {
            let what = format!("seed {seed}, after {round} mutations");
            let copies = [
                ("grant-validity", naive_lock::grant_validity(&history)),
                ("release-validity", naive_lock::release_validity(&history)),
                ("tenure-kept", naive_lock::tenure_kept(&history)),
            ];
            for (name, (judged, broken)) in copies {
                let (count, violation) = found(name, &history);
                assert_eq!(count, judged, "{what}: {name}");
                let named = violation.as_ref().is_some_and(|(rule, events)| {
                    events.iter().any(|seq| broken.contains(&(*rule, *seq)))
                });
                assert_eq!(named, !broken.is_empty(), "{what}: {violation:?}, not {broken:?}");
                assert_eq!(violation.is_some(), named, "{what}: {violation:?}, not {broken:?}");
                assert!(round > 0 || violation.is_none(), "{what}: {violation:?}");
                *seen.entry((name, violation.map_or("pass", |(rule, _)| rule))).or_default() += 1;
            }
            let (judged, broken) = naive_lock::token_order(&history);
            let (count, violation) = found("token-order", &history);
            let rule = violation.as_ref().map(|(rule, _)| *rule);
            let order = ["create-revision", "order", "one-token", "beyond-committed"];
            let first = order.into_iter().find(|rule| broken.contains(rule));
            assert_eq!((count, rule), (judged, first), "{what}: {violation:?}, not {broken:?}");
            assert!(round > 0 || rule.is_none(), "{what}: {violation:?}");
            *seen.entry(("token-order", rule.unwrap_or("pass"))).or_default() += 1;
            match stream.chance(500) {
                true => mutate_told(&mut history, &mut stream),
                false => mutate_order(&mut history, &mut stream),
            }
        }
    }
    // Four rules of tokens, three of grants, one of releases, one of tenures, and a pass for each
    // checker.
    let often = seen.values().filter(|count| **count >= 20).count();
    assert_eq!((seen.len(), often), (13, 13), "{seen:?}");
}
