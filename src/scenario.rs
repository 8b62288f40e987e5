//! Scenarios: named bundles of a workload, a topology and a shape of fault plans.

use std::{fmt, str::FromStr, time::Duration};

pub use crate::case::{CLIENTS_MAX, READERS_MAX, TTL_S_MAX};
use crate::{
    case::{Case, CaseOptions},
    checker::{self, Checker},
    fault::{
        PlanShape, SWARM_OFF_PERMILLE, draw_plan,
        profile::{self, PROFILES, Profile},
    },
    seed::Seed,
    storage::GuardKind,
    system::TokenKind,
    workload::{self, Workload},
};

/// A named bundle.
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// How long clients work and faults begin, in simulated time.
    pub traffic: Duration,
    /// How long a message takes when nothing disturbs it.
    pub latency: (Duration, Duration),
    /// Whether it is the control arm: without faults nothing out of the ordinary may happen.
    pub control: bool,
    workload: &'static str,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}

const LATENCY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(4));

/// All scenarios; the first is the default.
pub static CATALOG: [Scenario; 4] = [
    Scenario {
        name: "fenced-lock",
        help: "clients contend for one lock and write under its token, with the profile's faults",
        traffic: Duration::from_secs(24),
        latency: LATENCY,
        control: false,
        workload: "lock_register",
    },
    Scenario {
        name: "fenced-leader",
        help: "the same with an election in the place of the lock",
        traffic: Duration::from_secs(24),
        latency: LATENCY,
        control: false,
        workload: "leader_register",
    },
    Scenario {
        name: "slow-holders",
        help: "as fenced-lock, with holders that think long between first read and write",
        traffic: Duration::from_secs(24),
        latency: LATENCY,
        control: false,
        workload: "slow_register",
    },
    Scenario {
        name: "calm",
        help: "the same without faults, whatever the profile: the control arm",
        traffic: Duration::from_secs(24),
        latency: LATENCY,
        control: true,
        workload: "lock_register",
    },
];

/// A choice that there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// A name that nobody has.
    #[error("unknown {what} {name:?}: choose one of {known}")]
    Unknown {
        /// What was to be chosen.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Too few or too many.
    #[error("clients is {found}, expected 1 to {CLIENTS_MAX}")]
    Clients {
        /// The number given.
        found: u64,
    },
    /// Leases that live too long.
    #[error("ttl_s is {found}, expected at most {TTL_S_MAX}; 0: each session draws its own")]
    Ttl {
        /// The seconds given.
        found: u16,
    },
    /// More readers than holdings.
    #[error("readers is {found}, expected 0 to {READERS_MAX} of {READERS_MAX} holdings")]
    Readers {
        /// The number given.
        found: u16,
    },
    /// No seed at all.
    #[error("seeds {start}..{end} are none: the first must be less than the last")]
    Seeds {
        /// The first.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// A share without a seed.
    #[error("shard {shard} of seeds {start}..{end} has no seed: take fewer shards or more seeds")]
    Shard {
        /// Which one.
        shard: String,
        /// The first seed.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// A fault of the plan would never begin.
    #[error("fault {index}: start_ms is {start_ms}, expected less than the traffic's {traffic_ms}")]
    NeverBegins {
        /// Counted from 0.
        index: usize,
        /// Its start.
        start_ms: u64,
        /// How long the scenario's traffic is.
        traffic_ms: u64,
    },
    /// The control arm has no faults.
    #[error("{what} {name:?} has no faults, the plan has some: use another {what}")]
    ControlArm {
        /// The scenario, or the profile.
        what: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// Faults are asked for, and there are to be none.
    #[error(
        "profile {profile:?} has faults, and scenario {scenario:?} has none: use another scenario, \
         or profile \"calm\" (or \"all\", the default, which is the same there)"
    )]
    CalmScenario {
        /// The scenario.
        scenario: &'static str,
        /// The profile.
        profile: &'static str,
    },
    /// So many faults are asked for, and there are to be none.
    #[error(
        "at least {least} faults are asked for, and {what} {name:?} has none: use another {what}, \
         or ask for none"
    )]
    CalmFaults {
        /// The fewest faults.
        least: usize,
        /// The scenario, or the profile.
        what: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// The case is one of a known bug, and is run without it.
    #[error("the case has the known bug {name:?} built in: run it as `bugs` and `replay` do")]
    KnownBug {
        /// The bug's name.
        name: String,
    },
    /// The plan cannot be executed.
    #[error(transparent)]
    Plan(#[from] crate::plan::PlanError),
}

impl FromStr for TokenKind {
    type Err = ChoiceError;

    fn from_str(name: &str) -> Result<Self, ChoiceError> {
        match name {
            "revision" => Ok(TokenKind::Revision),
            "lease" => Ok(TokenKind::Lease),
            _ => Err(unknown("token", name, ["revision", "lease"])),
        }
    }
}

fn unknown<'a>(
    what: &'static str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> ChoiceError {
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    ChoiceError::Unknown { what, name: name.to_owned(), known }
}

/// The scenario of this name.
pub fn find(name: &str) -> Result<&'static Scenario, ChoiceError> {
    CATALOG
        .iter()
        .find(|scenario| scenario.name == name)
        .ok_or_else(|| unknown("scenario", name, CATALOG.iter().map(|scenario| scenario.name)))
}

/// The profile of this name.
pub fn find_profile(name: &str) -> Result<&'static Profile, ChoiceError> {
    let known = PROFILES.iter().map(|profile| profile.name);
    profile::find(name).ok_or_else(|| unknown("profile", name, known))
}

/// The guard of this name.
pub(crate) fn find_guard(name: &str) -> Result<GuardKind, ChoiceError> {
    name.parse().map_err(|_| unknown("guard", name, ["unfenced", "equal", "monotonic"]))
}

/// The checker of this name.
pub fn find_checker(name: &str) -> Result<&'static dyn Checker, ChoiceError> {
    let known = checker::all().iter().map(|checker| checker.name());
    checker::by_name(name).ok_or_else(|| unknown("checker", name, known))
}

/// Whether a case is of the control arm: by its scenario, or by its profile.
pub fn is_control(case: &Case) -> bool {
    find(&case.scenario).is_ok_and(|scenario| scenario.control)
        || profile::find(&case.options.profile).is_some_and(Profile::is_calm)
}

/// A case whose names have been looked up.
pub(crate) struct Resolved {
    pub(crate) scenario: &'static Scenario,
    pub(crate) workload: &'static Workload,
    pub(crate) guard: GuardKind,
    pub(crate) token: TokenKind,
}

/// Looks up everything that a case names; a case that came from outside may name anything.
pub(crate) fn resolve(case: &Case) -> Result<Resolved, ChoiceError> {
    let scenario = find(&case.scenario)?;
    let Case { options, .. } = case;
    let guard = find_guard(&options.guard)?;
    let token = options.token.parse()?;
    if !(1..=CLIENTS_MAX).contains(&options.clients) {
        return Err(ChoiceError::Clients { found: options.clients.into() });
    }
    if options.ttl_s > TTL_S_MAX {
        return Err(ChoiceError::Ttl { found: options.ttl_s });
    }
    if options.readers > READERS_MAX {
        return Err(ChoiceError::Readers { found: options.readers });
    }
    let profile = find_profile(&options.profile)?;
    // The default profile says nothing; another one was asked for, and would be left out.
    if scenario.control && !profile.is_calm() && profile.name != PROFILES[0].name {
        let (scenario, profile) = (scenario.name, profile.name);
        return Err(ChoiceError::CalmScenario { scenario, profile });
    }
    case.plan.validate(options.clients)?;
    let traffic_ms = scenario.traffic.as_millis() as u64;
    for (index, fault) in case.plan.faults.iter().enumerate() {
        let start_ms = fault.start_ms;
        if scenario.control {
            return Err(ChoiceError::ControlArm { what: "scenario", name: scenario.name });
        }
        if profile.is_calm() {
            return Err(ChoiceError::ControlArm { what: "profile", name: profile.name });
        }
        if start_ms >= traffic_ms {
            return Err(ChoiceError::NeverBegins { index, start_ms, traffic_ms });
        }
    }
    let workload = workload::CATALOG
        .iter()
        .find(|workload| workload.name == scenario.workload)
        .expect("each scenario names a workload of the catalog");
    Ok(Resolved { scenario, workload, guard, token })
}

impl Scenario {
    /// The case of a seed: its plan is drawn now, as swarm does it.
    pub fn case(&self, seed: Seed, options: CaseOptions) -> Case {
        self.drawn(seed, options, SWARM_OFF_PERMILLE)
    }

    /// The case of a seed whose plan does without so many of 1,000 families.
    pub(crate) fn drawn(&self, seed: Seed, options: CaseOptions, off_permille: u32) -> Case {
        let profile = profile::find(&options.profile).filter(|_| !self.control);
        // An unknown profile has no plan; whoever runs the case is told.
        let plan = profile.map(|profile| {
            let (clients, traffic) = (options.clients, self.traffic);
            draw_plan(seed, &PlanShape { clients, traffic, profile, off_permille })
        });
        let plan = plan.unwrap_or_default();
        Case { seed, scenario: self.name.to_owned(), options, plan }
    }
}

impl Default for CaseOptions {
    /// The scheme that holds, and enough clients to contend.
    fn default() -> Self {
        CaseOptions {
            guard: "monotonic".into(),
            token: "revision".into(),
            clients: 3,
            holdings: 0,
            ttl_s: 0,
            readers: 0,
            profile: "all".into(),
            bug: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a case names that is not there is named in turn, with the choices.
    #[test]
    fn unknown_names_are_told() {
        let good = CATALOG[0].case(Seed(1), CaseOptions::default());
        assert!(resolve(&good).is_ok());
        let mut bad = good.clone();
        bad.scenario = "fenced".into();
        let error = resolve(&bad).err().map(|error| error.to_string());
        let expected = "unknown scenario \"fenced\": choose one of fenced-lock, fenced-leader, \
                        slow-holders, calm";
        assert_eq!(error.as_deref(), Some(expected));
        let mut bad = good.clone();
        bad.options.guard = "strict".into();
        assert!(matches!(resolve(&bad), Err(ChoiceError::Unknown { what: "guard", .. })));
        let mut bad = good.clone();
        bad.options.profile = "quiet".into();
        let error = resolve(&bad).err().map(|error| error.to_string());
        let expected = "unknown profile \"quiet\": choose one of all, calm, gc, network, clocks, \
                        crash, restart, resend, lease";
        assert_eq!(error.as_deref(), Some(expected));
        let mut bad = good.clone();
        bad.options.profile = "calm".into();
        assert!(!bad.plan.faults.is_empty());
        assert!(matches!(resolve(&bad), Err(ChoiceError::ControlArm { what: "profile", .. })));
        let calm = CATALOG[0].case(Seed(1), bad.options);
        assert!(calm.plan.faults.is_empty() && resolve(&calm).is_ok() && is_control(&calm));
        assert!(!is_control(&good));
        let mut bad = good.clone();
        (bad.scenario, bad.plan) = ("calm".into(), Default::default());
        for (profile, expected) in [("all", true), ("", true), ("calm", true), ("gc", false)] {
            bad.options.profile = profile.into();
            assert_eq!(resolve(&bad).is_ok(), expected, "{profile}");
        }
        let error = resolve(&bad).err().map(|error| error.to_string()).unwrap_or_default();
        let both = error.contains("profile \"gc\"") && error.contains("scenario \"calm\"");
        assert!(both && error.contains("use another scenario"), "{error}");
        let error = find_checker("no-stale-wrote").err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        let expected = "unknown checker \"no-stale-wrote\": choose one of assumptions, no-stale-";
        assert!(error.starts_with(expected), "{error}");
        let mut bad = good.clone();
        bad.options.clients = 0;
        assert!(matches!(resolve(&bad), Err(ChoiceError::Clients { found: 0 })));
        let mut bad = good.clone();
        bad.options.ttl_s = TTL_S_MAX + 1;
        assert!(matches!(resolve(&bad), Err(ChoiceError::Ttl { found: 21 })));
        let mut bad = good;
        bad.options.readers = READERS_MAX + 1;
        assert!(matches!(resolve(&bad), Err(ChoiceError::Readers { found: 1001 })));
    }
}
