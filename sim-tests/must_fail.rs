//! Schemes that do not hold: the harness must catch them, by the checker named for it.

use leasehold::{
    explore::{Failure, Summary},
    testing::Check,
};

const SEEDS: std::ops::Range<u64> = 0..100;

/// The first seed that it was caught in; said aloud, because it is a figure that people want.
#[allow(clippy::print_stdout)]
fn first_caught(summary: &Summary, checker: &str) -> u64 {
    let (runs, first) = summary.caught.get(checker).copied().unwrap_or_else(|| {
        panic!("{checker} caught nothing in {} runs: {:?}", summary.runs, summary.caught)
    });
    println!("{checker}: caught in {runs} of {} runs, first seed {first}", summary.runs);
    first
}

/// Without a fence a late write is accepted.
#[test]
fn unfenced_is_caught_as_stale_accepted() {
    let summary = Check::new().guard("unfenced").seeds(SEEDS).run().unwrap();
    first_caught(&summary, "no-stale-write");
    assert!(summary.classes.stale_accepted > 0);
    assert_eq!(summary.classes.fresh_refused, 0);
    assert_eq!(summary.harness_errors, 0);
}

/// contrib/lock as it is: equality on lease ids locks the rightful owner out, already in seed 0.
#[test]
fn equality_on_lease_ids_is_caught_as_fresh_refused() {
    let summary = Check::new().guard("equal").token("lease").seeds(SEEDS).run().unwrap();
    assert_eq!(first_caught(&summary, "no-stale-write"), 0);
    assert!(summary.classes.fresh_refused > 0);
    let Some(Failure::Judged(judged)) = summary.first_failure() else { panic!("no failure") };
    let worst = judged.worst().expect("a failure has a finding");
    let violation = worst.verdict.violation().expect("the worst finding is a violation");
    assert_eq!(violation.rule, "fresh-refused", "{violation}");
}

/// Order on lease ids: one lease keeps its id over several holdings, so tokens do not rise.
#[test]
fn order_on_lease_ids_is_caught() {
    let summary = Check::new().token("lease").seeds(SEEDS).run().unwrap();
    first_caught(&summary, "token-order");
    assert_eq!(summary.harness_errors, 0);
}

/// Without a fence, but without faults too: nothing is caught, so it is the faults that show it.
#[test]
fn unfenced_is_not_caught_without_faults() {
    let summary = Check::new().guard("unfenced").scenario("calm").seeds(SEEDS).run().unwrap();
    assert_eq!(summary.violations, 0, "{:?}", summary.caught);
    assert!(summary.classes.fresh_accepted > 0);
}
