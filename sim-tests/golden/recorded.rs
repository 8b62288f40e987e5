//! What a simulated run records is possible, and its assumptions hold: the rules that refuse a
//! damaged history refuse no real one.

use leasehold::{
    case::CaseOptions,
    checker::Index,
    history::{
        NodeName,
        codec::{decode, encode},
    },
    runner, scenario,
    seed::Seed,
};

/// Written and read again it is the same history, and no assumption about it fails.
#[test]
fn histories_of_runs_are_read_as_they_were() {
    let scenario = scenario::find("fenced-lock").expect("the scenario of the catalog");
    for seed in 0..30 {
        let case = scenario.case(Seed(seed), CaseOptions::default());
        let mut history = runner::run(&case).expect("the plan makes sense").history;
        // The reader of the final state is a client without a number, which no text can name.
        for event in &mut history.events {
            if event.node == NodeName::Client(0) {
                event.node = NodeName::Nemesis;
            }
        }
        let read = decode(&encode(&history)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(read, history, "seed {seed}");
        assert_eq!(Index::new(&read).failed_assumptions(), [], "seed {seed}");
    }
}
