//! Liveness (D10): after everything healed, whoever waits for the lock gets on.
//!
//! The bound of D10 is a sum over those before a waiter, so it is judged one by one: no head of the
//! queue that nobody works under may stay longer than a dead one needs to run out (all run out in
//! parallel), or a living one to be told. Whether the waiter itself is told, that it is first or
//! that its own key is gone, depends on nobody else: that is judged at any time in which nothing
//! stands between it and etcd. A violation names what stood at the head. It does not lean on a
//! complete history: a client that never ends is the very thing to be found.

mod head;

use super::{
    Checker, Finding, Idle, Violation,
    assumption::Assumption,
    course::{Course, Span},
    index::{Holding, Index},
};
use crate::history::{EventKind, LeaseChange, NodeName, Phase};

use self::head::{Head, Heads};

const NAME: &str = "liveness";

const SECOND_NS: u64 = 1_000_000_000;
/// Messages that a fault has held are there by then.
const HELD_NS: u64 = 10 * SECOND_NS;
/// An election time-out, and the retry of a revocation that failed once.
const ELECTION_NS: u64 = SECOND_NS;
const REVOKE_RETRY_NS: u64 = 3 * SECOND_NS;
/// So many leases are revoked in half a second.
const REVOKES_PER_TICK: u64 = 500;
/// Request time-out, the longest back-off and the hand-over.
const ANSWER_NS: u64 = 5 * SECOND_NS;
/// Timers and one more look for leases that have run out.
const SLACK_NS: u64 = SECOND_NS;
/// A history that ends so long after the heal without its final reads was given up.
const GIVEN_UP_NS: u64 = 60 * SECOND_NS;

/// Judges every acquire: what it was told in quiet times, and after the heal how long it waited.
#[derive(Debug)]
pub struct Liveness;

impl Checker for Liveness {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "whoever waits is told of its turn, and after the heal nobody waits for ever"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[Assumption::Healed]
    }

    fn idle(&self) -> Idle {
        Idle::InARun
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let Some(bounds) = Bounds::new(index) else {
            return Finding::of(NAME, 0, None, "no heal, or no rates of clocks are known");
        };
        let heads = Heads::new(index, &bounds);
        let (mut judged, mut first) = (0, None::<Violation>);
        for (at, holding) in index.holdings.iter().enumerate() {
            let wait = Wait::new(index, holding);
            judged += 1;
            // As a rule an acquire is over before anything of this could be said of it.
            if wait.to_ns - wait.from_ns <= ANSWER_NS {
                continue;
            }
            let found = not_told(index, &bounds, at, wait).or_else(|| {
                let from_ns = wait.from_ns.max(bounds.healed_ns);
                let after = Wait { from_ns, ..wait };
                (from_ns < wait.to_ns).then(|| stuck_behind(index, &heads, at, after))?
            });
            let earlier = |found: &Violation, first: &Violation| found.events < first.events;
            if let Some(found) = found
                && first.as_ref().is_none_or(|first| earlier(&found, first))
            {
                first = Some(found);
            }
        }
        let violation = first.or_else(|| never_ended(index, &bounds));
        Finding::of(NAME, judged, violation, "nobody asked for the lock")
    }
}

/// The times that a judgement rests on, all in true time.
struct Bounds<'i> {
    /// When everything had healed.
    healed_ns: u64,
    /// Held messages have arrived by then.
    arrived_ns: u64,
    /// The member that grants leases.
    member: NodeName,
    course: &'i Course,
    /// From the last renewal or promotion to the end of a lease, at most.
    dead_ns: u64,
    /// What was dead at the heal, has run out by then.
    dead_by_ns: u64,
    /// The last event.
    end_ns: u64,
    /// `seq` of the last promotion that counts, and its time.
    promoted: Option<(u64, u64)>,
}

impl<'i> Bounds<'i> {
    fn new(index: &'i Index<'_>) -> Option<Bounds<'i>> {
        let events = &index.beside;
        let settled = |kind: &EventKind| matches!(kind, EventKind::Phase(Phase::Settle));
        let healed_ns = events.iter().find(|event| settled(&event.kind))?.at_ns;
        let end_ns = index.history.events.last()?.at_ns;
        let (mut started_ns, mut promoted, mut member) = (healed_ns, None, None);
        let mut living: Vec<(i64, u64)> = Vec::new();
        for event in events.iter().take_while(|event| event.at_ns <= healed_ns + HELD_NS) {
            let is_member = matches!(event.node, NodeName::Etcd(_));
            match &event.kind {
                EventKind::Restarted if is_member => started_ns = started_ns.max(event.at_ns),
                EventKind::Lease(lease) => {
                    member = Some(event.node);
                    match lease.change {
                        LeaseChange::Promoted { .. } => {
                            // Later ones have no fault as their cause and do not count.
                            started_ns = started_ns.max(event.at_ns);
                            promoted = Some((event.seq, event.at_ns));
                        }
                        LeaseChange::Granted { ttl_s } => {
                            living.push((lease.lease, ttl_s.unsigned_abs()));
                        }
                        LeaseChange::Expired | LeaseChange::Revoked => {
                            if event.at_ns < healed_ns {
                                living.retain(|(id, _)| *id != lease.lease);
                            }
                        }
                        LeaseChange::Renewed => {}
                    }
                }
                _ => {}
            }
        }
        let (member, course) = (member?, index.course());
        let permille = course.permille(member, started_ns)?.max(1);
        let ttl_max_s = living.iter().map(|(_, ttl_s)| *ttl_s).max().unwrap_or(0);
        let ticks = (living.len() as u64).div_ceil(REVOKES_PER_TICK).max(1);
        let more_ns = ELECTION_NS + REVOKE_RETRY_NS + ticks * SECOND_NS / 2;
        let local_ns = ttl_max_s.saturating_mul(SECOND_NS).saturating_add(more_ns);
        // Beyond this no sum of it with a time of the history means anything.
        let dead_ns = (local_ns.saturating_mul(1000) / u64::from(permille)).min(u64::MAX / 4);
        let dead_ns = dead_ns + SLACK_NS;
        let dead_by_ns = started_ns.saturating_add(dead_ns);
        let arrived_ns = started_ns + HELD_NS;
        Some(Bounds {
            healed_ns,
            arrived_ns,
            member,
            course,
            dead_ns,
            dead_by_ns,
            end_ns,
            promoted,
        })
    }
}

/// How long an acquire waited, in true time.
#[derive(Debug, Clone, Copy)]
struct Wait {
    from_ns: u64,
    to_ns: u64,
    /// `seq` of its end; that of the last event if there is none.
    end: u64,
}

impl Wait {
    fn new(index: &Index<'_>, holding: &Holding<'_>) -> Wait {
        let op = &index.ops[holding.acquire];
        let end = op.end.map(|(seq, _)| seq).or_else(|| killed(index, op.node, op.invoke));
        let end = end.unwrap_or(index.history.events.len() as u64 - 1);
        Wait { from_ns: at(index, op.invoke), to_ns: at(index, end), end }
    }
}

/// `seq` of the kill of a node after an event.
fn killed(index: &Index<'_>, node: NodeName, after: u64) -> Option<u64> {
    let is_kill = |kind: &EventKind| matches!(kind, EventKind::Killed);
    let later = index.beside_after(after);
    let mut kills = later.filter(|event| event.node == node && is_kill(&event.kind));
    kills.next().map(|event| event.seq)
}

/// The true time of an event.
fn at(index: &Index<'_>, seq: u64) -> u64 {
    index.history.events.get(seq as usize).map_or(u64::MAX, |event| event.at_ns)
}

/// A waiter that is first, or whose own key is gone, and is not told for a while in which nothing
/// hinders it.
fn not_told(
    index: &Index<'_>,
    bounds: &Bounds<'_>,
    holding: usize,
    wait: Wait,
) -> Option<Violation> {
    let Holding { node, acquire, incarnation, lock, .. } = index.holdings[holding];
    let span = Span { from_ns: wait.from_ns, to_ns: wait.to_ns };
    let quiet = bounds.course.quiet(node, bounds.member, span);
    let long = |from_ns: u64, to_ns: u64| {
        let within = |span: &Span| span.to_ns.min(to_ns).saturating_sub(span.from_ns.max(from_ns));
        quiet.iter().map(within).find(|length| *length > ANSWER_NS)
    };
    let invoke = index.ops[acquire].invoke;
    let blame = |rule, what: &str, length: u64, event: Option<u64>| {
        let who = index.describe_holding(holding);
        let message = format!(
            "{who} waited for {} in which nothing stood between it and etcd, and {what}",
            words(length)
        );
        let events = event.into_iter().chain([invoke, wait.end]).collect();
        Some(Violation::new(NAME, rule, message, events))
    };
    let gone = incarnation.and_then(|own| index.incarnations[own].ended);
    if let Some(gone) = gone.filter(|gone| gone.seq < wait.end)
        && let Some(length) = long(at(index, gone.seq), wait.to_ns)
    {
        return blame("own-key-gone", "its own queue key was gone", length, Some(gone.seq));
    }
    let owners = &index.locks[lock].owners;
    let before = owners.partition_point(|change| at(index, change.seq) <= wait.from_ns);
    let first = before.checked_sub(1);
    let mut from = (wait.from_ns, first.map(|first| owners[first]));
    for next in owners[before..].iter().map(Some).chain([None]) {
        let to_ns = next.map_or(wait.to_ns, |next| at(index, next.seq)).min(wait.to_ns);
        let owner = from.1.and_then(|change| change.owner);
        let nobody = owner.is_none() || owner == incarnation;
        if let Some(length) = long(from.0, to_ns).filter(|_| nobody) {
            let what = match owner {
                None => "the queue was empty",
                Some(_) => "it was first in the queue",
            };
            return blame("lost-wake-up", what, length, from.1.map(|change| change.seq));
        }
        if to_ns >= wait.to_ns {
            break;
        }
        from = (to_ns, next.copied());
    }
    None
}

/// The first head of the queue that stayed longer than it may.
fn stuck_behind(
    index: &Index<'_>,
    heads: &Heads<'_, '_>,
    holding: usize,
    wait: Wait,
) -> Option<Violation> {
    let lock = &index.locks[index.holdings[holding].lock];
    let after = lock.owners.partition_point(|change| at(index, change.seq) <= wait.from_ns);
    let mut from = (wait.from_ns, after.checked_sub(1).and_then(|last| lock.owners[last].owner));
    let changes = lock.owners[after..].iter().map(|change| (at(index, change.seq), change.owner));
    for (to_ns, next) in changes.chain([(u64::MAX, None)]) {
        let to_ns = to_ns.min(wait.to_ns);
        // A head that its client takes up again was nobody's up to then.
        for end_ns in heads.taken_up(from.1, (from.0, to_ns)).chain([to_ns]) {
            let head = heads.at_end(holding, from.1, (from.0, end_ns));
            if let Some(head) = head.filter(|head| end_ns > head.due_ns) {
                return Some(past_the_bound(index, head, holding, wait, end_ns));
            }
        }
        if to_ns >= wait.to_ns {
            break;
        }
        from = (to_ns, next);
    }
    None
}

fn past_the_bound(
    index: &Index<'_>,
    Head { rule, due_ns, what, events }: Head,
    holding: usize,
    wait: Wait,
    end_ns: u64,
) -> Violation {
    let who = index.describe_holding(holding);
    let waited = words(end_ns - wait.from_ns);
    let late = words(end_ns - due_ns);
    let message =
        format!("{who} waited {waited} after the heal, {late} past the bound; at the head: {what}");
    let invoke = index.ops[index.holdings[holding].acquire].invoke;
    let events = events.into_iter().chain([invoke, wait.end]).collect();
    Violation::new(NAME, rule, message, events)
}

/// In a run that was given up: an operation that never ended although its process lives.
fn never_ended(index: &Index<'_>, bounds: &Bounds<'_>) -> Option<Violation> {
    let finals = |kind: &EventKind| matches!(kind, EventKind::Phase(Phase::FinalReads));
    let complete = index.beside.iter().any(|event| finals(&event.kind));
    if complete || bounds.end_ns < bounds.healed_ns + GIVEN_UP_NS {
        return None;
    }
    let hangs = |op: &&super::index::Op<'_>| {
        op.end.is_none() && killed(index, op.node, op.invoke).is_none()
    };
    let op = index.ops.iter().find(hangs)?;
    let message = format!(
        "operation {} of {} never ended, {} after everything healed",
        op.id.0,
        op.node,
        words(bounds.end_ns - bounds.healed_ns)
    );
    let last = index.history.events.len() as u64 - 1;
    Some(Violation::new(NAME, "stuck-call", message, vec![op.invoke, last]))
}

fn words(ns: u64) -> String {
    format!("{}.{} s", ns / SECOND_NS, ns % SECOND_NS / 100_000_000)
}
