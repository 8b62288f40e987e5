//! Strategies give valid values, and shrink a violation to the smallest that shows it.

use std::collections::BTreeSet;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng};

use super::*;
use crate::{fault::CATALOG, fault::family_of, scenario::resolve, testing::check_case};

/// Always the same numbers, and no file of failures.
fn runner(cases: u32) -> TestRunner {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 1500, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Every drawn case can be run: its names are known and its plan is valid for its clients. So is
/// all that it shrinks to. Every family of faults is drawn, and equal numbers give equal cases.
#[test]
fn cases_and_what_they_shrink_to_are_valid() {
    let strategy = cases().clients(1..=5).faults(0..=12);
    let (mut runner_a, mut runner_b) = (runner(1), runner(1));
    let mut families = BTreeSet::new();
    let (mut ttls, mut readers) = (BTreeSet::new(), 0);
    for _ in 0..300 {
        let mut tree = strategy.new_tree(&mut runner_a).expect("a case");
        let case = tree.current();
        assert_eq!(case, strategy.new_tree(&mut runner_b).expect("a case").current());
        assert!(resolve(&case).is_ok(), "{case:?}");
        families.extend(case.plan.faults.iter().map(|fault| family_of(&fault.kind).name));
        ttls.insert(case.options.ttl_s);
        readers += u32::from(case.options.readers > 0);
        let mut steps = 0;
        while tree.simplify() && steps < 20 {
            steps += 1;
            assert!(resolve(&tree.current()).is_ok(), "{:?} of {case:?}", tree.current());
        }
    }
    assert_eq!(families.len(), CATALOG.len(), "{families:?}");
    assert_eq!(ttls, (0..=10).collect(), "each lifetime, and none");
    assert!((100..200).contains(&readers), "{readers} of 300 cases have holdings that only read");
}

/// Plans are valid for the clients that they are drawn for, and as long as was asked.
#[test]
fn plans_are_valid() {
    let mut runner = runner(1);
    for clients in 1..=CLIENTS_MAX {
        let strategy = plans(clients).faults(2..=5);
        for _ in 0..20 {
            let mut tree = strategy.new_tree(&mut runner).expect("a plan");
            let plan = tree.current();
            assert_eq!(plan.validate(clients), Ok(()));
            assert!((2..=5).contains(&plan.faults.len()));
            // Whatever fails is as small as can be in the end, and no smaller than was asked.
            while tree.simplify() {}
            assert_eq!(tree.current().faults.len(), 2);
            assert!(tree.current().faults.iter().all(|fault| fault.length_ms == 0));
        }
    }
}

/// What makes no sense is told, and nothing is drawn.
#[test]
fn nonsense_is_told() {
    let told = |strategy: &Cases| {
        let tree = strategy.new_tree(&mut runner(1));
        tree.err().map(|reason| reason.message().to_owned()).unwrap_or_default()
    };
    assert!(told(&cases().scenario("x")).starts_with("unknown scenario \"x\": choose one of"));
    assert!(told(&cases().profile("x")).starts_with("unknown profile \"x\": choose one of"));
    assert!(
        told(&cases().guard("nofence")).starts_with("unknown guard \"nofence\": choose one of")
    );
    assert!(told(&cases().token("x")).starts_with("unknown token \"x\": choose one of"));
    assert!(options().guard("nofence").new_tree(&mut runner(1)).is_err());
    assert!(told(&cases().scenario("calm").profile("gc")).starts_with("profile \"gc\" has faults"));
    let least = "at least 3 faults are asked for, and";
    let calm = cases().scenario("calm").faults(3..=4);
    assert!(told(&calm).starts_with(&format!("{least} scenario \"calm\" has none: ")));
    let calm = cases().profile("calm").faults(3..=4);
    assert!(told(&calm).starts_with(&format!("{least} profile \"calm\" has none: ")));
    assert!(plans(3).profile("calm").faults(3..=4).new_tree(&mut runner(1)).is_err());
    for calm in [cases().scenario("calm"), cases().profile("calm")] {
        let case = calm.new_tree(&mut runner(1)).expect("a case").current();
        assert!(case.plan.faults.is_empty());
    }
    assert_eq!(told(&cases().clients(0..=3)), "clients is 0..=3, expected a range in 1 to 16");
    assert_eq!(told(&cases().clients(1..=17)), "clients is 1..=17, expected a range in 1 to 16");
    assert_eq!(told(&cases().faults(0..=999)), "faults are 0..=999, expected at most 256");
    assert_eq!(told(&cases().ttl_s(0..=21)), "ttl_s is 0..=21, expected a range in 0 to 20");
    let many = cases().readers(1..=1001);
    assert_eq!(told(&many), "readers is 1..=1001, expected a range in 0 to 1000");
    assert!(plans(0).new_tree(&mut runner(1)).is_err());
    assert!(options().clients(0..=0).new_tree(&mut runner(1)).is_err());
}

/// proptest finds the late write that a storage without a fence lets in, and shrinks the case to
/// at most three faults and a limit of holdings; what is left still shows it, and without its
/// faults it shows nothing.
#[test]
fn a_storage_without_a_fence_is_found_and_shrunk() {
    let run = |case: &Case| check_case(case).run().expect("a run");
    let stale = |case: &Case| {
        let rules = run(case).broken_rules();
        rules.iter().any(|broken| broken.rule == "stale-accepted")
    };
    let found = runner(60).run(&cases().guard("unfenced"), |case| match stale(&case) {
        true => Err(TestCaseError::fail("stale write")),
        false => Ok(()),
    });
    let Err(TestError::Fail(_, minimal)) = found else { panic!("not found: {found:?}") };
    assert!(stale(&minimal), "{}", minimal.sentence());
    assert!((1..=3).contains(&minimal.plan.faults.len()), "{}", minimal.sentence());
    assert!(minimal.options.holdings > 0, "{}", minimal.sentence());
    let no_fault = Case { plan: Plan::default(), ..minimal.clone() };
    assert!(!stale(&no_fault), "without the fault there is nothing to see");
    // The sentence is the report: one or two faults, and who, when and how long.
    assert!(minimal.sentence().len() < 200, "{}", minimal.sentence());
}

/// The scheme that holds passes cases of every size, the smallest included; with `?`, as users
/// write it.
#[test]
fn the_right_scheme_passes() {
    let passes = |case: Case| {
        check_case(&case).passes()?;
        Ok(())
    };
    assert_eq!(runner(25).run(&cases(), passes), Ok(()));
    // One holding that only reads leaves nothing to judge, which is no pass.
    let small = cases().clients(1..=2).holdings(1..=2).faults(0..=2).readers(0..=0);
    assert_eq!(runner(25).run(&small, passes), Ok(()));
}

/// A failure says checker, plan and the test to paste, as the reason that proptest prints.
#[test]
fn a_failure_says_it_all() {
    let wrong = cases().guard("equal").token("lease").faults(0..=0);
    let found = runner(1).run(&wrong, |case| {
        check_case(&case).passes()?;
        Ok(())
    });
    let Err(TestError::Fail(reason, minimal)) = found else { panic!("not found: {found:?}") };
    let text = reason.message();
    assert!(text.contains("checker no-stale-write: "), "{text}");
    assert!(text.contains("leasehold::testing::replay_case("), "{text}");
    let failure = check_case(&minimal).passes().expect_err("it fails");
    assert_eq!(failure.class(), crate::judge::RunClass::Violation);
    let broken = failure.broken().expect("a rule");
    assert_eq!(broken.checker, "no-stale-write");
}
