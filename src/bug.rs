//! Known bugs: wrong guards, tokens, recipes, sessions, and historic bugs of etcd.
//!
//! Each is one file with one wrong decision, and one row in [`CATALOG`]: what it is, who has had
//! it, what it needs, and which checker must catch it. A judge that lets one through has a hole.
//! Nothing outside of here names a bug. To add one: a file in `guard/`, `token/`, `recipe/`,
//! `session/`, `client/` or `member/`, and a row below.

mod client;
mod guard;
mod lock;
mod member;
mod recipe;
mod session;
mod site;
mod store;
mod token;

use std::sync::Arc;

use self::site::Site;
use crate::{
    case::CaseOptions,
    system::{Change, System},
};

/// What a bug needs before it can do harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Nothing: it does harm in peace.
    Nothing,
    /// Messages that take their time: in peace it may be caught, or not.
    Latency,
    /// A fault: in peace it is not caught, although its code runs.
    Fault,
}

impl Needs {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing",
            Needs::Latency => "latency",
            Needs::Fault => "a fault",
        }
    }
}

/// A wrong variant of a part of the system.
pub struct KnownBug {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is wrong, in one sentence.
    pub help: &'static str,
    /// Who has had it: an issue, a project, or what it is derived from.
    pub source: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// The narrowest profile of faults that has what it needs.
    pub profile: &'static str,
    /// The checker that must catch it.
    pub caught_by: &'static str,
    scenario: &'static str,
    build_in: fn(&mut System, &Site),
}

impl std::fmt::Debug for KnownBug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownBug").field("name", &self.name).finish_non_exhaustive()
    }
}

/// No known bug has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown bug {name:?}: `leasehold bugs --list` tells which there are")]
pub struct UnknownBug {
    name: String,
}

/// All known bugs.
pub static CATALOG: &[KnownBug] = &[
    guard::unfenced::BUG,
    guard::equality::BUG,
    guard::no_mark_on_reads::BUG,
    guard::mark_per_key::BUG,
    guard::volatile_mark::BUG,
    guard::reads_not_kept::BUG,
    guard::answer_before_sync::BUG,
    guard::text_compare::BUG,
    guard::strictly_above::BUG,
    guard::one_below::BUG,
    guard::check_then_write::BUG,
    guard::refused_but_written::BUG,
    guard::reads_from_table::BUG,
    guard::fence_before_table::BUG,
    guard::late_original::BUG,
    token::lease_id::BUG,
    token::mixed_revisions::BUG,
    token::session_revision::BUG,
    token::own_counter::BUG,
    token::counter_in_memory::BUG,
    recipe::no_wait::BUG,
    recipe::no_second_look::BUG,
    recipe::campaign_unchecked::BUG,
    recipe::watch_from_now::BUG,
    recipe::released_key_reused::BUG,
    recipe::release_not_awaited::BUG,
    recipe::unlock_not_guarded::BUG,
    recipe::loser_deletes_sibling::BUG,
    recipe::first_by_key::BUG,
    recipe::time_out_is_success::BUG,
    recipe::endless_clean_up::BUG,
    recipe::key_without_lease::BUG,
    session::deadline_from_reply::BUG,
    session::no_retry::BUG,
    session::no_deadline::BUG,
    session::acquired_late::BUG,
    client::time_out_is_fail::BUG,
    client::stale_is_fail::BUG,
    member::early_expiry::BUG,
    member::revoke_not_atomic::BUG,
    member::renewal_revives::BUG,
    member::missed_delete::BUG,
    member::revision_regress::BUG,
    member::restored_without_bump::BUG,
    member::stuck_expiry::BUG,
];

/// The bug of this name.
///
/// # Errors
/// If there is none.
pub fn find(name: &str) -> Result<&'static KnownBug, UnknownBug> {
    let found = CATALOG.iter().find(|bug| bug.name == name);
    found.ok_or_else(|| UnknownBug { name: name.to_owned() })
}

/// The change that builds in the bug that the options name; none if they name none.
///
/// # Errors
/// If there is no such bug.
pub fn change_of(options: &CaseOptions) -> Result<Option<Change>, UnknownBug> {
    match options.bug.as_str() {
        "" => Ok(None),
        name => Ok(Some(find(name)?.change())),
    }
}

impl KnownBug {
    /// Its options in a profile of faults.
    pub fn options(&self, profile: &str) -> CaseOptions {
        CaseOptions {
            bug: self.name.to_owned(),
            profile: profile.to_owned(),
            ..CaseOptions::default()
        }
    }

    /// The scenario in which its code runs.
    pub fn scenario(&self) -> &'static str {
        self.scenario
    }

    /// The change that builds it in.
    pub fn change(&'static self) -> Change {
        self.counted_change().0
    }

    /// The change that builds it in, and a look at how often its wrong code has run since.
    pub fn counted_change(&'static self) -> (Change, impl Fn() -> u64) {
        let site = Site::default();
        let counted = site.clone();
        let change: Change = Arc::new(move |system: &mut System| (self.build_in)(system, &site));
        (change, move || counted.hits())
    }
}

/// The parts that bugs are built into, without one: a store and a lock.
#[cfg(test)]
pub(crate) fn right_parts() -> [(&'static str, Change); 4] {
    let site = Site::default();
    let store = store::plain_store(|_| store::RightStore, &site);
    let tableless = store::plain_store(|_| store::Tableless, &site);
    let lock = lock::plain_lock(|_| lock::Right, &site);
    let two_handles = lock::plain_lock(|_| lock::TwoHandles, &site);
    [
        ("store", Arc::new(move |system: &mut System| system.storage = store.clone())),
        ("tableless", Arc::new(move |system: &mut System| system.storage = tableless.clone())),
        ("lock", Arc::new(move |system: &mut System| system.lock = lock.clone())),
        ("two handles", Arc::new(move |system: &mut System| system.lock = two_handles.clone())),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Names and help are there and told apart, and each checker named exists.
    #[test]
    fn rows_make_sense() {
        let names: BTreeSet<_> = CATALOG.iter().map(|bug| bug.name).collect();
        assert_eq!(names.len(), CATALOG.len());
        assert!(CATALOG.len() >= 30, "{} bugs", CATALOG.len());
        for bug in CATALOG {
            assert!(crate::checker::by_name(bug.caught_by).is_some(), "{bug:?}");
            assert!(!bug.help.is_empty() && !bug.source.is_empty(), "{bug:?}");
        }
        assert!(find("no such bug").is_err());
    }
}
