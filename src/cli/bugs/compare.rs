//! `leasehold bugs --compare`: each strategy against plain chance, as one table in Markdown.
//!
//! Bugs that do harm in peace are left out: they are caught at once, whatever the plans are. What
//! this leaves out: how a strategy does on bugs that nobody has had yet.

use std::time::{Duration, Instant};

use super::{ALL, Terms, out};
use crate::{
    bug::{KnownBug, Needs},
    explore::Strategy,
    hunt::{Hunt, hunt},
};

const COUNT: usize = Strategy::ALL.len();

/// What a strategy has cost and gained, over all bugs, in one profile each.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    runs: u64,
    took: Duration,
    /// The logarithms of how many seeds a catch took, added up.
    seeds_ln: f64,
}

/// Hunts each bug with each strategy and prints the table, row by row.
pub(super) fn run(bugs: &[&'static KnownBug], terms: &Terms) -> Result<(), String> {
    let needy: Vec<_> = bugs.iter().filter(|bug| bug.needs != Needs::Nothing).collect();
    let names = Strategy::ALL.map(|strategy| format!(" {strategy} |")).concat();
    let all = Strategy::ALL.map(|strategy| format!(" {strategy}, `all` |")).concat();
    out(format_args!("| bug | profile |{names}{all}"));
    out(format_args!("|---|---|{}", "---:|".repeat(2 * COUNT)));
    let mut sums = [[Sum::default(); COUNT]; 2];
    for bug in &needy {
        let mut cells = String::new();
        for (place, (profile, seeds)) in
            [(bug.profile, terms.seeds), (ALL, terms.all_seeds)].into_iter().enumerate()
        {
            for (sum, strategy) in sums[place].iter_mut().zip(Strategy::ALL) {
                let began = Instant::now();
                let found = hunt(bug, (strategy, profile), 0..seeds, terms.jobs, terms.enough);
                let found = found.map_err(|error| error.to_string())?;
                sum.add(&found, began.elapsed());
                cells.push_str(&format!(" {} |", median(&found)));
            }
        }
        out(format_args!("| `{}` | `{}` |{cells}", bug.name, bug.profile));
    }
    out(format_args!("| against random | |{}", cells(&sums, needy.len(), Sum::against)));
    let jobs = terms.jobs as u32;
    let cost = |sum: &Sum, _: &Sum, _| {
        format!("{:.1} ms", (sum.took * jobs).as_secs_f64() * 1000.0 / sum.runs.max(1) as f64)
    };
    out(format_args!("| a seed takes | |{}", cells(&sums, needy.len(), cost)));
    Ok(())
}

/// A row of one cell a strategy and profile; `cell` is told the sum, and that of plain chance.
fn cells(
    sums: &[[Sum; COUNT]; 2],
    bugs: usize,
    cell: impl Fn(&Sum, &Sum, usize) -> String,
) -> String {
    let all = sums.iter().flat_map(|row| row.iter().map(move |sum| (sum, &row[0])));
    all.map(|(sum, chance)| format!(" {} |", cell(sum, chance, bugs))).collect()
}

fn median(found: &Hunt) -> String {
    match found.seeds_to_catch(500) {
        Some(seeds) => seeds.to_string(),
        None => format!("> {}", found.runs),
    }
}

impl Sum {
    fn add(&mut self, found: &Hunt, took: Duration) {
        self.runs += found.runs;
        self.took += took;
        // A row without a catch counts as if the next seed were one.
        let catches = found.caught.len().max(1) as f64;
        self.seeds_ln += (found.runs.max(1) as f64 / catches).ln();
    }

    /// The seeds a catch takes, as parts of what plain chance takes: a geometric mean over bugs.
    fn against(&self, chance: &Sum, bugs: usize) -> String {
        let parts = ((self.seeds_ln - chance.seeds_ln) / bugs.max(1) as f64).exp();
        format!("{parts:.2}")
    }
}
