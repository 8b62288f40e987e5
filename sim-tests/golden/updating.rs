//! Random stories of clients that count in turns, mostly right, then damaged: the checker of lost
//! updates must say what its naive copy says.

use std::collections::BTreeMap;

use leasehold::{
    history::{EventKind, Function, History, OpId, Outcome, Reply, RowResult},
    seed::{Seed, Stream},
};

use super::{
    chaos::{judged, renumber},
    naive_update,
    story::Story,
};

/// A write that was computed, and has not landed.
struct Flying {
    op: u64,
    token: i64,
    value: String,
}

struct Teller {
    stream: Stream,
    story: Story,
    /// What the storage has.
    value: Option<String>,
    /// The greatest token that it has let in.
    mark: i64,
    flying: Vec<Flying>,
    written: u64,
}

impl Teller {
    /// A turn: a read under the lock and the write that goes on from it, now or later.
    fn turn(&mut self, client: u8, holding: u64) {
        let token = self.story.acquire(client, holding);
        self.mark = token;
        for _ in 0..self.stream.between(1, 3) {
            let value = self.value.clone();
            let told = value.as_deref().unwrap_or_default();
            let read = self.story.read(client, holding, "k", token, told);
            let known = value.map_or(0, |value| count(&value));
            self.written += 1;
            let value = format!("{}:{}", known + 1, self.written);
            let op = self.story.writing(client, holding, ("k", &value), Some(read));
            self.flying.push(Flying { op, token, value });
            if self.stream.chance(200) {
                // It is not answered, so the client gives the holding up (D7).
                break;
            }
            self.land(self.flying.len() - 1);
        }
        self.story.expire(client);
    }

    fn land(&mut self, at: usize) {
        let Flying { op, token, value } = self.flying.remove(at);
        let admitted = token >= self.mark;
        let result = if admitted { RowResult::Admitted } else { RowResult::Refused };
        self.story.apply(op, Some(token), result);
        if admitted {
            self.value = Some(value);
        }
        if self.stream.chance(500) {
            self.story.answered();
        }
        match (admitted, self.stream.chance(800)) {
            (true, true) => self.story.ok(op),
            (false, true) => self.story.fail(op),
            (_, false) => self.story.unknown(op),
        };
    }
}

fn count(value: &str) -> u64 {
    value.split(':').next().and_then(|number| number.parse().ok()).expect("a counted value")
}

pub fn counting_history(seed: Seed) -> History {
    let (stream, story) = (seed.stream("counting"), Story::new());
    let mut teller = Teller { stream, story, value: None, mark: 0, flying: Vec::new(), written: 0 };
    for holding in 1..=10 {
        let client = teller.stream.below(3) as u8 + 1;
        teller.turn(client, holding);
        if !teller.flying.is_empty() && teller.stream.chance(400) {
            let at = teller.stream.below(teller.flying.len() as u64) as usize;
            teller.land(at);
        }
    }
    let Teller { mut story, value, .. } = teller;
    let (domain, key) = (String::new(), "k".to_owned());
    let last = story.invoke(1, None, Function::FinalRead { domain, key });
    story.apply_read(last, None, RowResult::Admitted, value.as_deref(), false);
    story.answer(last, Outcome::Ok(Reply::Value(value)));
    story.finish()
}

fn swap_neighbours(history: &mut History, stream: &mut Stream) {
    let at = stream.below(history.events.len() as u64 - 1) as usize;
    if history.events[at].node != history.events[at + 1].node {
        history.events.swap(at, at + 1);
        renumber(history);
    }
}

/// Damages the history in one place.
fn mutate(history: &mut History, stream: &mut Stream) {
    let choice = stream.below(9);
    if choice == 8 {
        return swap_neighbours(history, stream);
    }
    let fits = |kind: &EventKind| match kind {
        EventKind::Apply(_) => choice <= 4,
        EventKind::Invoke { f: Function::Write { .. }, .. } => choice == 5,
        EventKind::Return { outcome: Outcome::Ok(Reply::Value(_)), .. } => choice == 6,
        EventKind::Return { outcome, .. } => {
            choice == 7 && !matches!(outcome, Outcome::Ok(Reply::Acquired { .. }))
        }
        _ => false,
    };
    let places: Vec<usize> =
        (0..history.events.len()).filter(|at| fits(&history.events[*at].kind)).collect();
    if places.len() < 2 {
        return;
    }
    let (at, other) = (*stream.pick(&places), *stream.pick(&places));
    let ops = 1 + stream.below(40);
    let rows = places.iter().filter_map(|at| match &history.events[*at].kind {
        EventKind::Apply(row) => Some((row.index, row.value.clone())),
        _ => None,
    });
    let rows: Vec<(u64, Option<String>)> = rows.collect();
    let swapped = match (&history.events[at].kind, &history.events[other].kind) {
        (EventKind::Apply(one), EventKind::Apply(other)) => Some((one.index, other.index)),
        _ => None,
    };
    let boots = stream.chance(300);
    for (place, event) in history.events.iter_mut().enumerate() {
        match &mut event.kind {
            // Two rows change places in apply order.
            EventKind::Apply(row) if choice == 0 => {
                let Some((one, other)) = swapped else { continue };
                row.index = match row.index {
                    index if index == one => other,
                    index if index == other => one,
                    index => index,
                };
            }
            // The storage restarts.
            EventKind::Apply(row) if choice == 1 => row.boot += u32::from(place >= at),
            EventKind::Apply(row) if place == at => match choice {
                2 => row.effect = boots,
                3 => row.result = *stream.pick(&[RowResult::Admitted, RowResult::Refused]),
                _ => row.value = stream.pick(&rows).1.clone(),
            },
            EventKind::Invoke { f: Function::Write { based_on, .. }, .. } if place == at => {
                *based_on = Some(OpId(ops)).filter(|_| !boots);
            }
            EventKind::Return { outcome: Outcome::Ok(Reply::Value(value)), .. }
                if place == at && choice == 6 =>
            {
                *value = Some(format!("{}:0", ops % 8)).filter(|_| !boots);
            }
            EventKind::Return { outcome, .. } if place == at => {
                *outcome = match boots {
                    true => Outcome::Fail("stale".to_owned()),
                    false => Outcome::Unknown("timed out".to_owned()),
                };
            }
            _ => {}
        }
    }
    renumber(history);
}

/// The checker of lost updates equals its naive copy; what was not damaged passes; and both rules
/// are broken often enough.
#[test]
fn lost_updates_and_naive_copy_agree() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..500 {
        let mut history = counting_history(Seed(seed));
        let mut stream = Seed(seed).stream("damage");
        for round in 0..6 {
            let found = judged("lost-update", &history);
            let (any, rule) = naive_update::lost_update(&history);
            let what = format!("seed {seed}, after {round} mutations");
            assert_eq!(found.flatten(), rule, "{what}");
            assert_eq!(found.is_some(), any, "{what}");
            assert!(round > 0 || rule.is_none(), "{what}: {rule:?}");
            *seen.entry(rule.unwrap_or("pass")).or_default() += 1;
            mutate(&mut history, &mut stream);
        }
    }
    let often = seen.values().filter(|count| **count >= 20).count();
    assert_eq!((seen.len(), often), (3, 3), "{seen:?}");
}
