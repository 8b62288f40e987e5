//! Quirks: historic bugs of etcd that a member can be given back, one switch each, off by default.
//!
//! A lock recipe that is only ever tested against a right etcd has not been tested against the one
//! that its users ran. Each quirk changes one behaviour, names where it comes from, and counts how
//! often it had an effect, so that a run in which it changed nothing shows that. Left out: quirks
//! that need several members.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    time::Duration,
};

/// How often a member with [`Quirk::Promote`] loses and wins its leadership.
pub const PROMOTE_EVERY: Duration = Duration::from_secs(10);
/// How much too early a lease may end with [`Quirk::EarlyExpiry`].
pub const EARLY: Duration = Duration::from_secs(1);

/// A historic bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quirk {
    /// A lease ends up to [`EARLY`] before its time.
    EarlyExpiry,
    /// The keys of a revoked lease are deleted one by one, each in a revision of its own.
    RevokeNotAtomic,
    /// A watch from the very revision that was compacted misses the deletions of that revision.
    MissedDelete,
    /// After a restart the revision is the greatest that is still in the store: revisions of
    /// deletions that were compacted away are handed out again.
    RevisionRegress,
    /// Each restart is one from a backup of the empty store, without a bump of the revision.
    RestoredWithoutBump,
    /// A renewal of a lease that has run out and is not yet revoked brings it back to life.
    RenewalRevives,
    /// A lease whose revocation failed once is never revoked again.
    StuckExpiry,
    /// The member loses its leadership and wins it again at once, every [`PROMOTE_EVERY`].
    Promote,
}

impl Quirk {
    /// All quirks.
    pub const ALL: [Quirk; 8] = [
        Quirk::EarlyExpiry,
        Quirk::RevokeNotAtomic,
        Quirk::MissedDelete,
        Quirk::RevisionRegress,
        Quirk::RestoredWithoutBump,
        Quirk::RenewalRevives,
        Quirk::StuckExpiry,
        Quirk::Promote,
    ];

    /// Its name, as it is written and parsed.
    pub const fn name(self) -> &'static str {
        match self {
            Quirk::EarlyExpiry => "early-expiry",
            Quirk::RevokeNotAtomic => "revoke-not-atomic",
            Quirk::MissedDelete => "missed-delete",
            Quirk::RevisionRegress => "revision-regress",
            Quirk::RestoredWithoutBump => "restored-without-bump",
            Quirk::RenewalRevives => "renewal-revives",
            Quirk::StuckExpiry => "stuck-expiry",
            Quirk::Promote => "promote",
        }
    }

    /// What it changes, in one line.
    pub const fn help(self) -> &'static str {
        match self {
            Quirk::EarlyExpiry => "a lease ends up to 1 s before its time",
            Quirk::RevokeNotAtomic => "a revoke deletes each key in a revision of its own",
            Quirk::MissedDelete => "a watch from the compacted revision misses its deletions",
            Quirk::RevisionRegress => "a restart after a compaction hands revisions out again",
            Quirk::RestoredWithoutBump => "a restart is one from an old backup, revisions and all",
            Quirk::RenewalRevives => "a renewal revives a lease that has run out",
            Quirk::StuckExpiry => "a lease whose revocation failed once stays for ever",
            Quirk::Promote => "every 10 s the leader changes and all leases start anew",
        }
    }

    /// Where it was seen: an issue, a pull request, or another system.
    pub const fn source(self) -> &'static str {
        match self {
            // Its leases count down in whole seconds that are not aligned with the grant.
            Quirk::EarlyExpiry => "madsim-etcd-client 0.7, src/service.rs",
            Quirk::RevokeNotAtomic => "https://github.com/etcd-io/etcd/pull/6098",
            Quirk::MissedDelete => "https://github.com/etcd-io/etcd/pull/19249",
            Quirk::RevisionRegress => "https://github.com/etcd-io/etcd/issues/17780",
            // `etcdutl snapshot restore` without `--bump-revision`.
            Quirk::RestoredWithoutBump => "https://etcd.io/docs/v3.6/op-guide/recovery/",
            Quirk::RenewalRevives => "https://github.com/etcd-io/etcd/pull/6570",
            Quirk::StuckExpiry => "https://github.com/etcd-io/etcd/issues/10686",
            Quirk::Promote => "https://github.com/etcd-io/etcd/issues/9395",
        }
    }

    /// What its count counts.
    pub const fn effect(self) -> &'static str {
        match self {
            Quirk::EarlyExpiry => "leases that ended early",
            Quirk::RevokeNotAtomic => "leases whose keys went in several revisions",
            Quirk::MissedDelete => "deletions that a watcher was not told of",
            Quirk::RevisionRegress => "revisions taken back",
            Quirk::RestoredWithoutBump => "revisions taken back",
            Quirk::RenewalRevives => "leases revived",
            Quirk::StuckExpiry => "leases that will never be revoked",
            Quirk::Promote => "changes of the leader",
        }
    }
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no quirk's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown quirk {name:?}; known are: {}", Quirk::ALL.map(Quirk::name).join(", "))]
pub struct UnknownQuirk {
    name: String,
}

impl FromStr for Quirk {
    type Err = UnknownQuirk;

    fn from_str(name: &str) -> Result<Self, UnknownQuirk> {
        let known = Quirk::ALL.into_iter().find(|quirk| quirk.name() == name);
        known.ok_or_else(|| UnknownQuirk { name: name.to_owned() })
    }
}

/// The quirks of one member, with the count of their effects over all its lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quirks {
    on: BTreeMap<Quirk, u64>,
}

impl Quirks {
    pub(crate) fn new(on: &BTreeSet<Quirk>) -> Self {
        Quirks { on: on.iter().map(|quirk| (*quirk, 0)).collect() }
    }

    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.on.contains_key(&quirk)
    }

    /// Counts effects of a quirk that is on.
    pub(crate) fn count(&mut self, quirk: Quirk, effects: u64) {
        if let Some(count) = self.on.get_mut(&quirk) {
            *count += effects;
        }
    }

    pub(crate) fn effects(&self, quirk: Quirk) -> u64 {
        self.on.get(&quirk).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name leads back to its quirk; another name is refused with the ones that exist.
    #[test]
    fn names_are_parsed() {
        for quirk in Quirk::ALL {
            assert_eq!(quirk.to_string().parse(), Ok(quirk));
            assert!(!quirk.help().is_empty() && !quirk.effect().is_empty());
        }
        let names: BTreeSet<_> = Quirk::ALL.into_iter().map(Quirk::name).collect();
        assert_eq!(names.len(), Quirk::ALL.len());
        let message = "early".parse::<Quirk>().unwrap_err().to_string();
        assert!(message.starts_with("unknown quirk \"early\"; known are: early-expiry, "));
    }
}
