//! Session survival (D9): a lease does not run out while its client runs and can reach etcd.
//!
//! A session renews at a third of the TTL, and what is lost it sends again at 9, 11 and 15 parts of
//! 24. So a session that was surely alive (a renewal was processed in a quiet time, so its answer
//! arrived too) renews again if quiet returns before half the TTL is over, and then goes on every
//! third. Quiet is: client and member run at true rate, both directions are open, no fault is about.

use std::collections::BTreeMap;

use super::{
    Checker, Finding, Idle, Violation,
    assumption::Assumption,
    course::{Course, Span},
    index::Index,
};
use crate::history::{EventKind, Function, LeaseChange, NodeName, Outcome, Reply};

const NAME: &str = "session-survival";
/// In quiet a renewal is processed and its answer there within this time.
const ROUND_TRIP_NS: u64 = 300_000_000;
/// What was processed after so long a quiet was sent in it.
const SENT_NS: u64 = 500_000_000;

/// Judges every expiry of the lease of a session that its client wanted to go on.
#[derive(Debug)]
pub struct SessionSurvival;

impl Checker for SessionSurvival {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "no lease runs out while its client runs and can reach etcd in time"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[]
    }

    fn idle(&self) -> Idle {
        Idle::InARun
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let course = Course::new(index.history);
        let mut pass = Pass::default();
        for (at, event) in index.history.events.iter().enumerate() {
            match &event.kind {
                EventKind::Return { op, outcome: Outcome::Ok(Reply::Session { lease, .. }) } => {
                    if index.op(*op).is_some() {
                        pass.wanted.insert(event.node, *lease);
                    }
                }
                EventKind::Invoke {
                    f: Function::CloseSession | Function::OpenSession { .. },
                    ..
                }
                | EventKind::Killed => drop(pass.wanted.remove(&event.node)),
                EventKind::Lease(lease) => {
                    pass.lease(&course, index, at, (lease.lease, lease.change));
                }
                _ => {}
            }
        }
        let missing = "no lease of a session that was to go on ran out";
        Finding::of(NAME, pass.judged, pass.violation, missing)
    }
}

#[derive(Default)]
struct Pass {
    /// The lease that each client wants to keep.
    wanted: BTreeMap<NodeName, i64>,
    /// Per lease its TTL, and the events of its grant and its renewals: place and true time.
    processed: BTreeMap<i64, (u64, Vec<(u64, u64)>)>,
    judged: u64,
    violation: Option<Violation>,
}

impl Pass {
    fn lease(
        &mut self,
        course: &Course,
        index: &Index<'_>,
        at: usize,
        (lease, change): (i64, LeaseChange),
    ) {
        let event = &index.history.events[at];
        match change {
            LeaseChange::Granted { ttl_s } => {
                let ttl_ns = ttl_s.unsigned_abs().saturating_mul(1_000_000_000);
                self.processed.insert(lease, (ttl_ns, vec![(event.seq, event.at_ns)]));
            }
            LeaseChange::Renewed => {
                if let Some((_, times)) = self.processed.get_mut(&lease) {
                    times.push((event.seq, event.at_ns));
                }
            }
            LeaseChange::Revoked => drop(self.processed.remove(&lease)),
            LeaseChange::Promoted { .. } => {}
            LeaseChange::Expired => {
                let Some((ttl_ns, times)) = self.processed.remove(&lease) else { return };
                let client = self.wanted.iter().find(|(_, wanted)| **wanted == lease);
                let Some(client) = client.map(|(client, _)| *client) else { return };
                // Where the rates of clocks are not known, nothing is known of the quiet.
                if course.permille(client, event.at_ns).is_none() {
                    return;
                }
                self.judged += 1;
                // From before the grant, so that its own answer may count as sure.
                let from_ns = times[0].1.saturating_sub(2 * SENT_NS);
                let span = Span { from_ns, to_ns: event.at_ns };
                let quiet = course.quiet(client, event.node, span);
                if let Some(span) = missed(&quiet, ttl_ns, &times)
                    && self.violation.is_none()
                {
                    let last = times[times.len() - 1];
                    let message = format!(
                        "lease {lease:x} of {client} ran out, although the way to etcd was open \
                         for {} ms up to {} ms after its last renewal",
                        (span.to_ns - span.from_ns) / 1_000_000,
                        (span.to_ns - last.1) / 1_000_000,
                    );
                    let events = vec![last.0, event.seq];
                    self.violation = Some(Violation::new(NAME, "expired", message, events));
                }
            }
        }
    }
}

/// The quiet stretch in which a session that was alive should have renewed, and did not.
fn missed(quiet: &[Span], ttl_ns: u64, processed: &[(u64, u64)]) -> Option<Span> {
    let last_ns = processed.last()?.1;
    let parts = |parts: u64| ttl_ns / 24 * parts;
    quiet.iter().copied().find(|span| {
        let acknowledged = processed.iter().map(|(_, at_ns)| *at_ns).filter(|at_ns| {
            let sure = |quiet: &Span| {
                quiet.from_ns + SENT_NS <= *at_ns && at_ns + ROUND_TRIP_NS <= quiet.to_ns
            };
            *at_ns <= span.to_ns && quiet.iter().any(sure)
        });
        let Some(alive_ns) = acknowledged.max() else { return false };
        let in_time = alive_ns + parts(12) >= span.from_ns;
        let long_enough = alive_ns + parts(15) + ROUND_TRIP_NS <= span.to_ns;
        let went_on = last_ns + parts(9) + ROUND_TRIP_NS >= span.to_ns;
        in_time && long_enough && !went_on
    })
}
