//! All checkers over one history, and what their verdicts are worth together.
//!
//! A verdict that leans on an assumption which does not hold becomes unknown, violations included;
//! a violation that does not lean on it stands (D11).

use std::collections::BTreeMap;

use super::{
    Assumption, Checker, Classes, Finding, Index, Reached, Verdict, Violation, all,
    reached::reached_in,
};
use crate::history::History;

/// Everything that the judge says about one history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// One finding a checker, in the order of [`all`].
    pub findings: Vec<Finding>,
    /// The classes of its writes.
    pub classes: Classes,
    /// What happened in it.
    pub reached: Reached,
}

impl Judgement {
    /// The first violation, if there is one.
    pub fn violation(&self) -> Option<&Violation> {
        self.findings.iter().find_map(|finding| finding.verdict.violation())
    }

    /// The finding that decides: the first violation, else the first that is not good.
    pub fn worst(&self) -> Option<&Finding> {
        let violated = |finding: &&Finding| finding.verdict.violation().is_some();
        let findings = &self.findings;
        findings
            .iter()
            .find(violated)
            .or_else(|| findings.iter().find(|finding| !finding.is_good()))
    }
}

/// Judges a history with every checker. `families` names the family of each fault of the plan by
/// its index; a fault that it leaves out counts for no reached property.
pub fn judge(history: &History, families: &BTreeMap<u32, &str>) -> Judgement {
    let index = Index::new(history);
    let failures = index.failed_assumptions();
    let weighed = |checker: &&dyn Checker| weigh(*checker, checker.check(&index), failures);
    let findings = all().iter().map(weighed).collect();
    let reached = reached_in(&index, families);
    Judgement { findings, classes: index.classification().classes, reached }
}

fn weigh(
    checker: &dyn Checker,
    mut finding: Finding,
    failures: &[(Assumption, String)],
) -> Finding {
    let leaned = failures.iter().find(|(failed, _)| checker.leans_on().contains(failed));
    let decided = matches!(finding.verdict, Verdict::Pass | Verdict::Violation(_));
    if let (true, Some((assumption, why))) = (decided, leaned) {
        let verdict = finding.verdict;
        finding.verdict = Verdict::Unknown(format!("{assumption} fails ({why}); else {verdict}"));
    }
    finding
}
