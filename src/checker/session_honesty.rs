//! Session honesty (D9), its part that needs the client's clock only: whenever the client's code
//! says "held", its own monotonic clock shows less than the session's deadline.
//!
//! That the deadline counts from the sending of the last acknowledged renewal is left to the
//! session's own tests: a history does not hold the sendings.

use super::{Checker, Finding, Violation, assumption::Assumption, index::Index};
use crate::history::EventKind;

const NAME: &str = "session-honesty";

/// Judges every time that a client's code said that it holds the lock.
#[derive(Debug)]
pub struct SessionHonesty;

impl Checker for SessionHonesty {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "a session says \"held\" only before its deadline on its own clock"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let mut judged = 0;
        let mut violation = None;
        for event in &index.history.events {
            let EventKind::Held { holding, held: true, local_ns, deadline_ns } = event.kind else {
                continue;
            };
            judged += 1;
            if local_ns >= deadline_ns && violation.is_none() {
                let message = format!(
                    "{} said that {holding} is held {} ms past its deadline on its own clock",
                    event.node,
                    (local_ns - deadline_ns) / 1_000_000
                );
                let events = vec![event.seq];
                violation = Some(Violation::new(NAME, "past-deadline", message, events));
            }
        }
        Finding::of(NAME, judged, violation, "no client said that it holds the lock")
    }
}
