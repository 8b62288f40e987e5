//! The name of a queue key is its lease's: a release that comes late, or twice, finds the key of
//! the next holding of the same session under it. Only the create revision tells them apart.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "unlock-not-guarded",
    help: "a release deletes the session's key, whichever holding it is of",
    source: "https://github.com/etcd-io/etcd/pull/14704: what an unlock without a lock deletes",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "tenure-kept",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(UnlockNotGuarded, site);
    },
};

struct UnlockNotGuarded(Site);

impl LockPolicy for UnlockNotGuarded {
    fn releases_twice(&self) -> bool {
        true
    }

    fn guards_release(&self) -> bool {
        self.0.hit();
        false
    }
}
