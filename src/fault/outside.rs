//! What an operator, or a script, does to etcd behind the clients' backs: the owner's key is
//! deleted while its lease lives; past states are compacted away.

use super::{Begun, Family};
use crate::{cluster::LOCK_NAME, plan::FaultKind};

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
    help: "etcd's history is compacted: watches from the past are cancelled",
    effect: "past states of keys forgotten",
    weight: 1,
    length_ms: (0, 0),
    colour: "#78716c",
    draw: |_, _| FaultKind::Compaction,
    begin: |cluster, _, _| match cluster.member().compact() {
        Some(forgotten) => Begun::Active(Box::new(move |_| forgotten)),
        None => Begun::Skipped("there was nothing to compact, or nobody who could"),
    },
};
