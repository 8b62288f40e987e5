//! How fast the main job is, on one core: runs, requests and simulated seconds a second.
//!
//! `cargo bench --bench explore` prints the median of several rounds, each over other seeds, for
//! each scenario with every checker on, and what judging costs of it. Figures of one machine at one
//! time: compare rows of one printout with each other, not with those of another day.
#![allow(clippy::print_stdout)]

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use leasehold::{
    case::CaseOptions,
    explore::{Demands, ExploreOptions, Shard, Strategy, Summary, explore},
    judge::judge,
    runner,
    scenario::CATALOG,
    seed::Seed,
};

const ROUNDS: u64 = 7;
const SEEDS: u64 = 200;

fn round(scenario: &str, first: u64) -> (Summary, Duration) {
    let options = ExploreOptions {
        scenario: scenario.to_owned(),
        options: CaseOptions::default(),
        strategy: Strategy::default(),
        seeds: first..first + SEEDS,
        shard: Shard::WHOLE,
        jobs: 1,
        fail_fast: false,
        change: None,
        demands: Demands::default(),
    };
    let began = Instant::now();
    let summary = explore(&options, &AtomicBool::new(false), |_| {}).expect("a known scenario");
    (summary, began.elapsed())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    println!("{ROUNDS} rounds of {SEEDS} seeds, one job, median:");
    for scenario in &CATALOG {
        let rounds: Vec<_> = (0..ROUNDS).map(|n| round(scenario.name, n * SEEDS)).collect();
        let rate = |count: fn(&Summary) -> f64| {
            median(rounds.iter().map(|(sum, wall)| count(sum) / wall.as_secs_f64()).collect())
        };
        println!(
            "{:<12} {:>6.0} runs/s {:>8.0} requests/s {:>8.0} simulated s/s",
            scenario.name,
            rate(|sum| sum.runs as f64),
            rate(|sum| sum.requests as f64),
            rate(|sum| sum.simulated.as_secs_f64()),
        );
        let shares = (0..50).map(|seed| {
            let case = scenario.case(Seed(seed), CaseOptions::default());
            let began = Instant::now();
            let run = runner::run(&case).expect("the scenario runs");
            let (ran, began) = (began.elapsed(), Instant::now());
            let judged = judge(run);
            let share = began.elapsed().as_secs_f64() / ran.as_secs_f64();
            assert!(!judged.judgement.findings.is_empty());
            100.0 * share
        });
        println!("{:<12} judging adds {:.1} % to a run", "", median(shares.collect()));
    }
}
