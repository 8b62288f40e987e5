//! Each fault on its own: it begins, shows its effect, and heals.

use leasehold::{
    case::{Case, CaseOptions},
    fault::{CATALOG, family_of},
    history::{EventKind, FaultAction, NodeName},
    judge::{RunClass, judge},
    plan::{Fault, FaultKind, Plan, RequestHarm, RequestName},
    runner,
    seed::Seed,
};

/// One or more of each family, on client-1 where a client is its target.
pub(crate) fn kinds() -> Vec<FaultKind> {
    let (client, etcd, storage) = (NodeName::Client(1), NodeName::Etcd(1), NodeName::Storage);
    vec![
        FaultKind::Pause { node: client },
        FaultKind::Suspend { node: client },
        FaultKind::PointPause { node: client, point: "client.before_write".into(), occurrence: 1 },
        FaultKind::Cut { from: client, to: etcd, both_ways: true },
        FaultKind::Cut { from: storage, to: client, both_ways: false },
        FaultKind::LinkDelay { from: client, to: storage, delay_ms: 900 },
        FaultKind::ClockRate { node: client, permille: 500 },
        FaultKind::ClockOffset { node: client, offset_ms: -60_000 },
        FaultKind::ForcedRevoke,
        FaultKind::Kill { node: client },
        FaultKind::Kill { node: etcd },
        FaultKind::Kill { node: storage },
        FaultKind::Reset { from: client, to: storage },
        FaultKind::SlowLink { from: client, to: etcd, message_ms: 200 },
        FaultKind::SilentDeath { node: client },
        FaultKind::SilentDeath { node: storage },
        FaultKind::PointKill { node: client, point: "client.after_enter".into(), occurrence: 2 },
        FaultKind::PointKill { node: storage, point: "storage.after_sync".into(), occurrence: 3 },
        FaultKind::ClockStep { node: client, step_ms: 30_000 },
        FaultKind::ClockStrobe { node: client, offset_ms: -5000, period_ms: 50 },
        request(RequestName::Txn, RequestHarm::Lost),
        request(RequestName::Txn, RequestHarm::Twice),
        request(RequestName::Renewal, RequestHarm::ReplyLost),
        request(RequestName::Storage, RequestHarm::ReplyLost),
        FaultKind::LostRenewals,
        FaultKind::LeaseRunsOut,
        FaultKind::OutsideDelete,
        FaultKind::Compaction,
        FaultKind::Leaderless,
        FaultKind::SlowSync { latency_ms: 400 },
        FaultKind::DiskFailure { full: false },
        FaultKind::DiskFailure { full: true },
        restart_under(storage),
        restart_under(etcd),
        FaultKind::CompactionCrash,
        FaultKind::LostRevocations,
    ]
}

fn restart_under(server: NodeName) -> FaultKind {
    let (node, point) = (NodeName::Client(1), "client.before_write".into());
    FaultKind::RestartUnder { node, point, occurrence: 1, server }
}

fn request(request: RequestName, harm: RequestHarm) -> FaultKind {
    FaultKind::Request { request, harm, count: 2 }
}

/// A plan of this one fault: what the injector recorded of it, and the class of the run.
fn run(kind: FaultKind, seed: u64) -> (Vec<FaultAction>, RunClass) {
    let mut faults = vec![Fault { start_ms: 5000, length_ms: 4000, kind }];
    // A lease runs out at etcd only if its client can neither renew nor revoke it.
    if faults[0].kind == FaultKind::LostRevocations {
        let kill = FaultKind::Kill { node: NodeName::Client(1) };
        faults.insert(0, Fault { start_ms: 3500, length_ms: 9000, kind: kill });
    }
    let last = faults.len() as u32 - 1;
    let plan = Plan { faults };
    let case = Case {
        seed: Seed(seed),
        scenario: "fenced-lock".into(),
        options: CaseOptions::default(),
        plan,
    };
    let judged = judge(runner::run(&case).unwrap());
    let actions = judged.run.history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Fault { index, action } if *index == last => Some(action.clone()),
        _ => None,
    });
    (actions.collect(), judged.class())
}

/// Within a few seeds each fault changes something, ends, and the run passes. A forced revoke may
/// find nobody holding the lock, so a skip is followed by the next seed.
#[test]
fn each_fault_has_its_effect_and_heals() {
    for kind in kinds() {
        let shown = (0..10).any(|seed| {
            let (actions, class) = run(kind.clone(), seed);
            assert_eq!(class, RunClass::Pass, "{kind:?} in seed {seed}");
            match actions.as_slice() {
                [FaultAction::Begin, FaultAction::Effect(effect), FaultAction::End] => *effect > 0,
                [FaultAction::Skipped(_)] => false,
                other => panic!("{kind:?} in seed {seed}: {other:?}"),
            }
        });
        assert!(shown, "{kind:?} had no effect in ten seeds");
    }
}

/// The list above is complete: every family of the catalog is in it.
#[test]
fn every_family_is_tested() {
    let tested: Vec<_> = kinds().iter().map(|kind| family_of(kind).name).collect();
    for family in &CATALOG {
        assert!(tested.contains(&family.name), "{} has no test", family.name);
    }
}
