//! Strategies of proptest: plans of faults, options, whole cases.
//!
//! ```
//! use leasehold::testing::{check_case, strategy::cases};
//! use proptest::prelude::*;
//!
//! proptest!(ProptestConfig { cases: 3, ..Default::default() }, |(case in cases())| {
//!     check_case(&case).passes()?;
//! });
//! ```
//!
//! A failing case shrinks as far as it still fails: first fewer faults, then shorter and milder
//! ones, then fewer clients and holdings. proptest keeps the seeds of what failed in a file beside
//! the test (`….proptest-regressions`, to be checked in) and runs them again before new ones, as
//! long as the strategy is the same; a case to be kept for good goes to a corpus, or into a test as
//! the failure prints it.
//!
//! Everything is drawn by the catalog's fault families from one number of proptest's generator: a
//! new family is drawn here without any change, and equal seeds give equal cases.

mod smaller;
mod tree;

use std::ops::RangeInclusive;

use proptest::{
    num::u64::ANY,
    strategy::{NewTree, Strategy, ValueTree},
    test_runner::{Reason, TestRunner},
};

use self::smaller::Floor;
pub use self::tree::Tree;
use crate::{
    case::{Case, CaseOptions},
    fault::{PlanShape, SWARM_OFF_PERMILLE, draw_faults},
    plan::{FAULTS_MAX, Plan},
    scenario::{self, CLIENTS_MAX, Scenario},
    seed::{Seed, Stream},
};

/// No greater seed is drawn: people read them.
const SEED_MAX: u64 = 9_999;
/// How often a limit of holdings is no limit, in parts of 1,000, if the range allows it.
const UNLIMITED: u32 = 500;

/// Whole cases: seed, options and plan.
///
/// By default the first scenario with the scheme that holds, 2 to 4 clients, with a limit of
/// holdings or without, and up to 8 faults of every family.
pub fn cases() -> Cases {
    Cases { scenario: scenario::CATALOG[0].name.to_owned(), options: options(), faults: 0..=8 }
}

/// The options of a case: the guard and the token that you name, and how much work there is.
pub fn options() -> Options {
    Options { fixed: CaseOptions::default(), clients: 2..=4, holdings: 0..=64 }
}

/// Plans of up to 8 faults, valid for so many clients.
pub fn plans(clients: u8) -> Plans {
    Plans { profile: String::new(), clients, faults: 0..=8 }
}

/// A strategy for cases; made by [`cases`].
#[derive(Debug, Clone)]
pub struct Cases {
    scenario: String,
    options: Options,
    faults: RangeInclusive<usize>,
}

impl Cases {
    /// Of another scenario.
    pub fn scenario(mut self, name: &str) -> Self {
        self.scenario = name.to_owned();
        self
    }

    /// With other options.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// With another guard of the crate's storage: `unfenced`, `equal` or `monotonic`.
    pub fn guard(mut self, name: &str) -> Self {
        self.options = self.options.guard(name);
        self
    }

    /// With another token: `revision` or `lease`.
    pub fn token(mut self, name: &str) -> Self {
        self.options = self.options.token(name);
        self
    }

    /// With faults of another profile.
    pub fn profile(mut self, name: &str) -> Self {
        self.options.fixed.profile = name.to_owned();
        self
    }

    /// With so many clients.
    pub fn clients(mut self, clients: RangeInclusive<u8>) -> Self {
        self.options = self.options.clients(clients);
        self
    }

    /// With at most so many holdings of each client; 0 is no limit.
    pub fn holdings(mut self, holdings: RangeInclusive<u32>) -> Self {
        self.options = self.options.holdings(holdings);
        self
    }

    /// With so many faults.
    pub fn faults(mut self, faults: RangeInclusive<usize>) -> Self {
        self.faults = faults;
        self
    }

    fn draw(&self, stream: &mut Stream) -> Result<Case, Reason> {
        let scenario = scenario::find(&self.scenario).map_err(|e| e.to_string())?;
        let seed = Seed(stream.between(0, SEED_MAX));
        let options = self.options.draw(stream)?;
        // In the control arm nothing may happen, whatever was asked for.
        let faults = if scenario.control { 0..=0 } else { self.faults.clone() };
        let plan = draw_plan(stream, scenario, (&options.profile, options.clients), &faults)?;
        Ok(Case { seed, scenario: scenario.name.to_owned(), options, plan })
    }
}

impl Strategy for Cases {
    type Tree = Tree<Case>;
    type Value = Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let case = self.draw(&mut stream(runner)?)?;
        Ok(Tree::new(case, self.options.floor(*self.faults.start())))
    }
}

/// A strategy for the options of cases; made by [`options`].
#[derive(Debug, Clone)]
pub struct Options {
    fixed: CaseOptions,
    clients: RangeInclusive<u8>,
    holdings: RangeInclusive<u32>,
}

impl Options {
    /// With another guard of the crate's storage: `unfenced`, `equal` or `monotonic`.
    pub fn guard(mut self, name: &str) -> Self {
        self.fixed.guard = name.to_owned();
        self
    }

    /// With another token: `revision` or `lease`.
    pub fn token(mut self, name: &str) -> Self {
        self.fixed.token = name.to_owned();
        self
    }

    /// With so many clients.
    pub fn clients(mut self, clients: RangeInclusive<u8>) -> Self {
        self.clients = clients;
        self
    }

    /// With at most so many holdings of each client; 0 is no limit.
    pub fn holdings(mut self, holdings: RangeInclusive<u32>) -> Self {
        self.holdings = holdings;
        self
    }

    fn draw(&self, stream: &mut Stream) -> Result<CaseOptions, Reason> {
        let (clients, holdings) = (&self.clients, &self.holdings);
        if clients.is_empty() || *clients.start() == 0 || *clients.end() > CLIENTS_MAX {
            return Err(format!("clients are {clients:?}, expected 1 to {CLIENTS_MAX}").into());
        }
        if holdings.is_empty() {
            return Err(format!("holdings are {holdings:?}, which is no number at all").into());
        }
        let between = |stream: &mut Stream, low: u32, high: u32| {
            stream.between(u64::from(low), u64::from(high)) as u32
        };
        let clients = between(stream, u32::from(*clients.start()), u32::from(*clients.end())) as u8;
        let unlimited = *holdings.start() == 0 && stream.chance(UNLIMITED);
        let holdings = match unlimited {
            true => 0,
            false => between(stream, *holdings.start(), *holdings.end()),
        };
        Ok(CaseOptions { clients, holdings, ..self.fixed.clone() })
    }

    fn floor(&self, faults: usize) -> Floor {
        Floor { faults, clients: *self.clients.start(), holdings: *self.holdings.start() }
    }
}

impl Strategy for Options {
    type Tree = Tree<CaseOptions>;
    type Value = CaseOptions;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        Ok(Tree::new(self.draw(&mut stream(runner)?)?, self.floor(0)))
    }
}

/// A strategy for plans; made by [`plans`].
#[derive(Debug, Clone)]
pub struct Plans {
    profile: String,
    clients: u8,
    faults: RangeInclusive<usize>,
}

impl Plans {
    /// With faults of another profile.
    pub fn profile(mut self, name: &str) -> Self {
        self.profile = name.to_owned();
        self
    }

    /// With so many faults.
    pub fn faults(mut self, faults: RangeInclusive<usize>) -> Self {
        self.faults = faults;
        self
    }
}

impl Strategy for Plans {
    type Tree = Tree<Plan>;
    type Value = Plan;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let (scenario, target) = (&scenario::CATALOG[0], (self.profile.as_str(), self.clients));
        let plan = draw_plan(&mut stream(runner)?, scenario, target, &self.faults)?;
        let floor = Floor { faults: *self.faults.start(), clients: self.clients, holdings: 0 };
        Ok(Tree::new(plan, floor))
    }
}

/// One number of proptest's generator, and all others from it.
fn stream(runner: &mut TestRunner) -> Result<Stream, Reason> {
    Ok(Seed(ANY.new_tree(runner)?.current()).stream("proptest"))
}

/// A plan of a profile for so many clients.
fn draw_plan(
    stream: &mut Stream,
    scenario: &Scenario,
    (profile, clients): (&str, u8),
    faults: &RangeInclusive<usize>,
) -> Result<Plan, Reason> {
    if faults.is_empty() || *faults.end() > FAULTS_MAX {
        return Err(format!("faults are {faults:?}, expected at most {FAULTS_MAX}").into());
    }
    if !(1..=CLIENTS_MAX).contains(&clients) {
        return Err(format!("clients is {clients}, expected 1 to {CLIENTS_MAX}").into());
    }
    let profile = scenario::find_profile(profile).map_err(|e| e.to_string())?;
    let count = stream.between(*faults.start() as u64, *faults.end() as u64);
    let off_permille = SWARM_OFF_PERMILLE;
    let shape = PlanShape { clients, traffic: scenario.traffic, profile, off_permille };
    Ok(draw_faults(stream, &shape, count))
}

#[cfg(test)]
mod tests;
