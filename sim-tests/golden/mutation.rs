//! Random histories, then random damage to them: the fast classes of D4 and the line of D5 must say
//! what the naive loops say, whatever the history.

use leasehold::{
    checker::{self, Class, Index, Verdict, class},
    history::{ApplyRow, EventKind, History, Outcome, Reply, RowResult},
    seed::{Seed, Stream},
};

use super::{naive, story::Story};

/// How the storage of a random story decides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fence {
    None,
    Monotonic,
    Dice,
}

struct Teller {
    stream: Stream,
    fence: Fence,
    story: Story,
    mark: i64,
    /// Per client its holding and token.
    held: [Option<(u64, i64)>; 3],
    /// Requests in flight with their token, and of a write its value.
    flying: Vec<(u64, i64, Option<String>)>,
    /// The value of the key.
    value: Option<String>,
    holdings: u64,
    /// Nothing is wrong but the timing: the lock is granted to one at a time, the storage does not
    /// restart, and every request carries its token.
    tame: bool,
}

impl Teller {
    fn step(&mut self) {
        let client = self.stream.below(3) as u8 + 1;
        let at = usize::from(client) - 1;
        match (self.stream.below(10), self.held[at]) {
            (0..=2, None) if !self.tame || self.story.is_free() => {
                self.holdings += 1;
                let token = self.story.acquire(client, self.holdings);
                self.held[at] = Some((self.holdings, token));
            }
            (0, Some(_)) => self.story.expire(client),
            (1, Some((holding, _))) => {
                self.story.release(client, holding);
                self.held[at] = None;
            }
            (2, Some(_)) => self.held[at] = None,
            (3..=5, Some((holding, token))) => {
                let op = self.story.reading(client, holding, "k");
                self.flying.push((op, token, None));
                self.land();
            }
            (6..=8, Some((holding, token))) => {
                let value = self.stream.below(1_000_000).to_string();
                let op = self.story.writing(client, holding, ("k", &value), None);
                self.flying.push((op, token, Some(value)));
            }
            (9, _) if !self.tame && self.stream.chance(50) => {
                self.story.boot += 1;
                self.mark = 0;
            }
            _ => self.land(),
        }
    }

    /// One of the requests in flight arrives.
    fn land(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let at = self.stream.below(self.flying.len() as u64) as usize;
        // What stays in flight lands again, as a duplicate; only the last landing is answered.
        let again = self.stream.chance(100);
        let flying = if again { self.flying[at].clone() } else { self.flying.remove(at) };
        let (op, token, value) = flying;
        let fresh = match self.fence {
            Fence::None => true,
            Fence::Monotonic => token >= self.mark,
            Fence::Dice => self.stream.chance(600),
        };
        let result = if fresh { RowResult::Admitted } else { RowResult::Refused };
        self.mark = self.mark.max(if fresh { token } else { 0 });
        let token = Some(token).filter(|_| self.tame || self.stream.chance(950));
        let effect = result == RowResult::Admitted && (self.tame || self.stream.chance(700));
        if value.is_some() && result == RowResult::Admitted {
            self.value = value;
        }
        self.story.apply_read(op, token, result, self.value.as_deref(), effect);
        if self.stream.chance(600) {
            self.story.answered();
        }
        match (self.stream.below(4), result) {
            _ if again => {}
            (0, _) => {}
            (1, _) => drop(self.story.unknown(op)),
            (_, RowResult::Admitted) => drop(self.story.ok(op)),
            _ => drop(self.story.fail(op)),
        }
    }
}

fn random_history(seed: Seed) -> History {
    let fence = *seed.stream("fence").pick(&[Fence::None, Fence::Monotonic, Fence::Dice]);
    tell(seed, fence, false)
}

fn tell(seed: Seed, fence: Fence, tame: bool) -> History {
    let stream = seed.stream("story");
    let story = Story::new();
    let (held, flying) = ([None; 3], Vec::new());
    let mut teller =
        Teller { stream, fence, story, mark: 0, held, flying, value: None, holdings: 0, tame };
    for _ in 0..60 {
        teller.step();
    }
    teller.story.finish()
}

fn rows(history: &History) -> Vec<usize> {
    let rows = history.events.iter().enumerate();
    rows.filter(|(_, event)| matches!(event.kind, EventKind::Apply(_))).map(|(at, _)| at).collect()
}

fn row(history: &mut History, at: usize) -> &mut ApplyRow {
    match &mut history.events[at].kind {
        EventKind::Apply(row) => row,
        other => panic!("{other:?} is no row"),
    }
}

/// Damages the history in one place.
fn mutate(history: &mut History, stream: &mut Stream) {
    let rows = rows(history);
    if rows.len() < 2 {
        return;
    }
    let at = *stream.pick(&rows);
    match stream.below(8) {
        0 => {
            let results = [RowResult::Admitted, RowResult::Refused, RowResult::Replayed];
            row(history, at).result = *stream.pick(&results);
        }
        1 => row(history, at).effect = stream.chance(500),
        2 => row(history, at).token = None,
        3 => {
            // A read answers some write's value.
            let value = row(history, *stream.pick(&rows)).value.clone();
            row(history, at).value = value;
        }
        4 => {
            // Two neighbours in apply order change places.
            let next = rows[(rows.iter().position(|row| *row == at).unwrap_or(0) + 1) % rows.len()];
            let (one, other) = (row(history, at).index, row(history, next).index);
            if row(history, at).boot == row(history, next).boot {
                row(history, at).index = other;
                row(history, next).index = one;
            }
        }
        5 => {
            // Two neighbours in the order of events change places; those of one client stay in
            // order, because nothing could record an answer before its question.
            let at = stream.below(history.events.len() as u64 - 1) as usize;
            if history.events[at].node != history.events[at + 1].node {
                history.events.swap(at, at + 1);
            }
        }
        6 => {
            // A store brings back what it committed once: the same incarnation.
            let commits = (0..history.events.len())
                .filter(|at| matches!(history.events[*at].kind, EventKind::Commit(_)));
            let commits: Vec<usize> = commits.collect();
            let (one, other) = (*stream.pick(&commits), *stream.pick(&commits));
            let again = history.events[one.min(other)].clone();
            history.events.insert(one.max(other), again);
        }
        _ => {
            // A client is told of some write's value.
            let value = row(history, at).value.clone();
            for event in &mut history.events {
                if let EventKind::Return { outcome: outcome @ Outcome::Unknown(_), .. } =
                    &mut event.kind
                {
                    *outcome = Outcome::Ok(Reply::Value(value));
                    break;
                }
            }
        }
    }
    for (seq, event) in (0..).zip(&mut history.events) {
        event.seq = seq;
    }
}

fn fast(history: &History) -> (Vec<(u64, Class, bool)>, Vec<u64>) {
    let index = Index::new(history);
    let result = class::classify(&index);
    let writes = result.writes.iter();
    let writes = writes.map(|w| (index.rows[w.row].seq, w.class, w.by_read_only)).collect();
    (writes, result.falls.iter().map(|row| index.rows[*row].seq).collect())
}

/// The fast classes equal the text's own loops on random histories, damaged or not, and every class
/// occurs among them, so that the equality says something about each.
#[test]
fn fast_and_naive_agree() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let mut history = random_history(Seed(seed));
        let mut stream = Seed(seed).stream("mutation");
        for round in 0..6 {
            let (expected, found) = (naive::classify(&history), fast(&history));
            assert_eq!(found, expected, "seed {seed}, after {round} mutations");
            seen.extend(found.0.iter().map(|(_, class, _)| *class));
            mutate(&mut history, &mut stream);
        }
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

fn judged(history: &History) -> Verdict {
    let checker = checker::by_name("no-stale-write").expect("a checker of the catalog");
    checker.check(&Index::new(history)).verdict
}

/// Moves a row in apply order to just before or just after a later row.
fn move_to(history: &History, from: u64, to: u64, after: bool) -> History {
    let mut history = history.clone();
    let target = if after { to } else { to - 1 };
    for event in &mut history.events {
        let EventKind::Apply(row) = &mut event.kind else { continue };
        if row.index == from {
            row.index = target;
        } else if from < row.index && row.index <= target {
            row.index -= 1;
        }
    }
    history
}

/// A monotonic fence is never accused. A write moved to just before the first newer admitted
/// operation is still no violation, and one step further it is: the rule flips exactly there.
#[test]
fn verdict_flips_at_the_first_newer_operation() {
    let mut flips = 0;
    for seed in 0..200 {
        let history = tell(Seed(seed), Fence::Monotonic, true);
        let index = Index::new(&history);
        let nothing = matches!(judged(&history), Verdict::NotRun(_));
        assert!(nothing || judged(&history).is_pass(), "seed {seed}: {}", judged(&history));
        for write in index.rows.iter().filter(|row| row.is_write() && row.admitted()) {
            let newer = |row: &&leasehold::checker::index::Row<'_>| {
                row.announces() && row.rank > write.rank && row.row.index > write.row.index
            };
            let Some(newer) = index.rows.iter().find(newer) else { continue };
            let (from, to) = (write.row.index, newer.row.index);
            assert!(judged(&move_to(&history, from, to, false)).is_pass(), "seed {seed}");
            let flipped = judged(&move_to(&history, from, to, true));
            let violation = flipped.violation().unwrap_or_else(|| panic!("seed {seed}: {flipped}"));
            assert_eq!(violation.rule, "stale-accepted", "seed {seed}");
            assert!(violation.events.contains(&write.seq) && violation.events.contains(&newer.seq));
            flips += 1;
        }
    }
    assert!(flips > 100, "only {flips} writes had a newer operation after them");
}
