//! What a simulated run records is possible, and its assumptions hold: the rules that refuse a
//! damaged history refuse no real one.

use leasehold::{
    case::CaseOptions,
    checker::Index,
    history::codec::{decode, encode},
    runner, scenario,
    seed::Seed,
};

/// Written and read again it is the same history, and no assumption about it fails.
#[test]
fn histories_of_runs_are_read_as_they_were() {
    let scenario = scenario::find("fenced-lock").expect("the scenario of the catalog");
    for seed in 0..30 {
        let case = scenario.case(Seed(seed), CaseOptions::default());
        let history = runner::run(&case).expect("the plan makes sense").history;
        let read = decode(&encode(&history)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(read, history, "seed {seed}");
        assert_eq!(Index::new(&read).failed_assumptions(), [], "seed {seed}");
    }
}
