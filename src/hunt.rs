//! Hunts a known bug: how many seeds it takes until the checker that must catch it does.
//!
//! A hunt runs a row of seeds and notes which ones catch the bug. The number of seeds to the first
//! catch is then known from every one of them as a start, so one row gives a median and a 95th
//! percentile. A start behind the last catch has an end that nobody saw: it counts as the whole
//! rest of the row, and the figure is a lower bound if such starts reach into it.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{
    bug::KnownBug,
    case::{Case, CaseOptions},
    explore::{Strategy, replay_token, run_and_judge},
    scenario::{self, ChoiceError, Scenario},
    seed::Seed,
};

/// What one row of seeds gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunt {
    /// Seeds that were run.
    pub runs: u64,
    /// The places in the row whose run its checker called a violation, rising.
    pub caught: Vec<u64>,
    /// Runs that any other checker called a violation, by checker.
    pub others: BTreeMap<&'static str, u64>,
    /// Runs that broke.
    pub broken: u64,
    /// How often the wrong code ran.
    pub hits: u64,
    /// The first catch, to be replayed.
    pub first: Option<(Case, String)>,
}

impl Hunt {
    /// Seeds until the first catch, the catching one included, from each start.
    fn distances(&self) -> Vec<u64> {
        let mut next = self.caught.iter().copied().peekable();
        (0..self.runs)
            .map(|start| {
                while next.peek().is_some_and(|caught| *caught < start) {
                    next.next();
                }
                next.peek().map_or(self.runs, |caught| caught - start + 1)
            })
            .collect()
    }

    /// That of these thousandths of the starts need no more seeds than this; none if no seed
    /// caught it.
    pub fn seeds_to_catch(&self, permille: usize) -> Option<u64> {
        if self.caught.is_empty() {
            return None;
        }
        let mut distances = self.distances();
        distances.sort_unstable();
        let last = distances.len() - 1;
        distances.get((distances.len() * permille / 1000).min(last)).copied()
    }
}

/// Hunts a bug over a row of seeds, with a strategy and in a profile of faults; ends early after
/// `enough` catches.
///
/// # Errors
/// If there is no such profile.
pub fn hunt(
    bug: &'static KnownBug,
    (strategy, profile): (Strategy, &str),
    seeds: Range<u64>,
    jobs: usize,
    enough: u64,
) -> Result<Hunt, ChoiceError> {
    let scenario = scenario::find(bug.scenario())?;
    let options = bug.options(profile);
    let count = seeds.end.saturating_sub(seeds.start);
    let (next, catches) = (AtomicU64::new(0), AtomicU64::new(0));
    let results = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= count || catches.load(Ordering::Relaxed) >= enough {
                        return;
                    }
                    let seed = Seed(seeds.start + place);
                    let one = Shot::fire(bug, strategy, scenario, seed, options.clone());
                    if one.caught {
                        catches.fetch_add(1, Ordering::Relaxed);
                    }
                    let mut results = results.lock().unwrap_or_else(|lost| lost.into_inner());
                    results.insert(place, one);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(|lost| lost.into_inner());
    Ok(sum(results, enough))
}

/// Adds up in the order of the row, and only as far as one job alone would have come.
fn sum(results: BTreeMap<u64, Shot>, enough: u64) -> Hunt {
    let mut hunt = Hunt::default();
    for (place, shot) in results {
        if hunt.caught.len() as u64 >= enough {
            break;
        }
        hunt.runs += 1;
        hunt.hits += shot.hits;
        hunt.broken += u64::from(shot.broken);
        for other in shot.others {
            *hunt.others.entry(other).or_default() += 1;
        }
        if shot.caught {
            hunt.caught.push(place);
            hunt.first = hunt.first.or(shot.replay);
        }
    }
    hunt
}

/// One run with the bug built in.
struct Shot {
    caught: bool,
    others: Vec<&'static str>,
    broken: bool,
    hits: u64,
    replay: Option<(Case, String)>,
}

impl Shot {
    fn fire(
        bug: &'static KnownBug,
        strategy: Strategy,
        scenario: &Scenario,
        seed: Seed,
        options: CaseOptions,
    ) -> Shot {
        let case = strategy.case(scenario, seed, options, Some(&bug.change()));
        let (change, hits) = bug.counted_change();
        let outcome = run_and_judge(&case, Some(&change));
        let hits = hits();
        let Ok(judged) = outcome else {
            return Shot { caught: false, others: Vec::new(), broken: true, hits, replay: None };
        };
        let violated: Vec<_> = judged.violated().collect();
        let caught = violated.contains(&bug.caught_by);
        let others = violated.into_iter().filter(|checker| *checker != bug.caught_by).collect();
        let replay = caught.then(|| (case, replay_token(&judged)));
        Shot { caught, others, broken: false, hits, replay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bug, case::CaseOptions, judge::RunClass};

    /// The parts that bugs are built into hold without them, under every family of faults: else a
    /// catch would prove nothing.
    #[test]
    fn the_right_parts_pass() {
        for (part, change) in bug::right_parts() {
            for seed in (0..60).map(Seed) {
                let case = scenario::CATALOG[0].case(seed, CaseOptions::default());
                let judged = run_and_judge(&case, Some(&change)).expect("a run");
                let (class, why) = (judged.class(), judged.worst());
                assert_eq!(class, RunClass::Pass, "{part}, seed {seed}: {why:?}");
            }
        }
    }

    /// Each bug names a scenario and a profile that there are.
    #[test]
    fn rows_can_be_hunted() {
        for row in bug::CATALOG {
            assert!(scenario::find(row.scenario()).is_ok(), "{row:?}");
            assert!(scenario::find_profile(row.profile).is_ok(), "{row:?}");
        }
    }

    /// Caught at places 3 and 9 of 10: from each start the way to the next catch.
    #[test]
    fn distances_from_every_start() {
        let hunt = Hunt { runs: 10, caught: vec![3, 9], ..Hunt::default() };
        assert_eq!(hunt.distances(), [4, 3, 2, 1, 6, 5, 4, 3, 2, 1]);
        assert_eq!(hunt.seeds_to_catch(500), Some(3));
        assert_eq!(hunt.seeds_to_catch(950), Some(6));
        let open = Hunt { runs: 4, caught: vec![0], ..Hunt::default() };
        assert_eq!(open.distances(), [1, 4, 4, 4]);
        assert_eq!(Hunt { runs: 4, ..Hunt::default() }.seeds_to_catch(500), None);
    }
}
