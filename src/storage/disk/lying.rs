//! A disk that says "synced" and has done nothing, for simulations: some do.

use std::{io, sync::Arc};

use super::{Disk, Syncing};

/// Everything of another disk but the sync of its files.
pub(crate) struct LyingDisk(pub(crate) Arc<dyn Disk>);

impl Disk for LyingDisk {
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
        Box::pin(std::future::ready(Ok(())))
    }

    fn sync_directory(&self) -> Syncing {
        self.0.sync_directory()
    }
}
