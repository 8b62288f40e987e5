//! Two handles of one session share one queue key; the one that only tries, and loses, cleans up
//! behind itself, and the other has just become the owner.

use crate::bug::{
    KnownBug, Needs, Site,
    lock::{LockPolicy, plain_lock},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "loser-deletes-sibling",
    help: "a try-lock that loses deletes the key under which another handle of its session waits",
    source: "https://github.com/etcd-io/etcd/pull/11364, as TryLock in etcd's mutex.go",
    needs: Needs::Nothing,
    profile: "calm",
    caught_by: "tenure-kept",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.lock = plain_lock(LoserDeletesSibling, site);
    },
};

struct LoserDeletesSibling(Site);

impl LockPolicy for LoserDeletesSibling {
    fn has_sibling(&self) -> bool {
        true
    }

    fn loser_deletes(&self) -> bool {
        self.0.hit();
        true
    }
}
