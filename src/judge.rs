//! From a run to its verdict: every checker, the classes of its writes, what it reached.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    checker::{self, Finding, Judgement, Verdict},
    fault::family_of,
    history::{EventKind, FaultAction, History},
    plan::{Fault, Plan, is_own_point},
    runner::Run,
    scenario,
};

/// What became of the faults of one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCount {
    /// Begun.
    pub applied: u64,
    /// Begun, and something changed by it.
    pub effective: u64,
    /// Not applied: the target was down, the point was not passed, nobody held the lock.
    pub skipped: u64,
}

/// A run with its verdict.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The run.
    pub run: Run,
    /// What each checker found, the classes of the writes, what was reached.
    pub judgement: Judgement,
    /// Its faults, by family.
    pub faults: BTreeMap<&'static str, FaultCount>,
}

/// A rule that a run broke, and the checker that says so: what shrinking keeps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BrokenRule {
    /// The checker, such as `no-stale-write`.
    pub checker: String,
    /// The rule within it, such as `stale-accepted`.
    pub rule: String,
}

impl BrokenRule {
    /// Whether this run broke it.
    pub fn is_in(&self, judged: &Judged) -> bool {
        judged.broken_rules().contains(self)
    }
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.checker, self.rule)
    }
}

/// The class of a run, or of many: the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunClass {
    /// Every checker passed, or had nothing to judge and may.
    Pass,
    /// A checker could not decide, or had nothing to judge.
    Unknown,
    /// A checker found a violation.
    Violation,
    /// The harness, or code under test, broke.
    HarnessError,
}

impl RunClass {
    /// The exit status of this class.
    pub fn exit_status(self) -> u8 {
        match self {
            RunClass::Pass => 0,
            RunClass::Violation => 1,
            RunClass::HarnessError => 3,
            RunClass::Unknown => 4,
        }
    }

    /// The worse of two: harness error, violation, unknown, pass.
    pub fn worse(self, other: RunClass) -> RunClass {
        let rank = |class| match class {
            RunClass::HarnessError => 3,
            RunClass::Violation => 2,
            RunClass::Unknown => 1,
            RunClass::Pass => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// The class in words.
    pub fn name(self) -> &'static str {
        match self {
            RunClass::Pass => "pass",
            RunClass::Unknown => "unknown",
            RunClass::Violation => "violation",
            RunClass::HarnessError => "harness error",
        }
    }
}

impl std::ops::AddAssign for FaultCount {
    fn add_assign(&mut self, other: FaultCount) {
        self.applied += other.applied;
        self.effective += other.effective;
        self.skipped += other.skipped;
    }
}

impl Judged {
    /// The class of the run.
    pub fn class(&self) -> RunClass {
        self.judgement.findings.iter().fold(RunClass::Pass, |class, finding| {
            class.worse(match finding.verdict {
                _ if finding.is_good() => RunClass::Pass,
                Verdict::Violation(_) => RunClass::Violation,
                Verdict::Pass | Verdict::Unknown(_) | Verdict::NotRun(_) => RunClass::Unknown,
            })
        })
    }

    /// The checkers that found a violation.
    pub fn violated(&self) -> impl Iterator<Item = &'static str> {
        let violated = |finding: &&Finding| finding.verdict.violation().is_some();
        self.judgement.findings.iter().filter(violated).map(|finding| finding.checker)
    }

    /// The rules that it broke, in the order of the checkers: the first decides.
    pub fn broken_rules(&self) -> Vec<BrokenRule> {
        let broken = self.judgement.findings.iter().filter_map(|finding| {
            let rule = finding.verdict.violation()?.rule.to_owned();
            Some(BrokenRule { checker: finding.checker.to_owned(), rule })
        });
        broken.collect()
    }

    /// The finding that decides: a violation before anything else; none if all passed.
    pub fn worst(&self) -> Option<&Finding> {
        self.judgement.worst()
    }

    /// The faults at points of the caller's own that were not passed so often, if at all: such a
    /// name is in no list, and may be misspelt.
    pub fn own_points_not_passed(&self) -> Vec<&Fault> {
        let skipped = self.run.history.events.iter().filter_map(|event| match &event.kind {
            EventKind::Fault { index, action: FaultAction::Skipped(_) } => {
                self.run.case.plan.faults.get(*index as usize)
            }
            _ => None,
        });
        skipped.filter(|fault| fault.kind.point().is_some_and(is_own_point)).collect()
    }

    /// The faults of the plan as sentences, by their index.
    pub fn fault_sentences(&self) -> BTreeMap<u32, String> {
        (0..).zip(self.run.case.plan.faults.iter().map(ToString::to_string)).collect()
    }
}

/// Judges a run with every checker, and a run of the control arm with its own rule too.
pub fn judge(run: Run) -> Judged {
    let plan = &run.case.plan;
    let families: BTreeMap<u32, &str> =
        (0..).zip(plan.faults.iter().map(|fault| family_of(&fault.kind).name)).collect();
    let mut judgement = checker::judge(&run.history, &families);
    if scenario::is_control(&run.case) {
        judgement.findings.push(control_arm(&judgement));
    }
    let faults = count_faults(&run.history, plan);
    Judged { run, judgement, faults }
}

/// Without faults nothing out of the ordinary may happen (D11). It is a rule about the harness's
/// own settings, so a run that breaks it is no violation of the lock but is not green either.
fn control_arm(judgement: &Judgement) -> Finding {
    let verdict = match checker::control_arm(&judgement.classes, &judgement.reached) {
        Ok(()) => Verdict::Pass,
        Err(why) => Verdict::Unknown(why),
    };
    let judged = judgement.classes.total();
    Finding { checker: "control-arm", judged, verdict }
}

fn count_faults(history: &History, plan: &Plan) -> BTreeMap<&'static str, FaultCount> {
    let mut counts: BTreeMap<&'static str, FaultCount> = BTreeMap::new();
    for event in &history.events {
        let EventKind::Fault { index, action } = &event.kind else { continue };
        let Some(fault) = plan.faults.get(*index as usize) else { continue };
        let count = counts.entry(family_of(&fault.kind).name).or_default();
        match action {
            FaultAction::Begin => count.applied += 1,
            FaultAction::Effect(effect) => count.effective += u64::from(*effect > 0),
            FaultAction::Skipped(_) => count.skipped += 1,
            FaultAction::End => {}
        }
    }
    counts
}
