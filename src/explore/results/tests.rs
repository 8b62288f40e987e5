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

/// Shares that nobody gave are named, and without them there is no pass; what is covered by shares
/// of another split is not missing. What ended early is no pass either.
#[test]
fn what_is_missing_is_named() {
    let one = explored("monotonic", 0..4, "1/2");
    assert_eq!((one.total.class, one.class()), (RunClass::Pass, RunClass::Unknown));
    assert_eq!(joined(&[&one]).expect("one").missing(), ["seeds 0..4 shard 2/2"]);
    let (low, high) = (explored("monotonic", 0..2, "2/2"), explored("monotonic", 2..4, "2/2"));
    let all = joined(&[&one, &low, &high]).expect("one exploration");
    let ranges = ["seeds 0..2 shard 1/2", "seeds 2..4 shard 1/2"];
    assert!(all.missing().iter().all(|missing| !ranges.contains(&missing.as_str())));
    assert_eq!((all.missing(), all.class()), (Vec::new(), RunClass::Pass));

    let mut early = one.total.clone();
    (early.spans[0].runs, early.sum.runs) = (1, 1);
    let early = Results::new(early.sum, Vec::new(), &(0..4), "1/2".parse().expect("a shard"));
    assert_eq!(early.total.class, RunClass::Unknown);
    let said = early.missing();
    assert!(said[0].starts_with("seeds 0..4 shard 1/2 (the first 1 of 2): it"), "{said:?}");
    let other = explored("monotonic", 0..4, "2/2");
    assert_eq!(joined(&[&early, &other]).expect("one").class(), RunClass::Unknown);
    let bad = explored("unfenced", 0..6, "1/2");
    assert_eq!(bad.class(), RunClass::Violation, "it stays the worst");
    assert_eq!(missing(&of_many(40))[0].split(' ').next_back(), Some("more"));
}

fn of_many(count: u64) -> Vec<Span> {
    let shard = format!("1/{count}").parse().expect("a shard");
    vec![Span { start: 0, end: 100, shard, runs: 3 }]
}

/// Numbers that an exploration cannot have printed are refused, with their field: none of them
/// overflows, and none hides a failure.
#[test]
fn what_contradicts_itself_is_refused() {
    let text = explored("unfenced", 0..6, "1/1").encode();
    assert!(Results::decode(&text).is_ok());
    let changes: [(&str, &str, &str); 14] = [
        (
            "\"simulated\":",
            "\"simulated\":{\"secs\":18446744073709551615,\"nanos\":0},\"was\":",
            "sum.simulated.secs\": 184467",
        ),
        ("\"runs\":6,\"simulated", "\"runs\":18446744073709551615,\"simulated", "sum.runs\": 184"),
        ("\"runs\":6,\"simulated", "\"runs\":7,\"simulated", "sum.runs\": 7, but the spans have 6"),
        ("\"start\":0,\"end\":6", "\"start\":200,\"end\":0", "spans[0].end\": 0, expected more"),
        ("\"end\":6", "\"end\":5", "spans[0].runs\": 6, but there are only 5"),
        ("\"spans\":[", "\"spans\":[],\"old\":[", "spans\": it is empty"),
        ("\"violations\":", "\"violations\":0,\"was\":", "sum.violations\": 0, but there are"),
        ("\"unknown\":0", "\"unknown\":1", "sum.unknown\": 1, but there are 0 lines"),
        ("\"caught\":{", "\"caught\":{},\"was\":{", "sum.caught\": who caught the violation"),
        ("\"caught\":{", "\"caught\":{\"x\":[1,5000],", "sum.caught.x\": first seed 5000"),
        ("\"class\":\"violation\",\"not", "\"class\":\"pass\",\"not", "summary.class\": pass, but"),
        ("\"profile\":\"all\"", "\"profile\":\"most\"", "sum.options\": unknown profile"),
        ("\"has_faults\":true", "\"has_faults\":false", "sum.has_faults\": false is not so"),
        ("\"reached_runs\":{", "\"reached_runs\":{},\"was\":{", "sum.reached_runs\": \"overlap"),
    ];
    for (from, to, expected) in changes {
        assert!(text.contains(from), "{from} is not in {text}");
        let error = Results::decode(&text.replace(from, to)).err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected), "{to}: {error}");
    }
    // A passing one into which a stale write was written.
    let pass = explored("monotonic", 0..3, "1/1").encode();
    let stale = pass.replace("\"stale_accepted\":0", "\"stale_accepted\":5");
    let error = Results::decode(&stale).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("classes.stale_accepted\": 5, but no run"), "{error}");
    // A failure whose line was taken out, and one that is there twice.
    let (first, rest) = text.split_once('\n').expect("lines");
    for changed in [rest.to_owned(), format!("{first}\n{text}")] {
        let error = Results::decode(&changed).err();
        assert!(matches!(error, Some(ResultsError::Contradiction { .. })), "{error:?}");
    }
}

/// The greatest counts that are read can be joined: the sum is refused instead of overflowing.
#[test]
fn a_sum_does_not_overflow() {
    let (mut a, mut b) = (explored("monotonic", 0..2, "1/2"), explored("monotonic", 0..2, "2/2"));
    (a.total.sum.events, b.total.sum.events) = (1 << 48, 1 << 48);
    let (a, b) = (Results::decode(&a.encode()), Results::decode(&b.encode()));
    let error = joined(&[&a.expect("just fits"), &b.expect("just fits")]).err();
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("part 2: field \"summary.sum.events\": 562949953421312"), "{error}");
}
