//! From a run to its verdict: every checker, the classes of its writes, what it reached.

use std::collections::BTreeMap;

use crate::{
    checker::{self, Classes, FaultInfo, Finding, Index, Reached, Verdict},
    fault::family_of,
    history::{EventKind, FaultAction, History},
    plan::Plan,
    runner::Run,
    scenario,
};

/// What became of the faults of one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    /// What each checker found.
    pub findings: Vec<Finding>,
    /// The classes of its writes.
    pub classes: Classes,
    /// What it reached.
    pub reached: Reached,
    /// Its faults, by family.
    pub faults: BTreeMap<&'static str, FaultCount>,
}

/// The class of a run, or of many: the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunClass {
    /// Every checker passed.
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

impl Judged {
    /// The class of the run.
    pub fn class(&self) -> RunClass {
        self.findings.iter().fold(RunClass::Pass, |class, finding| {
            class.worse(match finding.verdict {
                Verdict::Pass => RunClass::Pass,
                Verdict::Violation(_) => RunClass::Violation,
                Verdict::Unknown(_) | Verdict::NotRun(_) => RunClass::Unknown,
            })
        })
    }

    /// The checkers that found a violation.
    pub fn violated(&self) -> impl Iterator<Item = &'static str> {
        let violated = |finding: &&Finding| matches!(finding.verdict, Verdict::Violation(_));
        self.findings.iter().filter(violated).map(|finding| finding.checker)
    }

    /// The first finding that is not a pass: a violation before anything else.
    pub fn worst(&self) -> Option<&Finding> {
        let violation = |finding: &&Finding| matches!(finding.verdict, Verdict::Violation(_));
        let not_pass = |finding: &&Finding| !matches!(finding.verdict, Verdict::Pass);
        self.findings.iter().find(violation).or_else(|| self.findings.iter().find(not_pass))
    }
}

/// Judges a run with every checker.
pub fn judge(run: Run) -> Judged {
    let faults: BTreeMap<u32, FaultInfo> = (0..)
        .zip(&run.case.plan.faults)
        .map(|(index, fault)| {
            let family = family_of(&fault.kind).name;
            (index, FaultInfo { family, nodes: fault.kind.nodes() })
        })
        .collect();
    let index = Index::new(&run.history);
    let mut findings: Vec<Finding> =
        checker::CATALOG.iter().map(|checker| checker.judge(&index)).collect();
    let control = scenario::find(&run.case.scenario).is_ok_and(|scenario| scenario.control);
    if control {
        findings.push(checker::control_arm(&index));
    }
    let classes = checker::classes(&index);
    let reached = checker::reached(&index, &faults);
    let faults = count_faults(&run.history, &run.case.plan);
    Judged { run, findings, classes, reached, faults }
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
