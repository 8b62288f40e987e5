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
const SEEDS: u64 = 150;
/// Seeds in peace.
const CALM: u64 = 5;
const JOBS: usize = 2;

fn rows(needs: Needs) -> impl Iterator<Item = &'static KnownBug> {
    CATALOG.iter().filter(move |bug| bug.needs == needs)
}

#[track_caller]
fn is_caught(bug: &'static KnownBug) {
    let hunt = hunt(bug, (Strategy::default(), bug.profile), 0..SEEDS, JOBS, 1)
        .expect("the row names a profile");
    assert_eq!(hunt.broken, 0, "{}: runs broke", bug.name);
    assert!(
        !hunt.caught.is_empty(),
        "{} is not caught by {} in {} runs of {}; its code ran {} times; others: {:?}",
        bug.name,
        bug.caught_by,
        hunt.runs,
        bug.profile,
        hunt.hits,
        hunt.others
    );
}

/// What needs nothing does its harm in the first few seeds, without a fault.
#[test]
fn harm_in_peace_is_caught() {
    for bug in rows(Needs::Nothing) {
        assert_eq!(bug.profile, "calm", "{}", bug.name);
        is_caught(bug);
    }
}

#[test]
fn harm_of_latency_is_caught() {
    rows(Needs::Latency).for_each(is_caught);
}

#[test]
fn harm_under_faults_is_caught() {
    rows(Needs::Fault).for_each(is_caught);
}

/// A catch under faults says something of the faults only if there is none without them.
#[test]
fn what_needs_a_fault_is_not_caught_in_peace() {
    for bug in rows(Needs::Fault) {
        let hunt =
            hunt(bug, (Strategy::default(), "calm"), 0..CALM, JOBS, u64::MAX).expect("a profile");
        assert_eq!((hunt.runs, hunt.broken), (CALM, 0), "{}", bug.name);
        assert!(hunt.caught.is_empty(), "{} needs no fault", bug.name);
        assert!(hunt.hits > 0, "{}: its code did not run", bug.name);
    }
}
