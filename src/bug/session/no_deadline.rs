//! The session ends only when etcd has said so, and a client that hears nothing believes for ever.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "no-deadline",
    help: "the session does not end at its deadline",
    source: "https://github.com/etcd-io/etcd/issues/9888",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "session-honesty",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(NoDeadline, site);
    },
};

struct NoDeadline(Site);

impl LockPolicy for NoDeadline {
    fn ends_at_deadline(&self) -> bool {
        self.0.hit();
        false
    }
}
