//! The catalogue of known bugs: each is caught by the checker named for it, and one that needs a
//! fault is not caught in peace, although its code runs there.
//!
//! In the narrowest profile only, and up to the first catch: `leasehold bugs`, which CI runs, hunts
//! in the profile with every family too and says how many seeds it takes.

use leasehold::{
    bug::{CATALOG, KnownBug, Needs},
    explore::Strategy,
    hunt::hunt,
};

/// Seeds in which a bug must be caught at least once.
const SEEDS: u64 = 400;
/// Seeds in peace.
const CALM: u64 = 5;
const JOBS: usize = 2;

fn rows(needs: Needs) -> impl Iterator<Item = &'static KnownBug> {
    CATALOG.iter().filter(move |bug| bug.needs == needs)
}

/// Why the bugs with this need are not caught as they should be: nothing, if they are.
fn missed(needs: Needs) -> Vec<String> {
    let mut missed = Vec::new();
    for bug in rows(needs) {
        let hunt = hunt(bug, (Strategy::default(), bug.profile), 0..SEEDS, JOBS, 1);
        let hunt = hunt.expect("the row names a profile");
        if hunt.caught.is_empty() || hunt.broken > 0 {
            let (name, by, profile) = (bug.name, bug.caught_by, bug.profile);
            missed.push(format!("{name} by {by} in {profile}: {hunt:?}"));
        }
    }
    missed
}

/// What needs nothing does its harm in the first few seeds, without a fault.
#[test]
fn harm_in_peace_is_caught() {
    assert!(rows(Needs::Nothing).all(|bug| bug.profile == "calm"));
    assert_eq!(missed(Needs::Nothing), Vec::<String>::new());
}

#[test]
fn harm_of_latency_is_caught() {
    assert_eq!(missed(Needs::Latency), Vec::<String>::new());
}

#[test]
fn harm_under_faults_is_caught() {
    assert_eq!(missed(Needs::Fault), Vec::<String>::new());
}

/// A catch under faults says something of the faults only if there is none without them.
#[test]
fn what_needs_a_fault_is_not_caught_in_peace() {
    let mut wrong = Vec::new();
    for bug in rows(Needs::Fault) {
        let hunt = hunt(bug, (Strategy::default(), "calm"), 0..CALM, JOBS, u64::MAX);
        let hunt = hunt.expect("a profile");
        if !hunt.caught.is_empty() || hunt.hits == 0 || hunt.broken > 0 || hunt.runs != CALM {
            let (name, hits) = (bug.name, hunt.hits);
            wrong.push(format!("{name}: caught {:?}, ran {hits} times", hunt.caught));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
