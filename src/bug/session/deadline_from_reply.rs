//! The lease runs from when etcd processed the renewal, which is before the answer came.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        lock::{LockPolicy, plain_lock},
    },
    time::Instant,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "deadline-from-reply",
    help: "the deadline counts from the answer to a renewal, not from its sending",
    source: "derived: lastRenewed = now() after the call",
    needs: Needs::Latency,
    profile: "network",
    caught_by: "session-honesty",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(DeadlineFromReply, site);
    },
};

struct DeadlineFromReply(Site);

impl LockPolicy for DeadlineFromReply {
    fn counts_from(&self, _sent: Instant, answered: Instant) -> Instant {
        self.0.hit();
        answered
    }
}
