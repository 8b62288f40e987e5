//! The storage answers when it has written, and not when the disk has it.

use std::sync::Arc;

use crate::{
    bug::{KnownBug, Needs},
    storage::disk::LyingDisk,
};

pub(in crate::bug) const BUG: KnownBug = KnownBug {
    name: "answer-before-sync",
    help: "an answer leaves before the disk has what it says",
    source: "derived: write without fsync",
    needs: Needs::Fault,
    profile: "crash",
    caught_by: "durability",
    scenario: "fenced-lock",
    build_in: |system, site| {
        site.hit();
        system.wrap_disk = Some(|disk| Arc::new(LyingDisk(disk)));
    },
};
