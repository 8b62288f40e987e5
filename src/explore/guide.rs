//! The guided search: probes of the seed show who is when in which phase of a lock's life, and the
//! faults of a drawn plan are put there.
//!
//! Chance hits a phase as often as it is long, and the ones that matter are short: between the
//! grant and its answer, between a check and its write, and above all the moment at which a client
//! that was stopped under its lock goes on. So each phase near a fault is as likely as another, the
//! fault strikes the client that is in it, and what stops a client ends in the first tenure after
//! its own. A fault changes what comes after it: each stop is probed with the plan so far, at its
//! longest, to see who comes next and when.

use std::{ops::RangeInclusive, time::Duration};

use super::coverage::{LockPhase, Stay, stays, traffic_began_ns};
use crate::{
    case::Case,
    fault::family_of,
    history::{EventKind, FaultAction, History, NodeName},
    plan::{Fault, FaultKind, Plan, RequestName},
    runner,
    seed::Stream,
    system::Change,
};

/// How many of 1,000 families are off in a plan that is to be guided.
pub(super) const OFF_PERMILLE: u32 = 300;
/// So many stops of a plan are ended by a probe, each at the price of a run.
const AIMS_MAX: usize = 3;
/// How many of 1,000 stops are, as long as there are probes left.
const AIMED_PERMILLE: u32 = 800;
/// How many of 1,000 faults strike the very client whose phase they were put into.
const STRUCK_PERMILLE: u32 = 750;
/// A fault is moved so far at most, either way.
const REACH_MS: u64 = 1500;
/// What waits for a phase to begin is armed so long before it.
const LEAD_MS: u64 = 3;
const NS_PER_MS: u64 = 1_000_000;

/// The draft with its faults put into phases. Without faults there is nothing to guide.
pub(super) fn guided(draft: Case, traffic: Duration, change: Option<&Change>) -> Case {
    let mut stream = draft.seed.stream("guide");
    let latest_ms = (traffic.as_millis() as u64).saturating_sub(500).max(300);
    let mut placed = Case { plan: Plan::default(), ..draft.clone() };
    if draft.plan.faults.is_empty() {
        return placed;
    }
    // A probe that breaks shows nothing: the faults stay where they were drawn.
    let mut near = probe(&placed, change).map(|history| stays(&history)).unwrap_or_default();
    let mut aims = AIMS_MAX;
    for fault in draft.plan.faults {
        let earliest_ms = placed.plan.faults.last().map_or(300, |before| before.start_ms);
        let mut fault = place(&mut stream, fault, &near, earliest_ms..=latest_ms);
        if stops_client(&fault.kind) && aims > 0 && stream.chance(AIMED_PERMILLE) {
            aims -= 1;
            let mut trial = placed.clone();
            let length_ms = family_of(&fault.kind).length_ms.1;
            trial.plan.faults.push(Fault { length_ms, ..fault.clone() });
            if let Some(history) = probe(&trial, change) {
                near = stays(&history);
                let index = placed.plan.faults.len() as u32;
                let ends = begin(&history, index).and_then(|(victim, begun_ns)| {
                    end(&mut stream, &near, victim, begun_ns..=begun_ns + length_ms * NS_PER_MS)
                });
                fault.length_ms = ends.unwrap_or(fault.length_ms);
            }
        }
        placed.plan.faults.push(fault);
    }
    placed
}

/// Whom a fault struck and when, in nanoseconds since the traffic began.
fn begin(history: &History, index: u32) -> Option<(NodeName, u64)> {
    let began = EventKind::Fault { index, action: FaultAction::Begin };
    let event = history.events.iter().find(|event| event.kind == began)?;
    Some((event.node, event.at_ns.saturating_sub(traffic_began_ns(history))))
}

/// How long a stop lasts, in milliseconds, that ends in the first tenure of another client: each
/// phase of that is as likely as another. None if nobody else gets the lock while it may last.
fn end(
    stream: &mut Stream,
    stays: &[Stay],
    victim: NodeName,
    lasts_ns: RangeInclusive<u64>,
) -> Option<u64> {
    let granted = |stay: &&Stay| {
        stay.node != victim
            && stay.phase == LockPhase::GrantedUnseen
            && lasts_ns.contains(&stay.from_ns)
    };
    let first = stays.iter().find(granted)?;
    let own = stays.iter().filter(|stay| stay.node == first.node && stay.from_ns >= first.from_ns);
    let tenure: Vec<&Stay> = own.take_while(|stay| OWNS.contains(&stay.phase)).collect();
    let stay = one_of(stream, tenure)?;
    let (from_ms, to_ms) = (stay.from_ns / NS_PER_MS, stay.to_ns / NS_PER_MS);
    let ends_ms = stream.between(from_ms.saturating_sub(LEAD_MS), to_ms);
    Some(ends_ms.saturating_sub(lasts_ns.start() / NS_PER_MS).max(1))
}

/// One of the stays: first a phase, each as likely as another, and then a stay in it.
fn one_of(stream: &mut Stream, stays: Vec<&Stay>) -> Option<Stay> {
    let mut phases: Vec<LockPhase> = stays.iter().map(|stay| stay.phase).collect();
    phases.sort_unstable();
    phases.dedup();
    if phases.is_empty() {
        return None;
    }
    let phase = *stream.pick(&phases);
    let stays: Vec<&Stay> = stays.into_iter().filter(|stay| stay.phase == phase).collect();
    Some(**stream.pick(&stays))
}

fn probe(case: &Case, change: Option<&Change>) -> Option<History> {
    let run = match change {
        Some(change) => runner::run_changed(case, change.as_ref()),
        None => runner::run(case),
    };
    Some(run.ok()?.history)
}

/// Moves a fault into a phase that lies near it.
fn place(
    stream: &mut Stream,
    mut fault: Fault,
    stays: &[Stay],
    allowed_ms: RangeInclusive<u64>,
) -> Fault {
    let (earliest_ms, latest_ms) = allowed_ms.into_inner();
    let low = fault.start_ms.saturating_sub(REACH_MS).max(earliest_ms).min(latest_ms);
    let high = (fault.start_ms + REACH_MS).min(latest_ms).max(low);
    let phases = phases_of(&fault.kind);
    // Only whole milliseconds can be said in a plan: a stay without one cannot be met.
    let begins = |stay: &Stay| stay.from_ns / NS_PER_MS + 1;
    let ends = |stay: &Stay| stay.to_ns / NS_PER_MS;
    let is_near = |stay: &&Stay| {
        let met = begins(stay) <= ends(stay) && begins(stay) <= high && low <= ends(stay);
        met && phases.contains(&stay.phase)
    };
    let Some(stay) = one_of(stream, stays.iter().filter(is_near).collect()) else {
        fault.start_ms = fault.start_ms.clamp(low, high);
        return fault;
    };
    fault.start_ms = if is_armed(&fault.kind) {
        begins(&stay).saturating_sub(LEAD_MS).clamp(low, high)
    } else {
        stream.between(begins(&stay).max(low), ends(&stay).min(high))
    };
    if stream.chance(STRUCK_PERMILLE) {
        strike(&mut fault.kind, stay.node);
    }
    fault
}

/// Whether the fault waits for something to happen that a phase begins with: its target passes a
/// point, or sends a request.
fn is_armed(kind: &FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::PointPause { .. }
            | FaultKind::PointKill { .. }
            | FaultKind::RestartUnder { .. }
            | FaultKind::Request { .. }
    )
}

/// Whether a client goes on, or is heard again, when the fault ends.
fn stops_client(kind: &FaultKind) -> bool {
    match kind {
        FaultKind::Pause { node }
        | FaultKind::Suspend { node }
        | FaultKind::RestartUnder { node, .. }
        | FaultKind::PointPause { node, .. } => matches!(node, NodeName::Client(_)),
        FaultKind::Cut { .. } => true,
        _ => false,
    }
}

/// The phases in which a client owns the lock and works under it.
const OWNS: [LockPhase; 3] = [LockPhase::GrantedUnseen, LockPhase::Holding, LockPhase::BeforeWrite];

/// The phases into which a fault can be put. A point lies in one; what hits the lock's owner needs
/// an owner.
fn phases_of(kind: &FaultKind) -> &'static [LockPhase] {
    use LockPhase::{BeforeWrite, GrantedUnseen, Holding, Releasing, Waiting};
    match kind {
        FaultKind::PointPause { point, .. }
        | FaultKind::PointKill { point, .. }
        | FaultKind::RestartUnder { point, .. } => match point.as_str() {
            "client.after_lock" | "client.after_enter" => &[Holding],
            "client.before_write" => &[BeforeWrite],
            "queue.after_enqueue" | "queue.before_wait" => &[Waiting],
            "queue.after_wait" => &[GrantedUnseen],
            "mutex.before_unlock" => &[Releasing],
            point if point.starts_with("storage.") => &[BeforeWrite, Holding],
            _ => &LockPhase::ALL,
        },
        FaultKind::Request { request, .. } => match request {
            RequestName::Txn => &[Waiting, Releasing],
            RequestName::Range => &[Waiting, GrantedUnseen],
            RequestName::Watch => &[Waiting],
            RequestName::Revoke => &[Releasing],
            RequestName::Storage => &[Holding, BeforeWrite],
            RequestName::Grant | RequestName::Renewal => &LockPhase::ALL,
        },
        FaultKind::ForcedRevoke | FaultKind::LeaseRunsOut | FaultKind::OutsideDelete => {
            &[GrantedUnseen, Holding, BeforeWrite, Releasing]
        }
        kind if stops_client(kind) => &OWNS,
        _ => &LockPhase::ALL,
    }
}

/// Makes the client of a fault this one. A fault of servers stays one.
fn strike(kind: &mut FaultKind, client: NodeName) {
    let own = |node: &mut NodeName| {
        if matches!(node, NodeName::Client(_)) {
            *node = client;
        }
    };
    match kind {
        FaultKind::PointPause { node, occurrence, .. }
        | FaultKind::RestartUnder { node, occurrence, .. }
        | FaultKind::PointKill { node, occurrence, .. } => {
            if matches!(node, NodeName::Client(_)) {
                (*node, *occurrence) = (client, 1);
            }
        }
        FaultKind::Pause { node }
        | FaultKind::Suspend { node }
        | FaultKind::ClockRate { node, .. }
        | FaultKind::ClockOffset { node, .. }
        | FaultKind::ClockStep { node, .. }
        | FaultKind::ClockStrobe { node, .. }
        | FaultKind::Kill { node }
        | FaultKind::SilentDeath { node } => own(node),
        FaultKind::Cut { from, to, .. }
        | FaultKind::LinkDelay { from, to, .. }
        | FaultKind::SlowLink { from, to, .. }
        | FaultKind::Reset { from, to } => {
            own(from);
            own(to);
        }
        FaultKind::ForcedRevoke
        | FaultKind::Request { .. }
        | FaultKind::LostRenewals
        | FaultKind::LeaseRunsOut
        | FaultKind::OutsideDelete
        | FaultKind::LostRevocations
        | FaultKind::Compaction
        | FaultKind::CompactionCrash
        | FaultKind::Leaderless
        | FaultKind::SlowSync { .. }
        | FaultKind::DiskFailure { .. } => {}
    }
}

#[cfg(test)]
mod tests;
