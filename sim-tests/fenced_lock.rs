//! The scheme that holds: an order check on create revisions.

use leasehold::{
    checker::{Class, PROPERTIES},
    testing::Check,
};

const SEEDS: std::ops::Range<u64> = 0..500;

/// 500 seeds under every fault family: no violation, and the faults have really done their worst.
/// Each property says that the dangerous thing happened, so the pass is not one of idleness.
#[test]
fn order_and_create_revisions_hold_under_all_faults() {
    let summary = Check::new().seeds(SEEDS).assert_passes();
    for (property, help) in PROPERTIES {
        assert!(summary.reached.count(property) > 0, "{property} was not reached: {help}");
    }
    assert_eq!(summary.classes.count(Class::StaleAccepted), 0);
    assert_eq!(summary.classes.count(Class::FreshRefused), 0);
    assert!(summary.classes.count(Class::StaleRefused) > 0);
    for (family, count) in &summary.faults {
        assert!(count.effective > 0, "no fault of the family {family} changed anything");
    }
}

/// The same seeds without faults: no overlap, only fresh-accepted writes, and in every run the lock
/// changes hands while somebody waits (or the control arm would say that it was not run).
#[test]
fn the_control_arm_shows_nothing() {
    let summary = Check::new().scenario("calm").seeds(SEEDS).assert_passes();
    assert_eq!(summary.reached.count("overlap"), 0);
    let fresh = summary.classes.count(Class::FreshAccepted);
    assert!(fresh > 0);
    assert_eq!(fresh, summary.classes.total());
    assert!(summary.reached_runs["handover-contended"] == summary.runs);
}
