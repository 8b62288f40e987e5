//! Session honesty (D9): whenever the client's code says "held", its own monotonic clock shows less
//! than the TTL since the sending of the last acknowledged renewal or grant.
//!
//! Four rules. The session's own deadline must be ahead, and was when an acquire answered ok. And,
//! because that deadline is the session's opinion, the truth must allow it: a renewal is sent
//! before the member processes it, so on a client whose clock is true, "held" comes less than the
//! TTL after the last that was processed, and so does the deadline itself.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Finding, Violation, assumption::Assumption, index::Index};
use crate::history::{Event, EventKind, HoldingId, LeaseChange, NodeName, Outcome, Reply};

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
        let mut truth = Truth::default();
        let mut granted = Granted::default();
        let leases: BTreeMap<HoldingId, Option<i64>> =
            index.holdings.iter().filter_map(|h| Some((h.id?, h.lease))).collect();
        for event in &index.history.events {
            truth.learn(event);
            let just_granted = granted.just_before(event);
            let EventKind::Held { holding, held, local_ns, deadline_ns } = event.kind else {
                continue;
            };
            if !held && !just_granted {
                continue;
            }
            judged += 1;
            let found = if local_ns >= deadline_ns && just_granted {
                let late_ms = (local_ns - deadline_ns) / 1_000_000;
                Some(("acquired-late", format!("{late_ms} ms past its deadline"), None))
            } else if local_ns >= deadline_ns {
                let late_ms = (local_ns - deadline_ns) / 1_000_000;
                Some(("past-deadline", format!("{late_ms} ms past its deadline"), None))
            } else {
                let lease = leases.get(&holding).copied().flatten();
                let outlived = lease.and_then(|lease| truth.outlived(lease, event));
                let outlived = outlived.map(|(seq, ms)| {
                    let words = format!("{ms} ms after the last renewal that etcd processed");
                    ("outlived-renewal", words, Some(seq))
                });
                let late = lease.and_then(|lease| truth.deadline_late(lease, event));
                outlived.or(late.map(|(seq, us)| {
                    let words = format!(
                        "with a deadline {us} us later than the last renewal that etcd processed \
                         allows"
                    );
                    ("deadline-late", words, Some(seq))
                }))
            };
            if let (Some((rule, words, base)), None) = (found, &violation) {
                let node = event.node;
                let what = if just_granted { "was granted" } else { "said that it holds" };
                let message = format!("{node} {what} {holding} {words} on its own clock");
                let events = base.into_iter().chain([event.seq]).collect();
                violation = Some(Violation::new(NAME, rule, message, events));
            }
        }
        Finding::of(NAME, judged, violation, "no client said that it holds the lock")
    }
}

/// The acquires that answered ok just now.
#[derive(Default)]
struct Granted(BTreeMap<NodeName, u64>);

impl Granted {
    /// Whether this is the next thing that the client does after an acquire's ok, at the same
    /// instant: then what it is told of its deadline holds of the acquire, too.
    fn just_before(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Return { outcome: Outcome::Ok(Reply::Acquired { .. }), .. } => {
                self.0.insert(event.node, event.at_ns);
                false
            }
            // What is told of the node, and not by its client; and what ends the acquire itself.
            EventKind::Fault { .. }
            | EventKind::Link { .. }
            | EventKind::Rate { .. }
            | EventKind::Deadline { .. } => false,
            _ => self.0.remove(&event.node) == Some(event.at_ns),
        }
    }
}

/// What etcd processed, and whose clock can be held against it.
#[derive(Default)]
struct Truth {
    /// Per lease: granted TTL, and `seq` and true time of the last grant or renewal.
    leases: BTreeMap<i64, (u64, u64, u64)>,
    /// Nodes whose clock was seen to differ from true time: a rate or a suspend has moved it.
    moved: BTreeSet<NodeName>,
}

impl Truth {
    fn learn(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Lease(lease) => match lease.change {
                LeaseChange::Granted { ttl_s } => {
                    let ttl_ns = ttl_s.unsigned_abs().saturating_mul(1_000_000_000);
                    self.leases.insert(lease.lease, (ttl_ns, event.seq, event.at_ns));
                }
                LeaseChange::Renewed => {
                    if let Some((_, seq, at_ns)) = self.leases.get_mut(&lease.lease) {
                        (*seq, *at_ns) = (event.seq, event.at_ns);
                    }
                }
                LeaseChange::Promoted { .. } | LeaseChange::Expired | LeaseChange::Revoked => {}
            },
            // A true clock and the record are read at one moment.
            EventKind::Held { local_ns, .. } if local_ns.abs_diff(event.at_ns) > 1_000_000 => {
                self.moved.insert(event.node);
            }
            EventKind::Rate { permille } if *permille != 1000 => {
                self.moved.insert(event.node);
            }
            _ => {}
        }
    }

    /// If the deadline that the session names is later than the last grant or renewal that was
    /// processed allows (it was sent before that): the `seq` of that, and by how many microseconds.
    fn deadline_late(&self, lease: i64, held: &Event) -> Option<(u64, u64)> {
        let EventKind::Held { local_ns, deadline_ns, .. } = held.kind else { return None };
        let (ttl_ns, seq, at_ns) = *self.leases.get(&lease)?;
        let allowed_ns = at_ns.saturating_add(ttl_ns);
        let deadline_ns = held.at_ns.saturating_add(deadline_ns.checked_sub(local_ns)?);
        let late_ns = deadline_ns.checked_sub(allowed_ns).filter(|late_ns| *late_ns > 0)?;
        (!self.moved.contains(&held.node)).then_some((seq, late_ns / 1000))
    }

    /// If "held" came a whole TTL or more after the last grant or renewal: the `seq` of that, and
    /// the milliseconds since.
    fn outlived(&self, lease: i64, held: &Event) -> Option<(u64, u64)> {
        let (ttl_ns, seq, at_ns) = *self.leases.get(&lease)?;
        let since = held.at_ns.checked_sub(at_ns)?;
        let outlived = since >= ttl_ns && !self.moved.contains(&held.node);
        outlived.then_some((seq, since / 1_000_000))
    }
}
