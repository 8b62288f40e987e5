//! Fire and forget: the caller is told "released" while the key is still there.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "release-not-awaited",
    help: "a release is answered before etcd has done it",
    source: "derived: unlock in a background task",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "release-validity",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(ReleaseNotAwaited, site);
    },
};

struct ReleaseNotAwaited(Site);

impl LockPolicy for ReleaseNotAwaited {
    fn waits_for_release(&self) -> bool {
        self.0.hit();
        false
    }
}
