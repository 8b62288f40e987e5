//! Random small histories without an apply log: the search for an order must find one exactly where
//! trying every permutation finds one. And what it does when it has no time for that.

use std::collections::BTreeMap;

use leasehold::{
    checker::{
        self, Index, Verdict,
        search::{self, Found},
    },
    history::{Event, EventKind, Function, History, Outcome, Reply},
    seed::{Seed, Stream},
};

use super::{chaos::renumber, naive_order, story::Story};

/// So many operations at the storage can be put in every order in no time.
const OPS: usize = 7;

/// An operation that was invoked, and has not returned.
struct Flying {
    op: u64,
    f: Function,
    token: i64,
    /// What it was answered, if it was applied already.
    applied: Option<Outcome>,
}

struct Teller {
    stream: Stream,
    story: Story,
    flying: Vec<Flying>,
    values: BTreeMap<(String, String), String>,
    marks: BTreeMap<String, i64>,
    asked: usize,
}

impl Teller {
    fn ask(&mut self, client: u8, token: i64) {
        self.asked += 1;
        // Mostly one place, so that much can contradict.
        let domain = if self.stream.chance(900) { "" } else { "d" }.to_owned();
        let key = if self.stream.chance(850) { "k" } else { "l" }.to_owned();
        let value = format!("v{}", self.asked);
        let f = match self.stream.chance(500) {
            true => Function::Read { domain, key },
            false => Function::Write { domain, key, value, based_on: None },
        };
        let op = self.story.invoke(client, Some(u64::from(client)), f.clone());
        self.flying.push(Flying { op, f, token, applied: None });
    }

    /// The storage does one of the requests in flight.
    fn apply(&mut self, at: usize) {
        let Flying { f, token, applied, .. } = &mut self.flying[at];
        let (Function::Read { domain, key } | Function::Write { domain, key, .. }) = f else {
            return;
        };
        let mark = self.marks.entry(domain.clone()).or_insert(*token);
        if token < mark {
            *applied = Some(Outcome::Fail("stale token".to_owned()));
            return;
        }
        *mark = *token;
        let place = (domain.clone(), key.clone());
        *applied = Some(match f {
            Function::Write { value, .. } => {
                self.values.insert(place, value.clone());
                Outcome::Ok(Reply::Done)
            }
            _ => Outcome::Ok(Reply::Value(self.values.get(&place).cloned())),
        });
    }

    fn step(&mut self, tokens: &[i64]) {
        if self.asked < OPS && self.stream.chance(400) {
            let client = self.stream.below(tokens.len() as u64) as u8 + 1;
            self.ask(client, tokens[usize::from(client) - 1]);
            return;
        }
        if self.flying.is_empty() {
            return;
        }
        let at = self.stream.below(self.flying.len() as u64) as usize;
        match &self.flying[at].applied {
            None if self.stream.chance(120) => {
                self.story.unknown(self.flying.remove(at).op);
            }
            None => self.apply(at),
            Some(_) => {
                let Flying { op, applied, .. } = self.flying.remove(at);
                let unknown = Outcome::Unknown("timed out".to_owned());
                let lost = self.stream.chance(200);
                self.story.answer(op, applied.filter(|_| !lost).unwrap_or(unknown));
            }
        }
    }
}

pub fn small_history(seed: Seed) -> History {
    let mut story = Story::new();
    let stream = seed.stream("searching");
    let tokens: Vec<i64> = (1..=3).map(|client| story.acquire(client, u64::from(client))).collect();
    let (flying, values, marks) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let mut teller = Teller { stream, story, flying, values, marks, asked: 0 };
    for _ in 0..40 {
        teller.step(&tokens);
    }
    teller.story.finish()
}

/// Damages the history in one place.
fn mutate(history: &mut History, stream: &mut Stream) {
    let at_storage = |event: &Event| match &event.kind {
        EventKind::Invoke { f, .. } => !matches!(f, Function::Lock { .. }),
        EventKind::Return { outcome, .. } => {
            !matches!(outcome, Outcome::Ok(Reply::Acquired { .. }))
        }
        _ => false,
    };
    let places: Vec<usize> =
        (0..history.events.len()).filter(|at| at_storage(&history.events[*at])).collect();
    if places.len() < 4 {
        return;
    }
    let at = *stream.pick(&places);
    let value = format!("v{}", stream.between(1, OPS as u64));
    match (stream.below(4), &mut history.events[at].kind) {
        (0..=1, EventKind::Return { outcome: Outcome::Ok(Reply::Value(told)), .. }) => {
            *told = Some(value).filter(|_| stream.chance(800));
        }
        (0..=1, EventKind::Return { outcome, .. }) => {
            *outcome = match stream.below(2) {
                0 => Outcome::Unknown("timed out".to_owned()),
                _ => Outcome::Fail("stale token".to_owned()),
            };
        }
        (0..=1, EventKind::Invoke { holding, .. }) => {
            *holding = Some(leasehold::history::HoldingId(stream.between(1, 3)));
        }
        // An invocation or an answer comes sooner or later.
        _ => {
            let to = *stream.pick(&places);
            let moved = history.events.remove(at);
            history.events.insert(to, moved);
        }
    }
    in_order(history);
    renumber(history);
}

/// No answer before its question: those are left out.
fn in_order(history: &mut History) {
    let mut invoked = Vec::new();
    history.events.retain(|event| match &event.kind {
        EventKind::Invoke { op, .. } => {
            invoked.push(*op);
            true
        }
        EventKind::Return { op, .. } => invoked.contains(op),
        _ => true,
    });
}

/// The search equals the trial of every permutation, down to the operation that it names; what was
/// not damaged has an order; and both verdicts are frequent.
#[test]
fn search_and_every_permutation_agree() {
    let checker = checker::by_name("linearizability").expect("a checker of the catalog");
    let (mut orders, mut without) = (0, 0);
    for seed in 0..500 {
        let mut history = small_history(Seed(seed));
        let mut stream = Seed(seed).stream("damage");
        for round in 0..5 {
            let finding = checker.check(&Index::new(&history));
            let (judged, unexplained) = naive_order::first_unexplained(&history);
            let what = format!("seed {seed}, after {round} mutations: {}", finding.verdict);
            assert_eq!(finding.judged, judged, "{what}");
            let found = finding.verdict.violation().map(|violation| violation.events.clone());
            let expected = unexplained.map(|(invoke, ok)| vec![invoke, ok]);
            assert_eq!(found, expected, "{what}");
            assert!(round > 0 || found.is_none(), "{what}");
            orders += u32::from(finding.verdict.is_pass());
            without += u32::from(found.is_some());
            mutate(&mut history, &mut stream);
        }
    }
    assert!(orders > 300 && without > 300, "{orders} orders, {without} histories without one");
}

/// Writes of one client each, all open at once, that nobody was told of, and a read of another.
fn open_writes(writes: u8, told: &str) -> History {
    let mut story = Story::new();
    let key = || ("k".to_owned(), String::new());
    for client in 1..=writes {
        let (key, domain) = key();
        let value = format!("v{client}");
        story.invoke(client, None, Function::Write { domain, key, value, based_on: None });
    }
    let (key, domain) = key();
    let read = story.invoke(200, None, Function::Read { domain, key });
    story.answer(read, Outcome::Ok(Reply::Value(Some(told.to_owned()))));
    story.finish()
}

/// Past its budget the search says that it does not know, whatever the truth; a budget never turns
/// one verdict into the other.
#[test]
fn past_the_budget_nothing_is_known() {
    for (told, truth) in [("v3", true), ("v9", false)] {
        let history = open_writes(6, told);
        let index = Index::new(&history);
        let calls = search::calls(&index);
        let whole = search::search(&calls, search::STEPS_MAX);
        assert_eq!(whole == Found::Order, truth, "{whole:?}");
        let mut known = 0;
        for steps in 0..3000 {
            match search::search(&calls, steps) {
                Found::Unknown(why) => {
                    assert!(why.contains("steps") && known == 0, "{steps}: {why}");
                }
                found => {
                    assert_eq!(found, whole, "{steps} steps");
                    known += 1;
                }
            }
        }
        assert!((1..3000).contains(&known), "{known} budgets were enough");
    }
}

/// More operations at once than the search can tell apart make the verdict unknown, not a pass.
#[test]
fn too_many_open_operations_are_unknown() {
    let checker = checker::by_name("linearizability").expect("a checker of the catalog");
    let verdict = |writes| checker.check(&Index::new(&open_writes(writes, "v1"))).verdict;
    assert!(verdict(8).is_pass(), "{}", verdict(8));
    let Verdict::Unknown(why) = verdict(70) else { panic!("{}", verdict(70)) };
    assert!(why.contains("64 operations are open"), "{why}");
}
