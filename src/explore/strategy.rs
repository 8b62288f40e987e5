//! How the plans of an exploration are found: by chance alone, by swarm, or guided by a probe.
//!
//! A strategy makes plans and nothing else: a plan is explicit, so a case is replayed and shrunk
//! without knowing which one made it. The plan is a pure function of the seed, the options and the
//! system under test: no run tells another anything, so neither jobs nor shares change it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::guide;
use crate::{
    case::{Case, CaseOptions},
    fault::SWARM_OFF_PERMILLE,
    scenario::{ChoiceError, Scenario},
    seed::Seed,
    system::Change,
};

/// How plans are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Every family of the profile may be drawn in each seed, at any time.
    Random,
    /// In each seed some families are off, so that the others get room.
    #[default]
    Swarm,
    /// As swarm; then each fault is moved into a phase of a lock's life that a probe of the same
    /// seed shows near it, rare phases as often as common ones, and what stops a client is made to
    /// end while the next owner works.
    Guided,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 3] = [Strategy::Random, Strategy::Swarm, Strategy::Guided];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Random => "random",
            Strategy::Swarm => "swarm",
            Strategy::Guided => "guided",
        }
    }

    /// The case of a seed. `change` is what the run will be made of, so that the probes of a guided
    /// search meet the same system.
    pub fn case(
        self,
        scenario: &Scenario,
        seed: Seed,
        options: CaseOptions,
        change: Option<&Change>,
    ) -> Case {
        match self {
            Strategy::Random => scenario.drawn(seed, options, 0),
            Strategy::Swarm => scenario.drawn(seed, options, SWARM_OFF_PERMILLE),
            Strategy::Guided => {
                let draft = scenario.drawn(seed, options, guide::OFF_PERMILLE);
                guide::guided(draft, scenario.traffic, change)
            }
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = ChoiceError;

    fn from_str(name: &str) -> Result<Self, ChoiceError> {
        let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| ChoiceError::Unknown {
            what: "strategy",
            name: name.to_owned(),
            known: Strategy::ALL.map(Strategy::name).join(", "),
        })
    }
}
