//! Session survival (D9) a second time: time is cut into cells of 100 ms, and each is looked at.

use leasehold::history::{
    EventKind, FaultAction, Function, History, LeaseChange, NodeName, Outcome, Reply,
};

/// All times of the histories judged here are multiples of this.
pub const CELL_NS: u64 = 100_000_000;

/// The last thing that happened up to a moment, of those that `wanted` knows.
fn last<T>(
    history: &History,
    t: u64,
    wanted: impl Fn(NodeName, &EventKind) -> Option<T>,
) -> Option<T> {
    let past = history.events.iter().rev().filter(|event| event.at_ns <= t);
    past.into_iter().find_map(|event| wanted(event.node, &event.kind))
}

fn harmed(history: &History, node: NodeName, t: u64) -> bool {
    let mine = |of: NodeName| of == node;
    let stopped = last(history, t, |of, kind| match kind {
        EventKind::Stop if mine(of) => Some(true),
        EventKind::Go if mine(of) => Some(false),
        _ => None,
    });
    let down = |t| {
        last(history, t, |of, kind| match kind {
            EventKind::Killed if mine(of) => Some(true),
            EventKind::Restarted if mine(of) => Some(false),
            _ => None,
        })
    };
    let just_back = history.events.iter().any(|event| {
        let back = event.node == node && event.kind == EventKind::Restarted;
        let recent = event.at_ns <= t && t < event.at_ns + 3_000_000_000;
        back && recent && down(event.at_ns - 1) == Some(true)
    });
    let rate = last(history, t, |of, kind| match kind {
        EventKind::Rate { permille } if mine(of) => Some(*permille),
        _ => None,
    });
    let off = rate.is_some_and(|permille| permille != 1000);
    stopped == Some(true) || down(t) == Some(true) || just_back || off
}

/// Whether the link in one direction is bad, and for how long after its mending.
fn bad(history: &History, (a, b): (NodeName, NodeName), t: u64) -> Option<u64> {
    let state = last(history, t, |_, kind| match kind {
        EventKind::Link { from, to, open, delay_ms } if (*from, *to) == (a, b) => {
            Some((*open, *delay_ms))
        }
        _ => None,
    });
    let (open, delay_ms) = state?;
    (!open || delay_ms > 0).then_some(1_100_000_000 + delay_ms * 1_000_000)
}

fn noisy(history: &History, client: NodeName, server: NodeName, t: u64) -> bool {
    let ways = [(client, server), (server, client)];
    let link = ways.into_iter().any(|way| {
        let mended = history.events.iter().any(|event| {
            let EventKind::Link { from, to, .. } = event.kind else { return false };
            let after = bad(history, way, event.at_ns - 1).unwrap_or(0);
            (from, to) == way && event.at_ns <= t && t < event.at_ns + after
        });
        bad(history, way, t).is_some() || mended
    });
    let fault = (0..8).any(|fault| {
        let state = last(history, t, |node, kind| match kind {
            EventKind::Fault { index, action } if *index == fault => match action {
                FaultAction::Begin => Some(node == client || !matches!(node, NodeName::Client(_))),
                FaultAction::End => Some(false),
                _ => None,
            },
            _ => None,
        });
        state == Some(true)
    });
    link || fault || harmed(history, client, t) || harmed(history, server, t)
}

/// The longest stretches of quiet between two moments.
fn quiet(history: &History, client: NodeName, from_ns: u64, to_ns: u64) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let mut cell = from_ns;
    while cell < to_ns {
        if !noisy(history, client, NodeName::Etcd(1), cell + CELL_NS / 2) {
            match spans.last_mut().filter(|span| span.1 == cell) {
                Some(span) => span.1 += CELL_NS,
                None => spans.push((cell, cell + CELL_NS)),
            }
        }
        cell += CELL_NS;
    }
    spans
}

/// The client that wants to keep this lease up to an event.
fn wanted(history: &History, lease: i64, seq: u64) -> Option<NodeName> {
    let past = || history.events.iter().filter(|event| event.seq < seq);
    past().find_map(|opened| {
        let EventKind::Return { outcome: Outcome::Ok(Reply::Session { lease: of, .. }), .. } =
            opened.kind
        else {
            return None;
        };
        let given_up = past().filter(|event| event.seq > opened.seq).any(|event| {
            let over = match &event.kind {
                EventKind::Killed => true,
                EventKind::Invoke { f, .. } => {
                    matches!(f, Function::CloseSession | Function::OpenSession { .. })
                }
                _ => false,
            };
            over && event.node == opened.node
        });
        (of == lease && !given_up).then_some(opened.node)
    })
}

/// Whether the client's clock ran at true rate from one moment to another, as far as is known.
fn kept_time(history: &History, client: NodeName, from_ns: u64, to_ns: u64) -> bool {
    let rates = history.events.iter().enumerate().filter_map(|(at, event)| match event.kind {
        EventKind::Rate { permille } if event.node == client => Some((at, event.at_ns, permille)),
        _ => None,
    });
    let rates: Vec<_> = rates.collect();
    let before = rates.iter().rfind(|(_, at_ns, _)| *at_ns <= from_ns);
    let within = rates.iter().filter(|(_, at_ns, _)| from_ns < *at_ns && *at_ns < to_ns);
    before.into_iter().chain(within).all(|(_, _, permille)| *permille == 1000)
}

/// How many expiries can be judged, and whether one should not have been.
pub fn session_survival(history: &History) -> (u64, bool) {
    let (mut judged, mut expired) = (0, false);
    for event in &history.events {
        let closes =
            |f: &Function| matches!(f, Function::CloseSession | Function::OpenSession { .. });
        let lease = match &event.kind {
            EventKind::Lease(end) if end.change == LeaseChange::Expired => end.lease,
            EventKind::Invoke { f, .. } if closes(f) && event.node == NodeName::Client(1) => 256,
            _ => continue,
        };
        let mut ttl_ns = None;
        let mut processed = Vec::new();
        for earlier in history.events.iter().filter(|earlier| earlier.seq < event.seq) {
            let EventKind::Lease(told) = &earlier.kind else { continue };
            if told.lease != lease {
                continue;
            }
            match told.change {
                LeaseChange::Granted { ttl_s } => {
                    ttl_ns = Some(ttl_s as u64 * 1_000_000_000);
                    processed = vec![earlier.at_ns];
                }
                LeaseChange::Renewed if ttl_ns.is_some() => processed.push(earlier.at_ns),
                LeaseChange::Expired | LeaseChange::Revoked => ttl_ns = None,
                _ => {}
            }
        }
        let (Some(ttl_ns), Some(client)) = (ttl_ns, wanted(history, lease, event.seq)) else {
            continue;
        };
        let last = processed.iter().max().expect("the grant at least");
        // Whoever gives up before its time is over does so by choice.
        if !matches!(event.kind, EventKind::Lease(_)) && event.at_ns + 300_000_000 < last + ttl_ns {
            continue;
        }
        judged += 1;
        let part = ttl_ns / 24;
        let spans = quiet(history, client, processed[0].saturating_sub(1_000_000_000), event.at_ns);
        let sure = |p: u64| {
            spans.iter().any(|span| span.0 + 500_000_000 <= p && p + 300_000_000 <= span.1)
        };
        expired |= spans.iter().any(|span| {
            let alive = processed.iter().filter(|p| **p <= span.1 && sure(**p)).max();
            alive.is_some_and(|alive| {
                alive + 12 * part >= span.0
                    && alive + 15 * part + 300_000_000 <= span.1
                    && last + 9 * part + 300_000_000 < span.1
                    && kept_time(history, client, *alive, span.1)
            })
        });
    }
    (judged, expired)
}
