//! What no run can have recorded: a text that says it was damaged, or made by hand.
//!
//! Asked of a whole history that is read, event by event in its order, so that the judge need not
//! make sense of it. What can be recorded and only forbids a verdict, such as a clock that never
//! goes on again, is a matter of the judge's assumptions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Event, EventKind, Function, HoldingId, LeaseChange, OpId, Outcome, Reply};

/// No machine is up for longer than ten years, so no clock of a record shows more.
const UPTIME_MAX_NS: u64 = 10 * 365 * 86_400 * 1_000_000_000;

/// etcd grants no lease for longer (`MaxLeaseTTL` in its `server/lease/lessor.go`).
const GRANTED_MAX_S: i64 = 9_000_000_000;

/// What the events so far bind those after them to.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    at_ns: u64,
    /// Every operation that was invoked, and whether it is open.
    ops: BTreeMap<OpId, bool>,
    /// Every holding that an acquire named.
    holdings: BTreeSet<HoldingId>,
}

/// A field, and what is wrong with it.
type Fault = (&'static str, String);

impl SoFar {
    /// Takes the next event in; the field that cannot be, if there is one.
    pub(super) fn impossible(&mut self, event: &Event) -> Option<Fault> {
        if event.at_ns < self.at_ns {
            return Some(("at_ns", format!("is {} after {}", event.at_ns, self.at_ns)));
        }
        self.at_ns = event.at_ns;
        out_of_range(event).or_else(|| self.misnamed(&event.kind))
    }

    fn misnamed(&mut self, kind: &EventKind) -> Option<Fault> {
        match kind {
            EventKind::Invoke { op, holding, f } => {
                if self.ops.insert(*op, true).is_some() {
                    return Some(("op", format!("{} names two operations", op.0)));
                }
                let acquires = matches!(f, Function::Lock { .. } | Function::TryLock { .. });
                let holding = holding.filter(|_| acquires)?;
                let known = !self.holdings.insert(holding);
                known.then(|| ("holding", format!("{} is of two acquires", holding.0)))
            }
            EventKind::Return { op, .. } if self.ops.insert(*op, false) != Some(true) => {
                Some(("op", format!("{} returns without being open", op.0)))
            }
            _ => None,
        }
    }
}

fn out_of_range(event: &Event) -> Option<Fault> {
    let mut clocks = vec![("at_ns", event.at_ns)];
    // The time to live, and the longest that it may be.
    let mut ttl = None;
    match &event.kind {
        EventKind::Commit(commit) => clocks.push(("member_ns", commit.member_ns)),
        EventKind::Lease(lease) => {
            clocks.push(("member_ns", lease.member_ns));
            if let LeaseChange::Granted { ttl_s } = lease.change {
                ttl = Some((ttl_s, GRANTED_MAX_S));
            }
        }
        EventKind::Held { local_ns, .. } => clocks.push(("local_ns", *local_ns)),
        // Whatever is asked for, etcd may refuse it.
        EventKind::Invoke { f: Function::OpenSession { ttl_s }, .. } => {
            ttl = Some((*ttl_s, i64::MAX));
        }
        EventKind::Return { outcome: Outcome::Ok(Reply::Session { ttl_s, .. }), .. } => {
            ttl = Some((*ttl_s, GRANTED_MAX_S));
        }
        EventKind::Deadline { started_ns, ended_ns, .. } => {
            clocks.extend([("started_ns", *started_ns), ("ended_ns", *ended_ns)]);
        }
        _ => {}
    }
    if let Some((ttl_s, max)) = ttl.filter(|(ttl_s, max)| !(1..=*max).contains(ttl_s)) {
        return Some(("ttl_s", format!("is {ttl_s}, expected 1 to {max}")));
    }
    let (field, ns) = clocks.into_iter().find(|(_, ns)| *ns > UPTIME_MAX_NS)?;
    Some((field, format!("is {ns}, expected at most {UPTIME_MAX_NS}, ten years")))
}
