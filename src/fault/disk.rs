//! Faults of the storage's disk: syncs that take long, and a disk that fails.

use std::time::Duration;

use super::{Begun, Family};
use crate::{history::NodeName, plan::FaultKind};

const NO_DISK: &str = "the storage cannot be kept on a disk";

pub(super) const SLOW_SYNC: Family = Family {
    name: "slow-sync",
    help: "each sync of the storage's disk takes longer, up to more than a client waits",
    effect: "syncs that took longer",
    weight: 2,
    length_ms: (1000, 6000),
    colour: "#65a30d",
    draw: |stream, _| FaultKind::SlowSync { latency_ms: stream.between(20, 1500) },
    begin: |cluster, _, fault| {
        let FaultKind::SlowSync { latency_ms } = fault.kind else {
            return Begun::Skipped("not a slow sync");
        };
        let Some(disk) = cluster.host().disk() else { return Begun::Skipped(NO_DISK) };
        let (before, latency) = (disk.syncs(), Duration::from_millis(latency_ms));
        cluster.host().add_sync_latency(latency);
        Begun::Active(Box::new(move |cluster| {
            cluster.host().remove_sync_latency(latency);
            cluster.host().disk().map_or(0, |disk| disk.syncs() - before)
        }))
    },
};

pub(super) const DISK_FAILURE: Family = Family {
    name: "disk-failure",
    help: "the storage's disk fails its syncs, or is full; its process is then started anew",
    effect: "syncs and appends that failed",
    weight: 1,
    length_ms: (100, 4000),
    colour: "#a16207",
    draw: |stream, _| FaultKind::DiskFailure { full: stream.chance(400) },
    begin: |cluster, _, fault| {
        let FaultKind::DiskFailure { full } = fault.kind else {
            return Begun::Skipped("not a disk failure");
        };
        let Some(disk) = cluster.host().disk() else { return Begun::Skipped(NO_DISK) };
        let before = disk.failures();
        cluster.host().fail(full, true);
        Begun::Active(Box::new(move |cluster| {
            cluster.host().fail(full, false);
            let failures = cluster.host().disk().map_or(0, |disk| disk.failures() - before);
            // What the disk holds is known to the next start only; this one answers no more.
            if failures > 0 && !cluster.is_down(NodeName::Storage) {
                cluster.die(NodeName::Storage);
                cluster.restart(NodeName::Storage);
            }
            failures
        }))
    },
};
