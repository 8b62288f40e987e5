//! The disk below the storage's log: named files in one directory, and what outlives a crash.
//!
//! The log needs an order that the disk itself does not give: what is appended may be lost until
//! the file is synced, and a new name may be lost until the directory is. [`Disk`] says just that
//! much. The real one is a directory of files; the simulated one forgets at a crash what was not
//! synced, which no file system of a test machine does on demand. It is the only file of the
//! storage in which the two builds differ.
//!
//! Not an embedded store: those bring threads, clocks and files of their own, which a simulation
//! can neither order nor take away.

#[cfg(madsim)]
mod lying;
#[cfg(not(madsim))]
mod real;
#[cfg(madsim)]
mod sim;

use std::{future::Future, io, pin::Pin};

#[cfg(madsim)]
pub(crate) use lying::LyingDisk;
#[cfg(not(madsim))]
pub use real::Directory;
#[cfg(madsim)]
pub use sim::{SimDisk, SimDrive};

/// A sync under way. It does not borrow the disk: a sync that nobody waits for goes on.
pub type Syncing = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// The files of one storage. Whoever has it is the only one who has it.
///
/// Names are plain: no separators. Nothing is durable before a sync has completed: neither the
/// contents of a file ([`Disk::sync`]) nor which names there are ([`Disk::sync_directory`]); and
/// before that, any part of it may be.
pub trait Disk: Send + Sync {
    /// The names of all files, in their order.
    ///
    /// # Errors
    /// Those of the system, as with all methods here.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The whole contents of a file.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    fn read(&self, file: &str) -> io::Result<Vec<u8>>;

    /// Adds bytes at the end of a file, which is made if it is missing. After an error any part of
    /// them may be there.
    ///
    /// # Errors
    /// Those of the system: no space left, for one.
    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file off at this length.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    fn truncate(&self, file: &str, length: u64) -> io::Result<()>;

    /// Gives a file another name, and replaces the one that has it.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name.
    fn remove(&self, file: &str) -> io::Result<()>;

    /// Makes the contents durable that the file has now. After an error it is unknown what is
    /// durable, and a second attempt proves nothing: the system may have dropped what it could not
    /// write.
    fn sync(&self, file: &str) -> Syncing;

    /// Makes the names durable that there are now.
    fn sync_directory(&self) -> Syncing;

    /// Whether there have been files whose names were made durable: if so, and there is none now,
    /// they were taken away. A disk that cannot tell says no.
    fn is_used(&self) -> bool {
        false
    }
}
