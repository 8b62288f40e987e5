//! Shrinking against a judge that is a predicate on cases, and in one real run.

use std::cell::Cell;

use super::*;
use crate::{
    case::CaseOptions,
    checker::{Classes, Finding, Judgement, Reached, Verdict, Violation},
    explore::run_and_judge,
    history::{History, NodeName, hash::RunHash},
    judge::BrokenRule,
    plan::{Fault, FaultKind, Plan},
    runner::{HarnessError, Run, RunError},
    scenario,
    seed::Seed,
    system::OwnParts,
};

/// The run of a case that breaks these rules and does nothing else.
fn judged(case: &Case, rules: &[&'static str]) -> Judged {
    let finding = |rule: &&'static str| {
        let violation = Violation::new("fake", rule, String::new(), Vec::new());
        Finding { checker: "fake", judged: 1, verdict: Verdict::Violation(violation) }
    };
    let findings = rules.iter().map(finding).collect();
    let (classes, reached) = (Classes::default(), Reached::default());
    let history = History::default();
    let simulated = std::time::Duration::ZERO;
    let run = Run { case: case.clone(), history, hash: RunHash(0), simulated, requests: 0 };
    let judgement = Judgement { findings, classes, reached };
    Judged { run, judgement, faults: Default::default() }
}

fn delay(client: u8, start_ms: u64, delay_ms: u64) -> Fault {
    let (from, to) = (NodeName::Client(client), NodeName::Storage);
    Fault { start_ms, length_ms: 9876, kind: FaultKind::LinkDelay { from, to, delay_ms } }
}

fn case(faults: Vec<Fault>) -> Case {
    let options = CaseOptions { clients: 5, ..CaseOptions::default() };
    Case { seed: Seed(1), scenario: "fenced-lock".into(), options, plan: Plan { faults } }
}

/// Shrinks with a predicate in place of a run: a case breaks the rule `wanted` if it holds, and
/// another rule if it does not.
fn shrunk(case: &Case, limits: &Limits<'_>, wanted: impl Fn(&Case) -> bool) -> Shrunk {
    let broken = BrokenRule { checker: "fake".into(), rule: "wanted".into() };
    let run = |case: &Case| -> Outcome {
        case.plan
            .validate(case.options.clients)
            .map_err(|error| Box::new((case.clone(), RunError::Case(error.into()))))?;
        Ok(judged(case, if wanted(case) { &["other", "wanted"] } else { &["other"] }))
    };
    shrink(Ok(judged(case, &["wanted"])), &Symptom::Broken(broken), &run, limits)
}

fn has(case: &Case, client: u8, delay_min: u64, length_min: u64) -> bool {
    case.plan.faults.iter().any(|fault| match fault.kind {
        FaultKind::LinkDelay { from: NodeName::Client(n), delay_ms, .. } => {
            n == client && delay_ms >= delay_min && fault.length_ms >= length_min
        }
        _ => false,
    })
}

/// Two faults of many matter, in length and delay, for a client that gets far enough: all else
/// goes, and what is left is as small and round as it may be. Doing it again gives the same.
#[test]
fn only_what_matters_is_left() {
    let faults = (0..40).map(|n| delay(1 + n as u8 % 5, 333 + n * 501, 7000 + n)).collect();
    let case = case(faults);
    let wanted = |case: &Case| {
        let holdings = case.options.holdings;
        has(case, 1, 2500, 4000) && has(case, 3, 50, 0) && (holdings == 0 || holdings >= 6)
    };
    let result = shrunk(&case, &Limits::default(), wanted);
    let left = result.case();
    let faults = left.plan.faults.as_slice();
    let [first, second] = faults else { panic!("{faults:?}") };
    let amounts: Vec<i64> = faults.iter().map(|fault| fault.kind.amounts()[0].value).collect();
    let (lengths, sum) = ([first.length_ms, second.length_ms], amounts.iter().sum::<i64>());
    assert_eq!((lengths.iter().sum::<u64>(), sum), (4000, 2550), "{faults:?}");
    assert!(faults.iter().all(|fault| fault.start_ms % 1000 == 0), "{faults:?}");
    assert_eq!((left.options.holdings, left.options.clients), (6, 3));
    assert!(result.finished && result.runs < RUNS_MAX, "{} runs", result.runs);
    let again = shrunk(&case, &Limits::default(), wanted);
    assert_eq!((again.case(), again.runs), (left, result.runs));
    let expected = format!(
        "40 faults to 2, holdings of a client from no limit to 6, 5 clients to 3, in {} runs",
        result.runs
    );
    assert_eq!(result.summary(), expected);
}

/// A rule that is broken whatever is done needs no fault and one client of one holding; a rule
/// that nothing smaller breaks leaves the case as it is.
#[test]
fn all_or_nothing() {
    let case = case((0..9).map(|n| delay(1 + n % 5, u64::from(n) * 100, 70)).collect());
    let least = shrunk(&case, &Limits::default(), |_| true);
    assert!(least.case().plan.faults.is_empty());
    assert_eq!((least.case().options.holdings, least.case().options.clients), (1, 1));
    let same = shrunk(&case, &Limits::default(), |_| false);
    assert_eq!(same.case(), &case);
    assert!(same.finished);
}

/// Where leaving out one fault or half of them never shows the violation, a pair that does is
/// found all the same.
#[test]
fn a_pair_is_found_where_halving_is_stuck() {
    let case = case((0..8).map(|n| delay(1, n * 1000, n + 1)).collect());
    let starts = |case: &Case| {
        case.plan.faults.iter().map(|fault| fault.start_ms / 1000).collect::<Vec<_>>()
    };
    let result = shrunk(&case, &Limits::default(), |case| {
        let starts = starts(case);
        starts.len() == 8 || starts == [1, 6]
    });
    assert_eq!(starts(result.case()), [1, 6]);
}

/// Both limits end it with what it has got: the number of runs, and the caller's stop.
#[test]
fn limits_are_kept() {
    let case = case((0..40).map(|n| delay(1, n * 100, 70)).collect());
    let limits = Limits { runs_max: 5, stop: &|| false };
    let result = shrunk(&case, &limits, |case| has(case, 1, 7, 0));
    assert_eq!((result.runs, result.finished), (5, false));
    assert!(result.summary().ends_with("in 5 runs, when a limit was met"));
    assert!(result.case().plan.faults.len() < 40);
    let asked = Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 3;
    let limits = Limits { runs_max: RUNS_MAX, stop: &stop };
    assert_eq!(shrunk(&case, &limits, |_| false).runs, 3);
}

/// The real thing: what an unfenced storage lets in shrinks to a case that still shows it, which is
/// valid and small.
#[test]
fn an_unfenced_storage_shrinks() {
    let options = CaseOptions { guard: "unfenced".into(), ..CaseOptions::default() };
    let broken = BrokenRule { checker: "no-stale-write".into(), rule: "stale-accepted".into() };
    let run = |case: &Case| run_and_judge(case, None);
    let of_seed = |seed| run(&scenario::CATALOG[0].case(Seed(seed), options.clone())).unwrap();
    let first = (0..20).map(of_seed).find(|judged| broken.is_in(judged)).expect("soon caught");
    let symptom = Symptom::Broken(broken.clone());
    let result = shrink(Ok(first), &symptom, &run, &Limits::default());
    assert!(broken.is_in(&run(result.case()).unwrap()), "{}", result.case().sentence());
    let faults = result.case().plan.faults.len();
    assert!((1..=3).contains(&faults), "{}", result.case().sentence());
    assert!(result.case().options.holdings > 0, "{}", result.case().sentence());
}

/// What gave no verdict shrinks as well: a panic as long as it is the same one, and a checker that
/// cannot decide as long as nothing worse comes out.
#[test]
fn panics_and_undecided_runs_shrink() {
    let case = case((0..9).map(|n| delay(1 + n % 5, u64::from(n) * 100, 70)).collect());
    let panics = |case: &Case, text: String| {
        let error = RunError::Harness(HarnessError::Panic(text));
        Err(Box::new((case.clone(), error)))
    };
    let run = |case: &Case| -> Outcome {
        let faults = case.plan.faults.len();
        let text = if has(case, 2, 1, 0) { "the table is empty" } else { "no such thing" };
        panics(case, format!("{text} after {faults} faults"))
    };
    let (outcome, limits) = (run(&case), Limits::default());
    let symptom = Symptom::of(&outcome).expect("a symptom");
    assert_eq!(symptom.to_string(), "no run: panic in the run: the table is empty after 9 faults");
    let result = shrink(outcome, &symptom, &run, &limits);
    assert_eq!((result.case().plan.faults.len(), result.judged().is_none()), (1, true));
    assert!(has(result.case(), 2, 1, 0));
    let source = result.test_source(OwnParts::NONE);
    assert!(source.contains("fn no_run_seed_1() {"));
    let comment = "/// no run: panic in the run: the table is empty after 1 faults: ";
    assert!(source.starts_with(comment), "{source}");

    let undecided = |case: &Case| {
        let mut run = judged(case, &[]);
        let verdict = Verdict::Unknown("a client hangs".into());
        run.judgement.findings.push(Finding { checker: "fake", judged: 1, verdict });
        run
    };
    let run = |case: &Case| -> Outcome {
        match case.plan.faults.len() {
            // A violation is another matter.
            2 => Ok(judged(case, &["wanted"])),
            _ if has(case, 3, 1, 0) => Ok(undecided(case)),
            _ => Ok(judged(case, &[])),
        }
    };
    let outcome = run(&case);
    let symptom = Symptom::of(&outcome).expect("a symptom");
    assert_eq!(symptom, Symptom::Undecided("fake".into()));
    let result = shrink(outcome, &symptom, &run, &limits);
    assert_eq!(result.case().plan.faults.len(), 1);
    assert_eq!(Symptom::of(&Ok(judged(&case, &[]))), None, "a pass shows nothing");
}

/// Of a fault that does two things the one is left that matters.
#[test]
fn a_simpler_fault_takes_the_place() {
    let (node, server) = (NodeName::Client(1), NodeName::Storage);
    let point = "client.before_write".to_owned();
    let kind = FaultKind::RestartUnder { node, point, occurrence: 3, server };
    let fault = Fault { start_ms: 400, length_ms: 3000, kind };
    let stops = |case: &Case| {
        case.plan.faults.iter().any(|fault| {
            matches!(
                fault.kind,
                FaultKind::PointPause { occurrence: 2.., .. }
                    | FaultKind::RestartUnder { occurrence: 2.., .. }
            )
        })
    };
    let result = shrunk(&case(vec![fault]), &Limits::default(), stops);
    let kinds: Vec<_> = result.case().plan.faults.iter().map(|fault| &fault.kind).collect();
    let [FaultKind::PointPause { occurrence: 2, .. }] = kinds[..] else { panic!("{kinds:?}") };
}
