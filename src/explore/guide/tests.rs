//! A fault is moved where it is said to be, and a guided exploration meets the rare phases.

use std::collections::BTreeSet;

use super::*;
use crate::{
    case::CaseOptions,
    explore::{Coverage, Strategy},
    fault::profile::PROFILES,
    scenario,
    seed::Seed,
};

const CLIENTS: [NodeName; 2] = [NodeName::Client(1), NodeName::Client(2)];

fn stay(from_ms: u64, to_ms: u64, node: NodeName, phase: LockPhase) -> Stay {
    Stay { from_ns: from_ms * NS_PER_MS, to_ns: to_ms * NS_PER_MS, node, phase }
}

fn fault(start_ms: u64, kind: FaultKind) -> Fault {
    Fault { start_ms, length_ms: 1000, kind }
}

/// Each phase near a fault is met about as often as another, however short it is; the fault begins
/// in it, and mostly strikes the client that is there.
#[test]
fn short_phases_are_met_as_often_as_long_ones() {
    let (long, short) = (LockPhase::Holding, LockPhase::BeforeWrite);
    let stays = [stay(3000, 7000, CLIENTS[0], long), stay(5000, 5003, CLIENTS[1], short)];
    let mut stream = Seed(1).stream("test");
    let (mut met, mut struck) = (0, 0);
    for _ in 0..400 {
        let drawn = fault(5100, FaultKind::Pause { node: CLIENTS[0] });
        let placed = place(&mut stream, drawn, &stays, 300..=20_000);
        if (5001..=5003).contains(&placed.start_ms) {
            met += 1;
            struck += u64::from(placed.kind == FaultKind::Pause { node: CLIENTS[1] });
        }
        let (low, high) = (5100 - REACH_MS, 5100 + REACH_MS);
        assert!((low..=high).contains(&placed.start_ms), "{placed:?}");
    }
    assert!((150..=250).contains(&met), "{met} of 400");
    assert!(struck * 2 > met && struck < met, "{struck} of {met}");
}

/// A pause at a point is armed right before the phase in which its point lies, for its next
/// passage; where no phase is near that fits, a fault stays where it was.
#[test]
fn points_are_armed_before_their_phase() {
    let stays = [
        stay(4000, 4500, CLIENTS[1], LockPhase::Waiting),
        stay(4500, 4502, CLIENTS[1], LockPhase::GrantedUnseen),
    ];
    let kind = |node, point: &str, occurrence| {
        let point = point.to_owned();
        FaultKind::PointPause { node, point, occurrence }
    };
    let mut stream = Seed(2).stream("test");
    for _ in 0..50 {
        let drawn = fault(4100, kind(CLIENTS[1], "queue.after_wait", 4));
        let placed = place(&mut stream, drawn, &stays, 300..=20_000);
        assert_eq!(placed.start_ms, 4501 - LEAD_MS);
        let drawn = fault(4100, kind(CLIENTS[0], "client.before_write", 4));
        assert_eq!(place(&mut stream, drawn.clone(), &stays, 300..=20_000), drawn);
        let late = place(&mut stream, drawn, &stays, 4200..=20_000);
        assert_eq!(late.start_ms, 4200, "no earlier than the fault before it");
    }
}

/// A stop ends in the first tenure of another client, in each of its phases as often, and not in a
/// later one; if nobody else gets the lock while it may last, its length is not touched.
#[test]
fn stops_end_in_the_next_tenure() {
    let (victim, next) = (CLIENTS[0], CLIENTS[1]);
    let stays = [
        stay(2000, 9000, victim, LockPhase::BeforeWrite),
        stay(5000, 5002, next, LockPhase::GrantedUnseen),
        stay(5002, 5400, next, LockPhase::Holding),
        stay(5400, 5404, next, LockPhase::BeforeWrite),
        stay(5404, 5410, next, LockPhase::Releasing),
        stay(6000, 6002, next, LockPhase::GrantedUnseen),
    ];
    let mut stream = Seed(3).stream("test");
    let last = |ms: u64| 2100 * NS_PER_MS..=(2100 + ms) * NS_PER_MS;
    let mut early = 0;
    for _ in 0..300 {
        let length_ms = end(&mut stream, &stays, victim, last(7000)).expect("a next tenure");
        assert!((2900 - LEAD_MS..=3304).contains(&length_ms), "{length_ms}");
        early += u64::from(length_ms <= 2902);
    }
    assert!((60..=150).contains(&early), "{early} of 300");
    assert_eq!(end(&mut stream, &stays, victim, last(2000)), None);
    assert_eq!(end(&mut stream, &stays[..1], victim, last(7000)), None);
}

/// A plan is valid, has as many faults as its draft and of the same families, and is the same each
/// time; where nothing is drawn nothing is guided.
#[test]
fn plans_are_valid_and_repeat() {
    let scenario = &scenario::CATALOG[0];
    let families = |case: &Case| -> Vec<&str> {
        case.plan.faults.iter().map(|fault| family_of(&fault.kind).name).collect()
    };
    for (seed, profile) in (40..).map(Seed).zip(&PROFILES) {
        let options = CaseOptions { profile: profile.name.to_owned(), ..CaseOptions::default() };
        let guided = |options| Strategy::Guided.case(scenario, seed, options, None);
        let case = guided(options.clone());
        assert_eq!(case, guided(options.clone()), "{}", profile.name);
        assert_eq!(case.plan.validate(options.clients), Ok(()), "{}", profile.name);
        assert!(scenario::resolve(&case).is_ok());
        let draft = scenario.drawn(seed, options, OFF_PERMILLE);
        assert_eq!(families(&case), families(&draft), "{}", profile.name);
        assert!(case.plan != draft.plan || profile.is_calm(), "{}", profile.name);
    }
}

/// Pauses and suspends begin in the short phases more than twice as often as by chance, although
/// those of servers, which strike every client in its phase, count for both.
#[test]
fn rare_phases_are_met_more_often_than_by_chance() {
    let met = |strategy: Strategy| {
        let mut coverage = Coverage::default();
        for seed in (0..16).map(Seed) {
            let options = CaseOptions { profile: "gc".into(), ..CaseOptions::default() };
            let case = strategy.case(&scenario::CATALOG[0], seed, options, None);
            let plan = (0..).zip(&case.plan.faults);
            let families = plan.map(|(index, fault)| (index, family_of(&fault.kind).name));
            let families = families.filter(|(_, family)| *family != "point-pause").collect();
            coverage += &Coverage::of(&runner::run(&case).expect("a run").history, &families);
        }
        let rare = [LockPhase::GrantedUnseen, LockPhase::BeforeWrite];
        let cells = ["pause", "suspend"].map(|family| rare.map(|p| coverage.count(family, p)));
        cells.into_iter().flatten().sum::<u64>()
    };
    let (chance, guided) = (met(Strategy::Random), met(Strategy::Guided));
    assert!(guided >= 16 && guided >= 2 * chance, "{guided}, by chance {chance}");
}

/// Each strategy has a name that is read back, and another name is refused with the choices.
#[test]
fn strategies_have_names() {
    let names: BTreeSet<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
    assert_eq!(names.len(), Strategy::ALL.len());
    for strategy in Strategy::ALL {
        assert_eq!(strategy.name().parse(), Ok(strategy));
    }
    let error = "blind".parse::<Strategy>().unwrap_err().to_string();
    assert_eq!(error, "unknown strategy \"blind\": choose one of random, swarm, guided");
}
