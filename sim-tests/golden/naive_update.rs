//! Lost updates (D8) a second time: every write is compared with all others, and every final read
//! counts all increments anew.

use leasehold::history::{
    ApplyRow, Event, EventKind, Function, History, OpId, OpKind, Outcome, Reply, RowResult,
};

use super::{naive, naive_storage};

fn returned(history: &History, op: OpId) -> Option<&Outcome> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Return { op: of, outcome } if *of == op => Some(outcome),
        _ => None,
    })
}

/// What a read told its client: none if it told nothing.
fn told(history: &History, op: OpId) -> Option<&Option<String>> {
    match returned(history, op)? {
        Outcome::Ok(Reply::Value(value)) => Some(value),
        _ => None,
    }
}

/// The read that an operation was computed from.
fn based_on(history: &History, tag: Option<u64>) -> Option<OpId> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Invoke { op, f: Function::Write { based_on, .. }, .. } if Some(op.0) == tag => {
            *based_on
        }
        _ => None,
    })
}

fn same_place(one: &ApplyRow, other: &ApplyRow) -> bool {
    one.domain == other.domain && one.key == other.key
}

/// Whether anything can be judged, and the broken rule.
pub fn lost_update(history: &History) -> (bool, Option<&'static str>) {
    let rows = naive_storage::rows(history);
    let (mut judged, mut overwritten) = (false, false);
    for (at, (_, write)) in rows.iter().enumerate() {
        if write.kind != OpKind::Write || !naive::effective(history, &rows, write) {
            continue;
        }
        let Some(base) = based_on(history, write.tag) else { continue };
        let Some(value) = told(history, base) else { continue };
        // The client went on with the answer that it was told; the last run of the read gave it.
        let read = rows[..at].iter().rposition(|(_, read)| {
            let ran = read.kind == OpKind::Read && read.result == RowResult::Admitted;
            ran && read.tag == Some(base.0) && same_place(read, write) && read.value == *value
        });
        let Some(read) = read else { continue };
        judged = true;
        overwritten |= rows[read + 1..at].iter().any(|(_, other)| {
            let resend = other.tag.is_some() && other.tag == write.tag;
            let known = other.boot == write.boot || naive::survives(history, &rows, other);
            let effective = naive::effective(history, &rows, other);
            other.kind == OpKind::Write && same_place(other, write) && !resend && known && effective
        });
    }
    let miscounted = history.events.iter().any(|event| miscounted(history, event));
    let rule = match (overwritten, miscounted) {
        (true, _) => Some("overwritten"),
        (false, true) => Some("counter"),
        (false, false) => None,
    };
    (judged || rule.is_some(), rule)
}

/// The number before the first colon.
fn number(value: &Option<String>) -> Option<i64> {
    match value {
        None => Some(0),
        Some(value) => value.split(':').next().and_then(|number| number.parse().ok()),
    }
}

/// Whether this is the invocation of a final read that found another number than the increments
/// before it allow.
fn miscounted(history: &History, event: &Event) -> bool {
    let EventKind::Invoke { op, f: Function::FinalRead { domain, key }, .. } = &event.kind else {
        return false;
    };
    let Some(end) = told(history, *op).and_then(number) else { return false };
    let (mut ok, mut unknown) = (0, 0);
    for earlier in history.events.iter().filter(|earlier| earlier.seq < event.seq) {
        let EventKind::Invoke { op, f, .. } = &earlier.kind else { continue };
        let Function::Write { domain: d, key: k, value, based_on } = f else { continue };
        if (d, k) != (domain, key) {
            continue;
        }
        let base = based_on.and_then(|base| told(history, base)).and_then(number);
        if base.is_none() || number(&Some(value.clone())) != base.map(|base| base + 1) {
            // Whatever this key counts, it is no increments.
            return false;
        }
        match returned(history, *op) {
            Some(Outcome::Ok(_)) => ok += 1,
            Some(Outcome::Fail(_)) => {}
            Some(Outcome::Unknown(_)) | None => unknown += 1,
        }
    }
    ok + unknown > 0 && !(ok <= end && end <= ok + unknown)
}
