//! D9's rules about leases, and deadlines, a second time: each event looks at all others.

use leasehold::history::{Cause, Commit, EventKind, History, KeyChange, LeaseChange, NodeName};

/// The events before one, in order.
fn before(history: &History, seq: u64) -> impl DoubleEndedIterator<Item = &EventKind> {
    history.events.iter().filter(move |event| event.seq < seq).map(|event| &event.kind)
}

fn ends(kind: &EventKind, lease: i64) -> bool {
    match kind {
        EventKind::Lease(event) => {
            let ended = matches!(event.change, LeaseChange::Expired | LeaseChange::Revoked);
            event.lease == lease && ended
        }
        EventKind::Commit(commit) => commit.cause == Cause::Expiry(lease),
        _ => false,
    }
}

fn grant(kind: &EventKind, lease: i64) -> Option<(u64, u64)> {
    match kind {
        EventKind::Lease(event) if event.lease == lease => match event.change {
            LeaseChange::Granted { ttl_s } => Some((ttl_s as u64 * 1_000_000_000, event.member_ns)),
            _ => None,
        },
        _ => None,
    }
}

/// When the lease runs out by what happened before an event; none if it was not granted, an error
/// if it has ended.
fn runs_out(history: &History, lease: i64, seq: u64) -> Option<Result<u64, ()>> {
    let granted = before(history, seq).last_position(|kind| grant(kind, lease).is_some())?;
    let since: Vec<&EventKind> = before(history, seq).skip(granted).collect();
    if since.iter().any(|kind| ends(kind, lease)) {
        return Some(Err(()));
    }
    let (ttl_ns, mut until_ns) = grant(since[0], lease)?;
    until_ns += ttl_ns;
    for kind in since {
        let EventKind::Lease(event) = kind else { continue };
        match event.change {
            LeaseChange::Renewed if event.lease == lease => until_ns = event.member_ns + ttl_ns,
            LeaseChange::Promoted { extend_ms } => {
                until_ns = event.member_ns + ttl_ns + extend_ms * 1_000_000;
            }
            _ => {}
        }
    }
    Some(Ok(until_ns))
}

trait LastPosition: Iterator + Sized {
    fn last_position(self, wanted: impl Fn(Self::Item) -> bool) -> Option<usize> {
        self.enumerate().filter_map(|(at, item)| wanted(item).then_some(at)).last()
    }
}

impl<I: Iterator> LastPosition for I {}

/// The first broken rule of lease safety.
pub fn lease_safety(history: &History) -> Option<&'static str> {
    history.events.iter().find_map(|event| {
        let (lease, now_ns, renewed) = match &event.kind {
            EventKind::Lease(lease) => match lease.change {
                LeaseChange::Renewed => (lease.lease, lease.member_ns, true),
                LeaseChange::Expired => (lease.lease, lease.member_ns, false),
                _ => return None,
            },
            EventKind::Commit(commit) => match commit.cause {
                Cause::Expiry(lease) => (lease, commit.member_ns, false),
                _ => return None,
            },
            _ => return None,
        };
        match (runs_out(history, lease, event.seq)?, renewed) {
            (Err(()), true) => Some("revived"),
            (Ok(until_ns), true) => (now_ns >= until_ns).then_some("revived"),
            (Ok(until_ns), false) => (now_ns < until_ns).then_some("early"),
            (Err(()), false) => None,
        }
    })
}

fn known(history: &History, seq: u64) -> bool {
    let granted = |kind: &EventKind| match kind {
        EventKind::Lease(event) => matches!(event.change, LeaseChange::Granted { .. }),
        _ => false,
    };
    before(history, seq).any(granted)
}

/// Whether the lease was granted before an event, and has not ended since by the member's word.
fn lives(history: &History, lease: i64, seq: u64) -> Option<bool> {
    let granted = before(history, seq).last_position(|kind| grant(kind, lease).is_some())?;
    let ended = |kind: &EventKind| matches!(kind, EventKind::Lease(_)) && ends(kind, lease);
    Some(!before(history, seq).skip(granted).any(ended))
}

/// The lease that a key hangs on after the events before one.
fn hangs_on(history: &History, key: &str, seq: u64) -> Option<i64> {
    let mut lease = None;
    for event in history.events.iter().filter(|event| event.seq < seq) {
        let EventKind::Commit(commit) = &event.kind else { continue };
        for change in commit.events.iter().filter(|change| change.key == key) {
            let living = lives(history, change.lease, event.seq) == Some(true);
            let put = change.change == KeyChange::Put && living;
            lease = put.then_some(change.lease);
        }
    }
    lease
}

fn keys(history: &History) -> Vec<&str> {
    let commits = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Commit(commit) => Some(commit),
        _ => None,
    });
    let mut keys: Vec<&str> =
        commits.flat_map(|commit| &commit.events).map(|change| change.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn anything_on(history: &History, lease: i64, seq: u64) -> bool {
    keys(history).into_iter().any(|key| hangs_on(history, key, seq) == Some(lease))
}

fn ended_by(commit: &Commit) -> Option<i64> {
    match commit.cause {
        Cause::Revoke(lease) | Cause::Expiry(lease) => Some(lease),
        _ => None,
    }
}

/// Whether a rule of lease atomicity is broken. Each commit changes a key at most once.
pub fn lease_atomicity(history: &History) -> bool {
    history.events.iter().any(|event| match &event.kind {
        EventKind::Lease(lease) => {
            let ended = matches!(lease.change, LeaseChange::Expired | LeaseChange::Revoked);
            if !ended || !anything_on(history, lease.lease, event.seq) {
                return false;
            }
            let mut later = history.events.iter().filter(|later| later.seq > event.seq);
            let next = later.find_map(|later| match &later.kind {
                EventKind::Commit(commit) => Some(ended_by(commit)),
                EventKind::Lease(other) => {
                    let ended = matches!(other.change, LeaseChange::Expired | LeaseChange::Revoked);
                    ended.then_some(None)
                }
                _ => None,
            });
            next.flatten() != Some(lease.lease)
        }
        EventKind::Commit(commit) => {
            let ends = ended_by(commit);
            let wrong = commit.events.iter().any(|change| match change.change {
                KeyChange::Put => {
                    let living = lives(history, change.lease, event.seq) == Some(true);
                    let named = change.lease != 0 && known(history, event.seq);
                    named && !living
                }
                KeyChange::Delete => match hangs_on(history, &change.key, event.seq) {
                    Some(lease) => {
                        let asked = matches!(commit.cause, Cause::Delete | Cause::Txn);
                        let ended = lives(history, lease, event.seq) == Some(false);
                        !asked && (ends != Some(lease) || !ended)
                    }
                    None => ends.is_some_and(|lease| lives(history, lease, event.seq).is_some()),
                },
            });
            wrong || ends.is_some_and(|lease| anything_on(history, lease, event.seq + 1))
        }
        _ => false,
    })
}

/// Whether a node runs, and at which rate, after the events before one.
fn state(history: &History, node: NodeName, seq: u64) -> (bool, Option<u32>) {
    let mut state = (true, None);
    for event in history.events.iter().filter(|event| event.node == node && event.seq < seq) {
        match event.kind {
            EventKind::Stop => state.0 = false,
            EventKind::Go => state.0 = true,
            EventKind::Rate { permille } => state.1 = Some(permille),
            _ => {}
        }
    }
    state
}

/// Whether a call ended too long after its deadline, and how many calls can be judged.
pub fn call_deadline(history: &History) -> (u64, bool) {
    let (mut judged, mut late) = (0, false);
    for event in &history.events {
        let EventKind::Deadline { deadline_ns, ended_ns, cleanup_ns, .. } = event.kind else {
            continue;
        };
        let mut left = ended_ns.saturating_sub(deadline_ns);
        let (mut ran, mut to_ns, mut seq) = (0, event.at_ns, event.seq);
        let mut known = state(history, event.node, seq).1.is_some();
        for earlier in history.events.iter().rev().filter(|earlier| earlier.seq < event.seq) {
            if left == 0 {
                break;
            }
            let (runs, permille) = state(history, event.node, seq);
            let Some(permille) = permille else {
                known &= to_ns == earlier.at_ns;
                seq = earlier.seq;
                continue;
            };
            let length = ((to_ns - earlier.at_ns) * u64::from(permille) / 1000).min(left);
            ran += if runs { length } else { 0 };
            left -= length;
            (to_ns, seq) = (earlier.at_ns, earlier.seq);
        }
        if known && left == 0 {
            judged += 1;
            late |= ran > cleanup_ns + 5_000_000;
        }
    }
    (judged, late)
}
