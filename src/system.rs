//! What a run is made of: the storage's state machine, the clients' lock, and how they read
//! errors.
//!
//! A scenario names the crate's own parts; a test of yours, and a known bug, puts another part in
//! the place of one of them. Everything else, the traffic, the faults, the judge, stays the same.
//! Both builds have it: a client of a real run is made of the same parts.

mod hosted;
mod lock;
mod own;

use std::{collections::BTreeSet, fmt, sync::Arc};

pub(crate) use hosted::Hosted;
pub use hosted::{Answer, StorageUnderTest};
pub use lock::{Grant, LockFailure, LockOptions, LockUnderTest};
pub(crate) use lock::{Lock, MakeLock, lock_maker};
pub(crate) use own::{Recipe, TokenKind, own_lock};

use crate::{
    etcd::quirk::Quirk,
    storage::{Definiteness, Disk, GuardKind, StateMachine, StorageError, Store},
};

/// Makes the storage's state machine for a run.
pub type MakeStorage = Arc<dyn Fn() -> Box<dyn StateMachine> + Send + Sync>;

/// Puts something between the storage and its disk.
pub(crate) type WrapDisk = fn(Arc<dyn Disk>) -> Arc<dyn Disk>;

/// Changes parts of a system before a run.
pub type Change = Arc<dyn Fn(&mut System) + Send + Sync>;

/// The parts of one run.
#[derive(Clone)]
pub struct System {
    /// The storage.
    pub(crate) storage: MakeStorage,
    /// The lock of each client.
    pub(crate) lock: MakeLock,
    /// Historic bugs that the etcd member is given back.
    pub(crate) quirks: BTreeSet<Quirk>,
    /// What lies between the storage and its disk, if anything.
    pub(crate) wrap_disk: Option<WrapDisk>,
    /// Whether a client takes an error of the storage for a proof that nothing happened.
    pub(crate) is_definite: fn(&StorageError) -> bool,
}

impl System {
    /// The crate's own parts.
    pub(crate) fn own(guard: GuardKind, recipe: Recipe, token: TokenKind) -> Self {
        System {
            storage: Arc::new(move || Box::new(Store::of_kind(guard))),
            lock: own_lock(recipe, token),
            quirks: BTreeSet::new(),
            wrap_disk: None,
            is_definite: |error| error.definiteness() == Definiteness::Definite,
        }
    }
}

/// Which parts of a run are the caller's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnParts {
    /// The storage.
    pub storage: bool,
    /// The lock.
    pub lock: bool,
}

impl OwnParts {
    /// None at all: everything is the crate's.
    pub const NONE: OwnParts = OwnParts { storage: false, lock: false };

    /// Those that a change puts in the place of the crate's.
    pub fn of(change: Option<&Change>) -> OwnParts {
        let own = System::own(GuardKind::Monotonic, Recipe::Mutex, TokenKind::Revision);
        let mut changed = own.clone();
        if let Some(change) = change {
            change(&mut changed);
        }
        OwnParts {
            storage: !Arc::ptr_eq(&own.storage, &changed.storage),
            lock: !own.lock.is(&changed.lock),
        }
    }

    /// Their names: `storage` and `lock`.
    pub fn names(self) -> Vec<&'static str> {
        let (storage, lock) = (self.storage.then_some("storage"), self.lock.then_some("lock"));
        storage.into_iter().chain(lock).collect()
    }

    /// How a test gives them, as Rust text.
    pub fn calls(self) -> &'static str {
        match (self.storage, self.lock) {
            (false, false) => "",
            (true, false) => ".storage(MyStorage::default)",
            (false, true) => ".lock::<MyLock>()",
            (true, true) => ".storage(MyStorage::default).lock::<MyLock>()",
        }
    }

    /// Those of these names; none if one of them is no part's, or is there twice.
    pub fn named(names: &[String]) -> Option<OwnParts> {
        let has = |name: &str| names.iter().any(|other| other == name);
        let parts = OwnParts { storage: has("storage"), lock: has("lock") };
        (parts.names().len() == names.len()).then_some(parts)
    }

    /// Those that are missing in others.
    pub fn without(self, others: OwnParts) -> OwnParts {
        let storage = self.storage && !others.storage;
        OwnParts { storage, lock: self.lock && !others.lock }
    }

    /// Whether there are any.
    pub fn any(self) -> bool {
        self.storage || self.lock
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System").field("quirks", &self.quirks).finish_non_exhaustive()
    }
}
