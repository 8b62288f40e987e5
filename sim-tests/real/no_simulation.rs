//! `leasehold::testing` in the real build: a check does not pass for nothing, it fails and says
//! which lines are missing.

use std::panic::catch_unwind;

use leasehold::testing::{Check, NoSimulation, assert_corpus, replay_case};

/// Whatever is to run panics with the lines of the configuration; `run` gives them as its error.
#[test]
fn a_check_fails_with_the_lines_to_add() {
    let told = |check: fn()| {
        let panic = catch_unwind(check).expect_err("it passed without a simulation");
        *panic.downcast::<String>().expect("a message")
    };
    let checks: [fn(); 4] = [
        || Check::new().scenario("calm").seeds(0..3).assert_passes(),
        || Check::new().assert_violates("no-stale-write"),
        || replay_case("{}").assert_passes(),
        || {
            assert_corpus("corpus");
        },
    ];
    for check in checks {
        let text = told(check);
        assert_eq!(text, NoSimulation.to_string());
        assert!(text.contains("[build]\nrustflags = [\"--cfg\", \"madsim\"]\n"), "{text}");
    }
    assert_eq!(Check::new().run(), Err(NoSimulation));
}
