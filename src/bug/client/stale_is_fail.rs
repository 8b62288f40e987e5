//! A refusal of a request that was sent again does not tell what the first attempt did.

use crate::{
    bug::{KnownBug, Needs},
    storage::{Definiteness, StorageError},
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "stale-is-fail",
    help: "a refusal of a write that was sent again is taken for a proof that it had no effect",
    source: "definition D7: stale on a resend is unknown",
    needs: Needs::Fault,
    profile: "network",
    caught_by: "linearizability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.is_definite = |error| match error {
            StorageError::StaleToken { .. } => true,
            error => error.definiteness() == Definiteness::Definite,
        };
    },
};
