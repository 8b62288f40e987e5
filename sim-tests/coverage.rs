//! Every fault in every phase of a lock's life: each cell of the matrix that can be reached is,
//! and the scheme that holds passes there.
//!
//! Chance alone would need thousands of runs for the narrow phases, so client-1 is stopped at the
//! code point that stands for the phase, and the fault begins while it stands there. A cell fails
//! when a few seeds do not reach it; the ones that cannot be reached are named with their reason by
//! `explore::unreachable`.

use std::collections::BTreeMap;

use leasehold::{
    case::{Case, CaseOptions},
    explore::{Coverage, LockPhase, unreachable},
    fault::{CATALOG, family_of},
    history::NodeName,
    judge::{RunClass, judge},
    plan::{Fault, FaultKind, Plan},
    runner,
    seed::Seed,
};

use crate::fault::kinds;

const CLIENT: NodeName = NodeName::Client(1);
/// So many seeds a kind of fault and a phase.
const SEEDS: u64 = 12;

fn pause(start_ms: u64, length_ms: u64, point: &str) -> Fault {
    let (point, occurrence) = (point.to_owned(), 1);
    let kind = FaultKind::PointPause { node: CLIENT, point, occurrence };
    Fault { start_ms, length_ms, kind }
}

/// The code point at which a client is in this phase, or comes into it when its lease has run out.
fn point(phase: LockPhase) -> &'static str {
    match phase {
        LockPhase::Waiting => "queue.before_wait",
        LockPhase::GrantedUnseen => "queue.after_wait",
        LockPhase::Holding => "client.after_enter",
        LockPhase::BeforeWrite | LockPhase::ExpiredUnaware => "client.before_write",
        LockPhase::Releasing => "mutex.before_unlock",
    }
}

/// A plan that brings client-1 into the phase and lets the fault begin there.
fn plan(kind: &FaultKind, phase: LockPhase) -> Plan {
    let mut faults = match (kind, phase) {
        // A suspended client does not see that its lease has run out, and goes on to its point.
        (
            FaultKind::PointPause { node, .. }
            | FaultKind::PointKill { node, .. }
            | FaultKind::RestartUnder { node, .. },
            LockPhase::ExpiredUnaware,
        ) if *node == CLIENT => {
            let suspend = FaultKind::Suspend { node: CLIENT };
            vec![
                pause(2000, 1500, "client.after_enter"),
                Fault { start_ms: 2900, length_ms: 7000, kind: suspend },
                at(kind, 3000, point(phase)),
            ]
        }
        (
            FaultKind::PointPause { node, .. }
            | FaultKind::PointKill { node, .. }
            | FaultKind::RestartUnder { node, .. },
            _,
        ) if *node == CLIENT => {
            vec![at(kind, 2000, point(phase))]
        }
        (_, LockPhase::ExpiredUnaware) => {
            let again = |start_ms| Fault { start_ms, length_ms: 400, kind: kind.clone() };
            vec![pause(2000, 9000, point(phase)), again(8000), again(8600), again(9200)]
        }
        _ => {
            let again = |start_ms| Fault { start_ms, length_ms: 400, kind: kind.clone() };
            vec![pause(2000, 2500, point(phase)), again(2400), again(2850), again(3300)]
        }
    };
    faults.sort_by_key(|fault| fault.start_ms);
    Plan { faults }
}

/// The same fault at another point.
fn at(kind: &FaultKind, start_ms: u64, point: &str) -> Fault {
    let (node, point, occurrence) = (CLIENT, point.to_owned(), 1);
    let kind = match kind {
        FaultKind::PointKill { .. } => FaultKind::PointKill { node, point, occurrence },
        FaultKind::RestartUnder { server, .. } => {
            FaultKind::RestartUnder { node, point, occurrence, server: *server }
        }
        _ => FaultKind::PointPause { node, point, occurrence },
    };
    Fault { start_ms, length_ms: 2000, kind }
}

/// Whether one of the seeds brings the fault into the phase. Each run passes.
fn is_reached(kind: &FaultKind, phase: LockPhase) -> bool {
    let family = family_of(kind).name;
    (0..SEEDS).any(|seed| {
        let (seed, scenario) = (Seed(seed), "fenced-lock".to_owned());
        let plan = plan(kind, phase);
        // The stop that brings the client into the phase is no fault of the matrix.
        let staged = plan.faults.len() > 1;
        let counts = |fault: &&(u32, &Fault)| !staged || fault.0 > 0;
        let indexed: Vec<(u32, &Fault)> = (0..).zip(&plan.faults).collect();
        let of_family = indexed
            .iter()
            .filter(counts)
            .filter(|(_, fault)| family_of(&fault.kind).name == family);
        let families: BTreeMap<u32, &str> = of_family.map(|(index, _)| (*index, family)).collect();
        let case = Case { seed, scenario, options: CaseOptions::default(), plan: plan.clone() };
        let judged = judge(runner::run(&case).expect("the plan makes sense"));
        assert_eq!(judged.class(), RunClass::Pass, "{kind:?} {phase:?} {:?}", judged.worst());
        Coverage::of(&judged.run.history, &families).count(family, phase) > 0
    })
}

/// Every cell is reached, or named as one that cannot be.
#[test]
fn every_cell_is_reached() {
    let mut missing = Vec::new();
    for family in &CATALOG {
        for phase in LockPhase::ALL {
            let reached = kinds()
                .iter()
                .filter(|kind| family_of(kind).name == family.name)
                .any(|kind| is_reached(kind, phase));
            match unreachable(family.name, phase) {
                Some(why) => assert!(!reached, "{} {}: {why}", family.name, phase.name()),
                None if !reached => missing.push((family.name, phase.name())),
                None => {}
            }
        }
    }
    assert_eq!(missing, [], "cells of the coverage matrix that no run reached");
}
