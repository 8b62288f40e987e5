//! Session honesty (D9) a second time: each time that a client says "held", all that was before is
//! looked through again.
//!
//! The sending of a renewal is not in the history; it was before its processing, so what is less
//! than the TTL after the sending is less than the TTL after the processing.

use leasehold::history::{
    Event, EventKind, Function, History, HoldingId, LeaseChange, NodeName, Outcome, Reply,
};

/// The events before one, the last one first.
fn past(history: &History, seq: u64) -> impl Iterator<Item = &Event> {
    history.events.iter().rev().filter(move |event| event.seq < seq)
}

/// The lease of the session that a holding was asked for with.
fn lease_of(history: &History, wanted: HoldingId) -> Option<i64> {
    let acquire = history.events.iter().find(|event| match &event.kind {
        EventKind::Invoke { holding, f: Function::Lock { .. }, .. } => *holding == Some(wanted),
        _ => false,
    })?;
    past(history, acquire.seq).find_map(|event| match event.kind {
        EventKind::Return { outcome: Outcome::Ok(Reply::Session { lease, .. }), .. } => {
            (event.node == acquire.node).then_some(lease)
        }
        _ => None,
    })
}

/// Granted time to live, and the true time of the last grant or renewal that was processed.
fn renewed(history: &History, lease: i64, seq: u64) -> Option<(u64, u64)> {
    let of_lease = |event: &Event| match &event.kind {
        EventKind::Lease(told) if told.lease == lease => Some(told.change),
        _ => None,
    };
    let (granted, ttl_s) = past(history, seq).find_map(|event| match of_lease(event)? {
        LeaseChange::Granted { ttl_s } => Some((event.seq, ttl_s)),
        _ => None,
    })?;
    let since = past(history, seq).filter(|event| event.seq >= granted);
    let last = since.into_iter().find(|event| {
        matches!(of_lease(event), Some(LeaseChange::Granted { .. } | LeaseChange::Renewed))
    })?;
    Some((ttl_s as u64 * 1_000_000_000, last.at_ns))
}

/// Whether a client's clock was ever seen to go otherwise than true time, up to an event.
fn moved(history: &History, node: NodeName, seq: u64) -> bool {
    past(history, seq + 1).filter(|event| event.node == node).any(|event| match event.kind {
        EventKind::Held { local_ns, .. } => local_ns.abs_diff(event.at_ns) > 1_000_000,
        EventKind::Rate { permille } => permille != 1000,
        _ => false,
    })
}

/// Whether the client was told just now that it has the lock, and did nothing since.
fn just_granted(history: &History, event: &Event) -> bool {
    let own = past(history, event.seq).filter(|earlier| earlier.node == event.node);
    let mut own = own.filter(|earlier| {
        !matches!(
            earlier.kind,
            EventKind::Fault { .. }
                | EventKind::Link { .. }
                | EventKind::Rate { .. }
                | EventKind::Deadline { .. }
        )
    });
    own.next().is_some_and(|last| {
        let granted = matches!(
            last.kind,
            EventKind::Return { outcome: Outcome::Ok(Reply::Acquired { .. }), .. }
        );
        granted && last.at_ns == event.at_ns
    })
}

/// The rule that a client breaks by saying that it holds the lock.
fn broken(
    history: &History,
    event: &Event,
    (holding, local_ns, deadline_ns): (HoldingId, u64, u64),
) -> Option<&'static str> {
    if local_ns >= deadline_ns {
        let granted = just_granted(history, event);
        return Some(if granted { "acquired-late" } else { "past-deadline" });
    }
    let lease = lease_of(history, holding)?;
    let (ttl_ns, processed_ns) = renewed(history, lease, event.seq)?;
    if moved(history, event.node, event.seq) {
        return None;
    }
    let over_ns = processed_ns + ttl_ns;
    match (event.at_ns >= over_ns, event.at_ns + (deadline_ns - local_ns) > over_ns) {
        (true, _) => Some("outlived-renewal"),
        (false, true) => Some("deadline-late"),
        (false, false) => None,
    }
}

/// How often a client said that it holds the lock, and the first rule that it broke by that.
pub fn session_honesty(history: &History) -> (u64, Option<&'static str>) {
    let said = history.events.iter().filter_map(|event| match event.kind {
        EventKind::Held { holding, held, local_ns, deadline_ns } => {
            let said = held || just_granted(history, event);
            said.then_some((event, (holding, local_ns, deadline_ns)))
        }
        _ => None,
    });
    let said: Vec<_> = said.collect();
    let first = said.iter().find_map(|(event, what)| broken(history, event, *what));
    (said.len() as u64, first)
}
