//! The storage answers when it has written, and not when the disk has it.

use std::{io, sync::Arc};

use crate::{
    bug::{KnownBug, Needs},
    storage::{Disk, disk::Syncing},
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
        system.wrap_disk = Some(|disk| Arc::new(NeverSyncs(disk)));
    },
};

/// A disk that says "synced" and has done nothing.
struct NeverSyncs(Arc<dyn Disk>);

impl Disk for NeverSyncs {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        self.0.read(file)
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.append(file, bytes)
    }

    fn truncate(&self, file: &str, length: u64) -> io::Result<()> {
        self.0.truncate(file, length)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.0.remove(file)
    }

    fn sync(&self, _file: &str) -> Syncing {
        Box::pin(async { Ok(()) })
    }

    fn sync_directory(&self) -> Syncing {
        self.0.sync_directory()
    }
}
