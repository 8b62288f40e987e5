//! Profiles: which families a plan is drawn from, how often each, and how many faults it has.
//!
//! A profile is a set of values and nothing more: its families are looked up when a plan is drawn,
//! and a test says that each profile is one that can be drawn from.

use super::{CATALOG, Family};

/// A profile of faults.
#[derive(Debug)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for, in one line.
    pub help: &'static str,
    /// The fewest and the most faults of a plan.
    pub faults: (u64, u64),
    /// Whether each seed does without some of the families, so that the others get room.
    pub swarm: bool,
    /// Whether what dies is always the storage.
    pub storage_dies: bool,
    /// The families with their weights; none are all of the catalog with their own.
    families: &'static [(&'static str, u32)],
}

/// All profiles; the first is the default.
pub static PROFILES: [Profile; 9] = [
    Profile {
        name: "all",
        help: "every family",
        faults: (4, 11),
        swarm: true,
        storage_dies: false,
        families: &[],
    },
    Profile {
        name: "calm",
        help: "no faults at all: the control arm",
        faults: (0, 0),
        swarm: false,
        storage_dies: false,
        families: &[],
    },
    Profile {
        name: "gc",
        help: "processes stop and go on: garbage collection, migration, a swapped-out machine",
        faults: (3, 9),
        swarm: true,
        storage_dies: false,
        families: &[("pause", 4), ("suspend", 3), ("point-pause", 6)],
    },
    Profile {
        name: "network",
        help: "links are cut, slow and lossy, connections break, requests and replies get lost",
        faults: (3, 9),
        swarm: true,
        storage_dies: false,
        families: &[
            ("cut", 5),
            ("link-delay", 4),
            ("slow-link", 2),
            ("reset", 2),
            ("request", 4),
            ("lost-renewals", 1),
            ("silent-death", 1),
        ],
    },
    Profile {
        name: "clocks",
        help: "clocks run fast, slow, off, to and fro, and stand still",
        faults: (3, 9),
        swarm: true,
        storage_dies: false,
        families: &[
            ("clock-rate", 6),
            ("clock-offset", 1),
            ("clock-step", 1),
            ("clock-strobe", 1),
            ("suspend", 3),
            ("point-pause", 2),
        ],
    },
    Profile {
        name: "crash",
        help: "processes and machines die, disks are slow and fail",
        faults: (3, 9),
        swarm: true,
        storage_dies: false,
        families: &[
            ("kill", 5),
            ("point-kill", 4),
            ("silent-death", 2),
            ("slow-sync", 3),
            ("disk-failure", 2),
            ("point-pause", 4),
            ("lost-revocations", 2),
        ],
    },
    Profile {
        name: "restart",
        help: "clients stop while the storage dies: what it forgets, a late one finds open",
        faults: (15, 24),
        swarm: false,
        storage_dies: true,
        families: &[
            ("pause", 3),
            ("suspend", 2),
            ("point-pause", 9),
            ("kill", 8),
            ("restart-under", 6),
        ],
    },
    Profile {
        name: "resend",
        help: "answers of the storage get lost or late while locks change hands: resends come late",
        faults: (8, 14),
        swarm: false,
        storage_dies: false,
        families: &[
            ("request", 5),
            ("link-delay", 4),
            ("slow-sync", 5),
            ("reset", 3),
            ("forced-revoke", 6),
            ("outside-delete", 2),
            ("lease-runs-out", 2),
            ("pause", 2),
        ],
    },
    Profile {
        name: "lease",
        help: "leases and keys go before their time, etcd changes its leader and forgets the past",
        faults: (3, 9),
        swarm: true,
        storage_dies: false,
        families: &[
            ("forced-revoke", 4),
            ("lost-renewals", 3),
            ("lease-runs-out", 4),
            ("outside-delete", 3),
            ("compaction", 4),
            ("compaction-crash", 3),
            ("leaderless", 2),
            ("point-pause", 3),
        ],
    },
];

/// The profile of this name; the empty name is the default.
pub fn find(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name || name.is_empty())
}

impl Profile {
    /// Whether it has no faults: then the rule of the control arm holds.
    pub fn is_calm(&self) -> bool {
        self.faults.1 == 0
    }

    /// Its families with their weights.
    pub fn families(&self) -> Vec<(&'static Family, u32)> {
        if self.is_calm() {
            return Vec::new();
        }
        let all = CATALOG.iter().map(|family| (family, family.weight));
        if self.families.is_empty() {
            return all.collect();
        }
        let weight = |family: &Family| {
            self.families.iter().find(|(name, _)| *name == family.name).map(|(_, weight)| *weight)
        };
        all.filter_map(|(family, _)| Some((family, weight(family)?))).collect()
    }

    /// Whether a plan of it may have a fault of this family.
    pub fn has(&self, family: &str) -> bool {
        self.families().iter().any(|(own, _)| own.name == family)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every profile names families that there are, each once, and can give as many faults as it
    /// says; only the calm one gives none. Together they leave no family to `all` alone.
    #[test]
    fn profiles_are_valid() {
        let mut narrow = BTreeSet::new();
        let mut names = BTreeSet::new();
        for profile in &PROFILES {
            assert!(names.insert(profile.name) && !profile.help.is_empty(), "{}", profile.name);
            assert!(profile.faults.0 <= profile.faults.1, "{}", profile.name);
            assert_eq!(profile.families().is_empty(), profile.name == "calm");
            assert_eq!(profile.is_calm(), profile.name == "calm");
            if !profile.families.is_empty() {
                assert_eq!(profile.families().len(), profile.families.len(), "{}", profile.name);
                narrow.extend(profile.families.iter().map(|(name, _)| *name));
            }
            assert!(profile.families().iter().all(|(_, weight)| *weight > 0));
        }
        assert_eq!(narrow.len(), CATALOG.len(), "{narrow:?}");
        assert_eq!(find("").map(|profile| profile.name), Some("all"));
        assert!(find("quiet").is_none());
    }
}
