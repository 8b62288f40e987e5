//! Schemes that do not hold: the harness must catch them, by the checker named for it.

use leasehold::{
    checker::{self, Index, Verdict},
    explore::{Failure, Summary},
    history::{ApplyRow, Event, EventKind, History, RowResult},
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
    assert_eq!(summary.caught["token-order"].0, summary.runs);
    assert_eq!(summary.harness_errors, 0);
}

/// The boundary of D4 in a real run: the one late write that was let in without a fence is a
/// violation where it stands, after the newer tenure's first operation; the same write just before
/// that operation is ordered before the tenure, and passes.
#[test]
fn a_late_write_is_judged_by_the_first_newer_operation() {
    let summary = Check::new().guard("unfenced").seeds(SEEDS).run().unwrap();
    let checker = checker::by_name("no-stale-write").expect("a checker of the catalog");
    let one_late_write = summary.failures.iter().find_map(|failure| match failure {
        Failure::Judged(judged) if judged.judgement.classes.stale_accepted == 1 => {
            // A late read beside it would still be one after the write was moved.
            (late_operations(&judged.run.history) == 1).then_some(judged)
        }
        _ => None,
    });
    let mut history = one_late_write.expect("a run with one stale write").run.history.clone();
    let verdict = checker.check(&Index::new(&history)).verdict;
    let violation = verdict.violation().expect("the write came after").clone();
    let rows: Vec<u64> = violation
        .events
        .iter()
        .copied()
        .filter(|seq| row_of(&history.events[*seq as usize]).is_some())
        .collect();
    let [newer, late] = rows.as_slice() else { panic!("{violation:?}") };
    // The first operation of any newer tenure: the evidence names the one of the highest rank.
    let rank = |token: Option<i64>| token.unwrap_or_default();
    let late_row = row_of(&history.events[*late as usize]).expect("a row");
    let first = history.events[..=*newer as usize]
        .iter()
        .find(|event| row_of(event).is_some_and(|row| rank(row.token) > rank(late_row.token)));
    let first = first.expect("the newer operation is one").seq as usize;
    let event = history.events.remove(*late as usize);
    history.events.insert(first, event);
    let mut applied = 0;
    for (seq, event) in (0..).zip(&mut history.events) {
        event.seq = seq;
        if let EventKind::Apply(row) = &mut event.kind {
            applied += 1;
            row.index = applied;
        }
    }
    let moved = Index::new(&history);
    assert_eq!(checker.check(&moved).verdict, Verdict::Pass);
    assert_eq!(moved.classification().classes.stale_accepted, 0);
}

fn row_of(event: &Event) -> Option<ApplyRow> {
    match &event.kind {
        EventKind::Apply(row) => Some(row.clone()),
        _ => None,
    }
}

/// How many admitted operations came after one with a greater token.
fn late_operations(history: &History) -> usize {
    let mut newest = 0;
    let rows = history.events.iter().filter_map(row_of);
    let admitted = rows.filter(|row| row.result == RowResult::Admitted);
    let tokens = admitted.filter_map(|row| row.token);
    let late = |token: &i64| {
        let late = *token < newest;
        newest = newest.max(*token);
        late
    };
    tokens.filter(late).count()
}

/// Without a fence, but without faults too: nothing is caught, so it is the faults that show it.
#[test]
fn unfenced_is_not_caught_without_faults() {
    let summary = Check::new().guard("unfenced").scenario("calm").seeds(SEEDS).run().unwrap();
    assert_eq!(summary.failures_total(), 0, "{:?}", summary.caught);
    assert!(summary.classes.fresh_accepted > 0);
}
