//! What an operator, or a script, does to etcd behind the clients' backs: the owner's key is
//! deleted while its lease lives; past states are compacted away.

use super::{Begun, Family};
use crate::{cluster::LOCK_NAME, history::NodeName, plan::FaultKind};

const NOTHING: &str = "there was nothing to compact, or nobody who could";

pub(super) const OUTSIDE_DELETE: Family = Family {
    name: "outside-delete",
    help: "somebody deletes the key of the lock's owner; its lease lives on",
    effect: "keys deleted",
    weight: 1,
    length_ms: (0, 0),
    colour: "#9d174d",
    draw: |_, _| FaultKind::OutsideDelete,
    begin: |cluster, _, _| match cluster.member().owner(LOCK_NAME) {
        Some((key, _)) if cluster.member().delete(&key) => Begun::Active(Box::new(|_| 1)),
        _ => Begun::Skipped("nobody owned the lock, or nobody could delete its key"),
    },
};

pub(super) const COMPACTION: Family = Family {
    name: "compaction",
    help: "etcd's history is compacted, for a while after each change: watches from the past end",
    effect: "past states of keys forgotten",
    weight: 1,
    length_ms: (0, 8000),
    colour: "#78716c",
    draw: |_, _| FaultKind::Compaction,
    begin: |cluster, _, _| match cluster.member().compact() {
        Some(forgotten) => {
            cluster.member().begin_compacting();
            Begun::Active(Box::new(move |cluster| forgotten + cluster.member().end_compacting()))
        }
        None => Begun::Skipped(NOTHING),
    },
};

pub(super) const COMPACTION_CRASH: Family = Family {
    name: "compaction-crash",
    help: "etcd dies when it has compacted its history, and has not noted the end of that",
    effect: "processes killed",
    weight: 1,
    length_ms: (100, 2000),
    colour: "#57534e",
    draw: |_, _| FaultKind::CompactionCrash,
    begin: |cluster, _, _| {
        let etcd = NodeName::Etcd(1);
        if cluster.member().compact().is_none() {
            return Begun::Skipped(NOTHING);
        }
        cluster.kill(etcd);
        Begun::Active(Box::new(move |cluster| {
            cluster.restart(etcd);
            1
        }))
    },
};
