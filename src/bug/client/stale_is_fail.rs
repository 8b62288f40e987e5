//! A write was done, its answer got lost, a newer holder came: "stale" is what its resend is told.
//!
//! A table of requests makes that harmless, so the storage here has none, as those of old have not:
//! the judge demands no more of it, and with a client that reads the answer rightly it passes.

use crate::{
    bug::{
        KnownBug, Needs, Site,
        store::{StorePolicy, plain_store},
    },
    storage::{Definiteness, StorageError},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "stale-is-fail",
    help: "a resend that is refused as stale is taken for a write that never happened",
    source: "definition D7: \"stale\" proves nothing of a resend that no table covers",
    needs: Needs::Fault,
    profile: "resend",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        system.storage = plain_store(Tableless, site);
        system.is_definite = |error| {
            let stale = matches!(error, StorageError::StaleToken { .. });
            stale || error.definiteness() == Definiteness::Definite
        };
    },
};

struct Tableless(Site);

impl StorePolicy for Tableless {
    fn has_table(&self) -> bool {
        self.0.hit();
        false
    }
}
