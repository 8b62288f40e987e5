//! One token for all tenures of a session.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, Seen, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "session-revision",
    help: "the token is the revision at which the session began",
    source: "derived: the token is taken once, when the session is opened",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(SessionRevision, site);
    },
};

struct SessionRevision(Site);

impl LockPolicy for SessionRevision {
    fn token(&self, seen: &Seen) -> i64 {
        self.0.hit();
        seen.session_revision
    }
}
