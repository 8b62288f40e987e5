//! Call deadline (D9): each call with a deadline ends by it, plus the time that it states for its
//! cleaning up.
//!
//! On the caller's own clock, and only time counts in which the caller ran: whoever is stopped
//! cannot end anything. Judged where the caller says when its call ended, and its clock is known.

use super::{Checker, Finding, Idle, Violation, assumption::Assumption, index::Index};
use crate::history::EventKind;

const NAME: &str = "call-deadline";
/// A timer may come this much late.
const TIMER_NS: u64 = 5_000_000;

/// Judges every call whose end was noted with its deadline.
#[derive(Debug)]
pub struct CallDeadline;

impl Checker for CallDeadline {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "a call with a deadline ends by it, give or take its clean-up, while its caller runs"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[]
    }

    fn idle(&self) -> Idle {
        Idle::InARun
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let course = index.course();
        let (mut judged, mut violation) = (0, None);
        for event in &index.beside {
            let EventKind::Deadline { op, deadline_ns, ended_ns, cleanup_ns, .. } = event.kind
            else {
                continue;
            };
            let late_ns = ended_ns.saturating_sub(deadline_ns);
            let Some(ran_ns) = course.ran(event.node, event.at_ns, late_ns) else { continue };
            judged += 1;
            if ran_ns <= cleanup_ns.saturating_add(TIMER_NS) || violation.is_some() {
                continue;
            }
            let call = index.op(op).map(|op| &index.ops[op]);
            let message = format!(
                "operation {} of {} ended {} ms after its deadline, of which it ran {} ms; it may \
                 take {} ms to clean up",
                op.0,
                event.node,
                late_ns / 1_000_000,
                ran_ns / 1_000_000,
                cleanup_ns / 1_000_000
            );
            let ends = call.and_then(|call| call.end).map(|(seq, _)| seq);
            let events = call.map(|call| call.invoke).into_iter().chain(ends).chain([event.seq]);
            violation = Some(Violation::new(NAME, "late", message, events.collect()));
        }
        Finding::of(NAME, judged, violation, "no end of a call with a deadline was noted")
    }
}
