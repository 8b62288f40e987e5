//! What a checker says about a history.
//!
//! Only [`Verdict::Pass`] is green. A violation is data, not an error: it names the least set of
//! events that shows it. A checker that judged nothing says so instead of passing.

use std::fmt;

use serde::Serialize;

use super::Idle;

/// A checker's answer about one history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The checker.
    pub checker: &'static str,
    /// How many things it judged: writes classed, acquires, tenures.
    pub judged: u64,
    /// Its verdict.
    pub verdict: Verdict,
}

impl Finding {
    /// A violation if there is one, else a pass if anything was judged, else
    /// [`Verdict::NotRun`] with what was missing.
    pub fn of(
        checker: &'static str,
        judged: u64,
        violation: Option<Violation>,
        missing: &str,
    ) -> Finding {
        let verdict = match violation {
            Some(violation) => Verdict::Violation(violation),
            None if judged == 0 => Verdict::NotRun(missing.to_owned()),
            None => Verdict::Pass,
        };
        Finding { checker, judged, verdict }
    }

    /// Whether it is nothing against its history: a pass, or a checker that may be idle in a
    /// single run had nothing to judge.
    pub fn is_good(&self) -> bool {
        match self.verdict {
            Verdict::Pass => true,
            Verdict::NotRun(_) => {
                super::by_name(self.checker).is_some_and(|checker| checker.idle() != Idle::Never)
            }
            Verdict::Violation(_) | Verdict::Unknown(_) => false,
        }
    }
}

/// The four answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The property holds for everything that was judged.
    Pass,
    /// The property is broken.
    Violation(Violation),
    /// It cannot be decided, and why.
    Unknown(String),
    /// There was nothing to judge, and what was missing.
    NotRun(String),
}

impl Verdict {
    /// Whether it is [`Verdict::Pass`].
    pub fn is_pass(&self) -> bool {
        matches!(self, Verdict::Pass)
    }

    /// The violation, if it is one.
    pub fn violation(&self) -> Option<&Violation> {
        match self {
            Verdict::Violation(violation) => Some(violation),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Pass => f.write_str("pass"),
            Verdict::Violation(violation) => write!(f, "violation: {violation}"),
            Verdict::Unknown(why) => write!(f, "unknown: {why}"),
            Verdict::NotRun(why) => write!(f, "not run: {why}"),
        }
    }
}

/// A broken property with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The checker that found it.
    pub checker: &'static str,
    /// The broken rule within the checker, such as `stale-accepted`. Shrinking keeps checker and
    /// rule, whatever else changes.
    pub rule: &'static str,
    /// What happened, in one sentence.
    pub message: String,
    /// The `seq` of each event that is needed to see it, rising.
    pub events: Vec<u64>,
}

impl Violation {
    /// A violation; the events are put in order and named once.
    pub fn new(
        checker: &'static str,
        rule: &'static str,
        message: String,
        mut events: Vec<u64>,
    ) -> Violation {
        events.sort_unstable();
        events.dedup();
        Violation { checker, rule, message, events }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}
