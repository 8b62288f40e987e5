//! What etcd's demonstration sends. Lease ids are made of a member's id and a clock, at the opening
//! of the session and not at the acquisition.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, Seen, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "lease-id",
    help: "the token is the id of the session's lease",
    source: "etcd contrib/lock/client/client.go",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "token-order",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(LeaseId, site);
    },
};

struct LeaseId(Site);

impl LockPolicy for LeaseId {
    fn token(&self, seen: &Seen) -> i64 {
        self.0.hit();
        seen.lease
    }
}
