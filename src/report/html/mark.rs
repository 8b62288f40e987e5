//! Which shape an event has on the timeline, and on which track of its node it stands.
//!
//! The one place that decides this. An event kind that has no row here has no shape of its own; if
//! it is evidence, it gets the plain one, so a new kind is never lost.

use crate::history::{ApplyRow, Event, EventKind, KeyChange, LeaseChange, OpKind, RowResult};

use super::scene::{Mark, Scene};

/// Every shape with what it means, for the legend.
pub(super) const LEGEND: [(&str, &str); 20] = [
    ("fresh-accepted", "fresh-accepted: the owner's write"),
    ("stale-accepted", "stale-accepted: a late write got in"),
    ("stale-refused", "stale-refused: the fence at work"),
    ("fresh-refused", "fresh-refused: the owner was locked out"),
    ("late-accepted", "late-accepted: allowed, nothing newer yet"),
    ("late-refused", "late-refused: allowed"),
    ("write", "write without a class"),
    ("read", "read, admitted"),
    ("read-refused", "read, refused"),
    ("replayed", "answered again"),
    ("rejected", "rejected before the fence"),
    ("commit", "commit: a queue key came"),
    ("gone", "commit: a queue key went"),
    ("granted", "lease granted"),
    ("renewed", "lease renewed"),
    ("expired", "lease expired or revoked"),
    ("killed", "killed, restarted"),
    ("lost", "client knows that the lock is lost"),
    ("point", "stands at a code point"),
    ("plain", "another event of the story"),
];

/// The shape of an event; `None` if it is only listed.
pub(super) fn look(scene: &Scene<'_>, event: &Event) -> Option<&'static str> {
    Some(match &event.kind {
        EventKind::Apply(row) => match scene.classes.get(&event.seq) {
            Some(class) => class.name(),
            None => of_row(row),
        },
        EventKind::Commit(commit) => {
            let came = commit.events.iter().any(|event| event.change == KeyChange::Put);
            if came { "commit" } else { "gone" }
        }
        EventKind::Lease(lease) => match lease.change {
            LeaseChange::Granted { .. } => "granted",
            LeaseChange::Renewed | LeaseChange::Promoted { .. } => "renewed",
            LeaseChange::Expired | LeaseChange::Revoked => "expired",
        },
        EventKind::Held { held: false, .. } | EventKind::LossNoticed { .. } => "lost",
        EventKind::Killed | EventKind::Restarted => "killed",
        EventKind::Point { .. } => "point",
        _ if scene.step(event.seq).is_some() => "plain",
        _ => return None,
    })
}

fn of_row(row: &ApplyRow) -> &'static str {
    match (row.result, row.kind) {
        (RowResult::Replayed, _) => "replayed",
        (RowResult::Rejected, _) => "rejected",
        (RowResult::Admitted, OpKind::Read) => "read",
        (RowResult::Refused, OpKind::Read) => "read-refused",
        (_, OpKind::Write) => "write",
    }
}

/// The mark of an event, if it has a shape.
pub(super) fn mark(scene: &Scene<'_>, event: &Event) -> Option<Mark> {
    let look = look(scene, event)?;
    let class = scene.classes.get(&event.seq);
    let class = class.map_or_else(String::new, |class| format!("\n{}", class.name()));
    let title = scene.words(event) + &class;
    Some(Mark { seq: event.seq, at_ns: event.at_ns, look, title })
}
