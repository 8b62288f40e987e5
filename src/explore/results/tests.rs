//! Shares explored and joined, against one exploration of the whole.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::{
    case::CaseOptions,
    explore::{Demands, ExploreOptions, Strategy, explore},
};

fn explored(guard: &str, seeds: Range<u64>, shard: &str) -> Results {
    let options = ExploreOptions {
        scenario: "fenced-lock".into(),
        options: CaseOptions { guard: guard.into(), ..CaseOptions::default() },
        strategy: Strategy::default(),
        seeds,
        shard: shard.parse().expect("a shard"),
        jobs: 2,
        fail_fast: false,
        change: None,
        demands: Demands::default(),
    };
    let mut failed = Vec::new();
    let summary = explore(&options, &AtomicBool::new(false), |summary| {
        failed.extend(summary.last_failed.clone());
    });
    Results::new(summary.expect("good options"), failed, &options.seeds, options.shard)
}

fn joined(parts: &[&Results]) -> Result<Results, ResultsError> {
    let parts = (1..).zip(parts).map(|(n, part)| (format!("part {n}"), (*part).clone()));
    Results::join(parts.collect()).map(|joined| joined.expect("there are some"))
}

/// Shares joined, in any order and through their text, give the very lines that one exploration of
/// all seeds gives: every sum, the class, the failed runs.
#[test]
fn shares_joined_are_the_whole() {
    let whole = explored("unfenced", 3..24, "1/1");
    assert!(!whole.failed().is_empty(), "an unfenced storage is caught");
    let mut shares = Vec::new();
    for shard in ["3/3", "1/3", "2/3"] {
        let share = explored("unfenced", 3..24, shard);
        let read = Results::decode(&share.encode()).expect("its own text");
        assert_eq!(read.encode(), share.encode());
        shares.push(read);
    }
    let joined_all = joined(&shares.iter().collect::<Vec<_>>()).expect("one exploration");
    assert_eq!(joined_all.encode(), whole.encode());
    assert_eq!(joined_all.first_failed(), whole.first_failed());
    assert_eq!(joined_all.seeds(), "3..24");
    let two = joined(&[&shares[0], &shares[2]]).expect("one exploration");
    assert_eq!(two.seeds(), "3..24 shard 2/3, 3..24 shard 3/3");
    let (low, high) = (explored("unfenced", 3..9, "1/1"), explored("unfenced", 9..24, "1/1"));
    assert_eq!(joined(&[&high, &low]).expect("one exploration").encode(), whole.encode());
}

/// What does not belong together is refused, with what is wrong and where.
#[test]
fn what_does_not_belong_together_is_refused() {
    let (a, b) = (explored("monotonic", 0..4, "1/2"), explored("monotonic", 0..4, "2/2"));
    let other = explored("unfenced", 0..4, "2/2");
    let says = |result: Result<Results, ResultsError>| {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(joined(&[&a, &b]).is_ok());
    assert_eq!(says(joined(&[&a, &a])), "part 2: seed 0 is in part 1 too: give each share once");
    assert!(says(joined(&[&a, &other])).starts_with("part 2: guard differs from that of part 1"));
    let mut old = b.clone();
    old.total.crate_version = "0.0.1".into();
    assert!(says(joined(&[&a, &old])).starts_with("part 2: results of crate version \"0.0.1\""));
}

/// A text that is cut off, foreign, doubled, or of another version is told apart.
#[test]
fn broken_texts_are_told_apart() {
    let text = explored("unfenced", 0..6, "1/1").encode();
    let (failed, summary) = text.trim_end().rsplit_once('\n').expect("a failure and the sum");
    assert_eq!(Results::decode(failed).err(), Some(ResultsError::NoSummary));
    assert_eq!(Results::decode("").err(), Some(ResultsError::NoSummary));
    let newer = summary.replace("\"leasehold_results\":1", "\"leasehold_results\":7");
    let expected = ResultsError::Version { line: 1, found: 7 };
    assert_eq!(Results::decode(&newer).err(), Some(expected));
    for foreign in ["{\"leasehold_history\":1}", "hello", "[1]", &text.repeat(2)] {
        let error = Results::decode(foreign).err();
        assert!(matches!(error, Some(ResultsError::Foreign { .. })), "{foreign}: {error:?}");
    }
}
