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

use std::{fmt::Debug, ops::RangeInclusive};

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
    scenario::{self, CLIENTS_MAX, ChoiceError, READERS_MAX, Scenario, TTL_S_MAX},
    seed::{Seed, Stream},
    system::TokenKind,
};

/// No greater seed is drawn: people read them.
const SEED_MAX: u64 = 9_999;
/// How often holdings, lease time and readers are left as they are, in parts of 1,000, if their
/// range allows it.
const NONE_PERMILLE: u32 = 500;

/// Whole cases: seed, options and plan.
///
/// By default the first scenario with the scheme that holds, up to 8 faults of every family, and
/// the work of [`options`].
pub fn cases() -> Cases {
    Cases { scenario: scenario::CATALOG[0].name.to_owned(), options: options(), faults: 0..=8 }
}

/// The options of a case: the guard and the token that you name, and what work there is.
///
/// By default 2 to 4 clients, with a limit of holdings or without, leases of 1 to 10 s or of what
/// each session draws, and with up to half of the holdings reading only.
pub fn options() -> Options {
    Options {
        fixed: CaseOptions::default(),
        clients: 2..=4,
        holdings: 0..=64,
        ttl_s: 0..=10,
        readers: 0..=500,
    }
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

    /// With leases of so many seconds; 0 lets each session draw its own.
    pub fn ttl_s(mut self, ttl_s: RangeInclusive<u16>) -> Self {
        self.options = self.options.ttl_s(ttl_s);
        self
    }

    /// With so many of 1,000 holdings that only read.
    pub fn readers(mut self, readers: RangeInclusive<u16>) -> Self {
        self.options = self.options.readers(readers);
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
        let plan = draw_plan(stream, scenario, (&options.profile, options.clients), &self.faults)?;
        let case = Case { seed, scenario: scenario.name.to_owned(), options, plan };
        // What cannot be run is told here: as a case it would be a failure, and kept as one.
        scenario::resolve(&case).map_err(|error| error.to_string())?;
        Ok(case)
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
    ttl_s: RangeInclusive<u16>,
    readers: RangeInclusive<u16>,
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

    /// With leases of so many seconds; 0 lets each session draw its own.
    pub fn ttl_s(mut self, ttl_s: RangeInclusive<u16>) -> Self {
        self.ttl_s = ttl_s;
        self
    }

    /// With so many of 1,000 holdings that only read.
    pub fn readers(mut self, readers: RangeInclusive<u16>) -> Self {
        self.readers = readers;
        self
    }

    fn draw(&self, stream: &mut Stream) -> Result<CaseOptions, Reason> {
        scenario::find_guard(&self.fixed.guard).map_err(|error| error.to_string())?;
        self.fixed.token.parse::<TokenKind>().map_err(|error| error.to_string())?;
        let clients = within("clients", &self.clients, 1..=CLIENTS_MAX)?;
        let holdings = within("holdings", &self.holdings, 0..=u32::MAX)?;
        let ttl_s = within("ttl_s", &self.ttl_s, 0..=TTL_S_MAX)?;
        let readers = within("readers", &self.readers, 0..=READERS_MAX)?;
        let clients = between(stream, clients) as u8;
        let holdings = often_none(stream, holdings) as u32;
        let ttl_s = often_none(stream, ttl_s) as u16;
        let readers = often_none(stream, readers) as u16;
        Ok(CaseOptions { clients, holdings, ttl_s, readers, ..self.fixed.clone() })
    }

    fn floor(&self, faults: usize) -> Floor {
        Floor {
            faults,
            clients: *self.clients.start(),
            holdings: *self.holdings.start(),
            ttl_s: *self.ttl_s.start(),
            readers: *self.readers.start(),
        }
    }
}

/// The range, if it is one and within what is allowed.
fn within<T: Copy + PartialOrd + Debug + Into<u64>>(
    name: &str,
    asked: &RangeInclusive<T>,
    allowed: RangeInclusive<T>,
) -> Result<(u64, u64), Reason> {
    let (low, high) = (*asked.start(), *asked.end());
    if low > high || !allowed.contains(&low) || !allowed.contains(&high) {
        let (least, most) = (allowed.start(), allowed.end());
        return Err(
            format!("{name} is {asked:?}, expected a range in {least:?} to {most:?}").into()
        );
    }
    Ok((low.into(), high.into()))
}

fn between(stream: &mut Stream, (low, high): (u64, u64)) -> u64 {
    stream.between(low, high)
}

/// A number of the range; where 0 is in it, often that.
fn often_none(stream: &mut Stream, range: (u64, u64)) -> u64 {
    if range.0 == 0 && stream.chance(NONE_PERMILLE) { 0 } else { between(stream, range) }
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
        let floor =
            Floor { faults: *self.faults.start(), clients: self.clients, ..Floor::default() };
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
    let calm = [
        scenario.control.then_some(("scenario", scenario.name)),
        profile.is_calm().then_some(("profile", profile.name)),
    ];
    if let Some((what, name)) = calm.into_iter().flatten().next() {
        // Nothing may happen there: a range that begins with none is no wish for some.
        let least = *faults.start();
        return match least {
            0 => Ok(Plan::default()),
            _ => Err(ChoiceError::CalmFaults { least, what, name }.to_string().into()),
        };
    }
    let count = stream.between(*faults.start() as u64, *faults.end() as u64);
    let off_permille = SWARM_OFF_PERMILLE;
    let shape = PlanShape { clients, traffic: scenario.traffic, profile, off_permille };
    Ok(draw_faults(stream, &shape, count))
}

#[cfg(test)]
mod tests;
