//! Session honesty (D9): who says "held" has time left on its own clock.

use super::{Checker, Index, Verdict, violation};
use crate::history::EventKind;

pub(super) const SESSION_HONESTY: Checker = Checker {
    name: "session_honesty",
    help: "whenever a session says that the lock is held, its own clock is before its deadline (D9)",
    check,
};

fn check(index: &Index<'_>) -> (u64, Result<(), Verdict>) {
    let mut judged = 0;
    for event in &index.history.events {
        let EventKind::Held { holding, held: true, local_ns, deadline_ns } = &event.kind else {
            continue;
        };
        judged += 1;
        if local_ns >= deadline_ns {
            let message = format!(
                "{holding} was said to be held {} ms after its session's deadline",
                (local_ns - deadline_ns) / 1_000_000
            );
            return (judged, Err(violation(message, [event.seq])));
        }
    }
    (judged, Ok(()))
}
