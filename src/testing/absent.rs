//! `testing` in the real build: there is no simulation to check in, and every check says so.
//!
//! The names are those of the simulation's module, so that a crate whose configuration lacks the
//! flag compiles its tests, and they fail with the lines to add instead of passing for nothing.

use std::{ops::Range, path::Path, time::Duration};

use crate::case::Case;

#[cfg(feature = "proptest")]
#[path = "strategy_absent.rs"]
pub mod strategy;

pub use crate::system::{Answer, Grant, LockFailure, LockOptions, LockUnderTest, StorageUnderTest};

/// This build has no simulation, and these are the lines to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "leasehold::testing needs the simulation, and this build has none. Add these lines to \
     .cargo/config.toml in the folder from which you call cargo:\n\n\
     [build]\n\
     rustflags = [\"--cfg\", \"madsim\"]\n\
     rustdocflags = [\"--cfg\", \"madsim\"]\n\n\
     and leave RUSTFLAGS unset: it would take the place of the first."
)]
pub struct NoSimulation;

/// A check that cannot be made in this build.
#[derive(Debug, Clone, Default)]
pub struct Check(());

/// Takes what the simulation's check takes, and forgets it.
macro_rules! forgets {
    ($($name:ident ( $($argument:ident : $type:ty),* )),* $(,)?) => {
        $(
            /// As in the simulation build; forgotten here.
            pub fn $name(self, $($argument: $type),*) -> Self {
                $(let _ = $argument;)*
                self
            }
        )*
    };
}

impl Check {
    /// As in the simulation build.
    pub fn new() -> Self {
        Check(())
    }

    forgets!(
        scenario(name: &str),
        profile(name: &str),
        guard(name: &str),
        token(name: &str),
        clients(clients: u8),
        ttl_s(ttl_s: u16),
        readers(readers: u16),
        seeds(seeds: Range<u64>),
        jobs(jobs: usize),
        fail_fast(),
        time_limit(limit: Duration),
        check_determinism(),
    );

    /// As in the simulation build; forgotten here.
    pub fn storage<S: StorageUnderTest>(
        self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        drop(make);
        self
    }

    /// As in the simulation build; forgotten here.
    pub fn lock<L: LockUnderTest>(self) -> Self {
        self
    }

    /// Does not run.
    ///
    /// # Errors
    /// Always, with the lines to add.
    pub fn run(self) -> Result<(), NoSimulation> {
        Err(NoSimulation)
    }

    /// Does not run.
    ///
    /// # Panics
    /// Always, with the lines to add.
    #[track_caller]
    pub fn assert_passes(self) {
        panic!("{NoSimulation}")
    }

    /// Does not run.
    ///
    /// # Panics
    /// Always, with the lines to add.
    #[track_caller]
    pub fn assert_violates(self, _checker: &str) {
        panic!("{NoSimulation}")
    }
}

/// A case that cannot be run in this build.
#[derive(Debug, Clone)]
pub struct CaseCheck(());

/// As in the simulation build.
pub fn check_case(_case: &Case) -> CaseCheck {
    CaseCheck(())
}

/// As in the simulation build.
pub fn replay_case(_text: &str) -> CaseCheck {
    CaseCheck(())
}

impl CaseCheck {
    /// As in the simulation build; forgotten here.
    pub fn storage<S: StorageUnderTest>(
        self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        drop(make);
        self
    }

    /// As in the simulation build; forgotten here.
    pub fn lock<L: LockUnderTest>(self) -> Self {
        self
    }

    forgets!(time_limit(limit: Duration), check_determinism());

    /// Does not run.
    ///
    /// # Errors
    /// Always, with the lines to add.
    pub fn passes(&self) -> Result<(), NoSimulation> {
        Err(NoSimulation)
    }

    /// Does not run.
    ///
    /// # Panics
    /// Always, with the lines to add.
    #[track_caller]
    pub fn assert_passes(&self) {
        panic!("{NoSimulation}")
    }

    /// Does not run.
    ///
    /// # Panics
    /// Always, with the lines to add.
    #[track_caller]
    pub fn assert_violates(&self, _checker: &str, _rule: &str) {
        panic!("{NoSimulation}")
    }
}

/// Does not run.
///
/// # Panics
/// Always, with the lines to add.
#[track_caller]
pub fn assert_corpus(_dir: impl AsRef<Path>) -> usize {
    panic!("{NoSimulation}")
}

/// Cases that cannot be run in this build.
#[derive(Debug, Clone)]
pub struct CorpusCheck(());

/// As in the simulation build.
pub fn corpus(_dir: impl AsRef<Path>) -> CorpusCheck {
    CorpusCheck(())
}

impl CorpusCheck {
    /// As in the simulation build; forgotten here.
    pub fn storage<S: StorageUnderTest>(
        self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        drop(make);
        self
    }

    /// As in the simulation build; forgotten here.
    pub fn lock<L: LockUnderTest>(self) -> Self {
        self
    }

    /// Does not run.
    ///
    /// # Panics
    /// Always, with the lines to add.
    #[track_caller]
    pub fn assert_passes(&self) -> usize {
        panic!("{NoSimulation}")
    }
}
