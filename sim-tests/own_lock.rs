//! The example in `examples/own_lock.rs`, and what exactly is wrong with it.

use leasehold::testing::Check;

#[path = "../examples/own_lock.rs"]
#[allow(dead_code)]
pub(super) mod example;

/// The lock of the example is caught, and the example says so with its exit status.
#[test]
fn the_example_catches_its_lock() {
    assert_eq!(format!("{:?}", example::main()), format!("{:?}", std::process::ExitCode::SUCCESS));
}

/// It is caught for what its head says, and not at the storage: it believes in a lease that it has
/// not
/// renewed in time. What it grants is right, and the fence keeps its late writes out.
#[test]
fn it_is_caught_because_it_believes_for_too_long() {
    let check = Check::new().lock::<example::Hopeful>();
    let summary = check.seeds(0..100).assert_violates("session-honesty");
    let caught: Vec<_> = summary.caught.keys().map(String::as_str).collect();
    // Now and then such a belief ends only when the lease is long gone: the session did not live.
    let told = |checker: &&str| ["session-honesty", "session-survival"].contains(checker);
    assert!(caught.contains(&"session-honesty") && caught.iter().all(told), "{caught:?}");
}

/// Without faults nothing is wrong with it: the mistake shows only when renewals stay away.
#[test]
fn it_is_right_as_long_as_nothing_goes_wrong() {
    let check = Check::new().scenario("calm").lock::<example::Hopeful>().seeds(0..20);
    assert!(check.assert_passes().runs == 20);
}
