//! Session survival (D9): a lease does not run out while its client runs and can reach etcd.
//!
//! A session renews at a third of the TTL, and what is lost it sends again at 9, 11 and 15 parts of
//! 24. So a session that was surely alive (a renewal was processed in a quiet time, so its answer
//! arrived too) renews again if quiet returns before half the TTL is over, and then goes on every
//! third. Quiet is: client and member run at true rate, both directions are open, no fault is
//! about.

use std::collections::BTreeMap;

use super::{
    Checker, Finding, Idle, Violation,
    assumption::Assumption,
    course::{Course, Span},
    index::Index,
};
use crate::history::{
    Event, EventKind, Function, LeaseChange, LeaseEvent, NodeName, Outcome, Reply,
};

const NAME: &str = "session-survival";
/// In quiet a renewal is processed and its answer there within this time.
const ROUND_TRIP_NS: u64 = 300_000_000;
/// What was processed after so long a quiet was sent in it.
const SENT_NS: u64 = 500_000_000;

/// Judges every expiry of the lease of a session that its client wanted to go on, and every session
/// that its client gave up when that time was over.
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
        let course = index.course();
        let mut pass = Pass::default();
        for event in &index.beside {
            match &event.kind {
                EventKind::Return {
                    outcome: Outcome::Ok(Reply::Session { lease, .. }), ..
                } => {
                    pass.wanted.insert(event.node, *lease);
                }
                EventKind::Invoke {
                    f: Function::CloseSession | Function::OpenSession { .. },
                    ..
                } => {
                    pass.given_up(course, event, event.node);
                    pass.wanted.remove(&event.node);
                }
                EventKind::Killed => drop(pass.wanted.remove(&event.node)),
                EventKind::Lease(lease) => pass.lease(course, event, lease),
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
    /// Who grants them.
    member: Option<NodeName>,
    judged: u64,
    violation: Option<Violation>,
}

impl Pass {
    fn lease(&mut self, course: &Course, event: &Event, lease: &LeaseEvent) {
        match lease.change {
            LeaseChange::Granted { ttl_s } => {
                let ttl_ns = ttl_s.unsigned_abs().saturating_mul(1_000_000_000);
                self.member = Some(event.node);
                self.processed.insert(lease.lease, (ttl_ns, vec![(event.seq, event.at_ns)]));
            }
            LeaseChange::Renewed => {
                if let Some((_, times)) = self.processed.get_mut(&lease.lease) {
                    times.push((event.seq, event.at_ns));
                }
            }
            LeaseChange::Revoked => drop(self.processed.remove(&lease.lease)),
            LeaseChange::Promoted { .. } => {}
            LeaseChange::Expired => {
                let wanted = self.wanted.iter().find(|(_, wanted)| **wanted == lease.lease);
                if let Some(client) = wanted.map(|(client, _)| *client) {
                    self.judge(course, event, client, lease.lease);
                }
                self.processed.remove(&lease.lease);
            }
        }
    }

    /// A client gives its session up: by its own choice, unless the time of its lease is over.
    fn given_up(&mut self, course: &Course, event: &Event, client: NodeName) {
        let Some(lease) = self.wanted.get(&client).copied() else { return };
        let over = self.processed.get(&lease).is_some_and(|(ttl_ns, times)| {
            let last_ns = times.last().map_or(0, |(_, at_ns)| *at_ns);
            event.at_ns + ROUND_TRIP_NS >= last_ns + ttl_ns
        });
        if over {
            self.judge(course, event, client, lease);
        }
    }

    fn judge(&mut self, course: &Course, event: &Event, client: NodeName, lease: i64) {
        let (Some((ttl_ns, times)), Some(member)) = (self.processed.get(&lease), self.member)
        else {
            return;
        };
        // Where the rates of clocks are not known, nothing is known of the quiet.
        if course.permille(client, event.at_ns).is_none() {
            return;
        }
        self.judged += 1;
        // From before the grant, so that its own answer may count as sure.
        let from_ns = times[0].1.saturating_sub(2 * SENT_NS);
        let quiet = course.quiet(client, member, Span { from_ns, to_ns: event.at_ns });
        let kept_time = |from_ns, to_ns| course.kept_time(client, Span { from_ns, to_ns });
        let missed = missed(&quiet, *ttl_ns, times, &kept_time);
        let Some(span) = missed.filter(|_| self.violation.is_none()) else { return };
        let last = times[times.len() - 1];
        let message = format!(
            "the time of lease {lease:x} of {client} was over, although the way to etcd was open \
             for {} ms up to {} ms after its last renewal",
            (span.to_ns - span.from_ns) / 1_000_000,
            (span.to_ns - last.1) / 1_000_000,
        );
        self.violation = Some(Violation::new(NAME, "expired", message, vec![last.0, event.seq]));
    }
}

/// The quiet stretch in which a session that was alive should have renewed, and did not. Its client
/// must have kept time since: one that was suspended does not know how late it is.
fn missed(
    quiet: &[Span],
    ttl_ns: u64,
    processed: &[(u64, u64)],
    kept_time: &dyn Fn(u64, u64) -> bool,
) -> Option<Span> {
    let last_ns = processed.last()?.1;
    let parts = |parts: u64| ttl_ns / 24 * parts;
    let is_sure = |at_ns: &u64| {
        let began = quiet.partition_point(|span| span.from_ns + SENT_NS <= *at_ns);
        let last = began.checked_sub(1).map(|last| quiet[last]);
        last.is_some_and(|span| at_ns + ROUND_TRIP_NS <= span.to_ns)
    };
    let times = processed.iter().map(|(_, at_ns)| *at_ns);
    let acknowledged: Vec<u64> = times.filter(is_sure).collect();
    quiet.iter().copied().find(|span| {
        let before = acknowledged.partition_point(|at_ns| *at_ns <= span.to_ns);
        let Some(last) = before.checked_sub(1) else { return false };
        let alive_ns = acknowledged[last];
        let in_time = alive_ns + parts(12) >= span.from_ns;
        let long_enough = alive_ns + parts(15) + ROUND_TRIP_NS <= span.to_ns;
        let went_on = last_ns + parts(9) + ROUND_TRIP_NS >= span.to_ns;
        in_time && long_enough && !went_on && kept_time(alive_ns, span.to_ns)
    })
}
