//! The scheme that holds: an order check on create revisions.

use leasehold::{
    case::CaseOptions,
    checker::Property,
    explore::{EXPECTED, Strategy},
    history::{EventKind, LeaseChange},
    scenario,
    seed::Seed,
    testing::{Check, check_case},
};

const SEEDS: std::ops::Range<u64> = 0..500;

/// 500 seeds under every fault family: no violation, and the faults have really done their worst.
/// Each property says that the dangerous thing happened, so the pass is not one of idleness.
#[test]
fn order_and_create_revisions_hold_under_all_faults() {
    let summary = Check::new().seeds(SEEDS).assert_passes();
    for property in EXPECTED {
        assert!(summary.reached.contains(property), "not reached: {}", property.name());
    }
    assert_eq!((summary.classes.stale_accepted, summary.classes.fresh_refused), (0, 0));
    assert!(summary.classes.stale_refused > 0);
    for (family, count) in &summary.faults {
        assert!(count.effective > 0, "no fault of the family {family} changed anything");
    }
}

/// The same scheme where the faults are put into the phases of the lock on purpose.
#[test]
fn order_and_create_revisions_hold_under_a_guided_search() {
    let summary = Check::new().strategy(Strategy::Guided).seeds(0..60).assert_passes();
    assert_eq!((summary.classes.stale_accepted, summary.classes.fresh_refused), (0, 0));
    assert!(summary.classes.stale_refused > 0);
}

/// The same seeds without faults: no overlap, only fresh-accepted writes, and in every run the lock
/// changes hands while somebody waits (or the control arm would say that it was not run).
#[test]
fn the_control_arm_shows_nothing() {
    let summary = Check::new().scenario("calm").seeds(SEEDS).assert_passes();
    assert_eq!(summary.reached.count(Property::Overlap), 0);
    assert!(summary.classes.fresh_accepted > 0);
    assert_eq!(summary.classes.fresh_accepted, summary.classes.total());
    assert_eq!(summary.reached_runs[&Property::ContendedHandOver], summary.runs);
}

/// A chosen lifetime is that of every lease, and holdings that only read leave fewer writes; the
/// scheme holds, and a storage without a fence is still caught.
#[test]
fn chosen_leases_and_readers_show() {
    let options = CaseOptions { ttl_s: 5, readers: 700, ..CaseOptions::default() };
    let judged = check_case(&scenario::CATALOG[0].case(Seed(1), options)).assert_passes();
    let ttls = judged.run.history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Lease(lease) => match lease.change {
            LeaseChange::Granted { ttl_s } => Some(ttl_s),
            _ => None,
        },
        _ => None,
    });
    let ttls: Vec<i64> = ttls.collect();
    assert!(!ttls.is_empty() && ttls.iter().all(|ttl_s| *ttl_s == 5), "{ttls:?}");

    let check = || Check::new().seeds(0..60);
    let (usual, read) = (check().assert_passes(), check().ttl_s(5).readers(700).assert_passes());
    assert!(read.classes.total() * 2 < usual.classes.total(), "{:?}", read.classes);
    check().guard("unfenced").ttl_s(3).readers(300).assert_violates("no-stale-write");
}
