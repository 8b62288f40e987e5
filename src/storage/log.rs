//! The log on the disk: one file a generation, that begins with a snapshot and grows by frames.
//!
//! A new generation is written under a name of its own, synced, renamed, and the directory synced,
//! before anything is appended to it and before its predecessor is removed. So of all files with a
//! proper name the youngest is whole up to its last frame, and what has another name is a leftover.
//!
//! Damage in the very last frame cannot be told from a torn tail, by this log or any other that
//! keeps no second copy. Whoever holds a [`Log`] calls it from one place: it has no lock.

use std::{io, sync::Arc};

use super::{
    disk::Disk,
    encoding::EncodingError,
    frame::{self, Kind},
};

/// The storage cannot start from what is on its disk, or cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The system refused an operation on a file.
    #[error("cannot {what} {file:?}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file, or the directory if empty.
        file: String,
        /// The system's words.
        source: Arc<io::Error>,
    },
    /// A file is not what was written.
    #[error(
        "{file:?} is damaged at offset {offset}: {what}; nothing was changed: restore the file, or \
         start with another directory and lose what is here"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where, in bytes from its beginning.
        offset: u64,
        /// How.
        what: String,
    },
    /// There was a log, and it is gone.
    #[error(
        "there is no file \"log-…\" although this directory has held one, as its file \"lock\" \
         says: restore the log, or remove \"lock\" to start empty and lose what was here"
    )]
    Missing,
    /// The state machine, or its guard, gives no bytes to keep.
    #[error("this storage, or its guard, cannot be kept on a disk: serve it from memory")]
    Volatile,
    /// The files are whole, and were written for another kind of storage.
    #[error("{file:?} was written by {found:?} and not by {expected:?}: start with the same guard")]
    Mismatch {
        /// The file.
        file: String,
        /// Who wrote it.
        found: String,
        /// Who reads it.
        expected: String,
    },
}

/// What was on the disk.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// The file, for errors in what its frames hold.
    pub(super) file: String,
    /// The snapshot; none on an empty disk.
    pub(super) snapshot: Option<Vec<u8>>,
    /// What was appended since: offset, kind, contents.
    pub(super) frames: Vec<(u64, Kind, Vec<u8>)>,
}

impl Recovered {
    /// The error of a frame that is whole and cannot be understood.
    pub(super) fn senseless(&self, offset: u64, error: &EncodingError) -> LogError {
        LogError::Damaged { file: self.file.clone(), offset, what: error.to_string() }
    }
}

/// The open log.
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    generation: u64,
    /// Bytes of the file, and those of its beginning with the snapshot.
    length: u64,
    snapshot: u64,
}

fn name(generation: u64) -> String {
    format!("log-{generation:020}")
}

/// The generation of a proper name.
fn generation(file: &str) -> Option<u64> {
    let digits = file.strip_prefix("log-").filter(|digits| digits.len() == 20)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The name of a file that is not finished.
const UNFINISHED: &str = "log-unfinished";

fn failed(what: &'static str, file: &str) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Io { what, file: file.to_owned(), source: Arc::new(source) }
}

impl Log {
    /// Opens the log and reads it. A torn tail is cut off, with a warning.
    ///
    /// On an empty disk there is nothing to append to before the first [`Log::rotate`].
    pub(super) async fn open(disk: Arc<dyn Disk>) -> Result<(Log, Recovered), LogError> {
        let files = disk.list().map_err(failed("list", ""))?;
        let mut generations: Vec<u64> = files.iter().filter_map(|file| generation(file)).collect();
        generations.sort_unstable();
        let mut log = Log { disk, generation: 0, length: 0, snapshot: 0 };
        let recovered = match generations.last() {
            Some(youngest) => log.recover(*youngest).await?,
            None if log.disk.is_used() => return Err(LogError::Missing),
            None => Recovered::default(),
        };
        let leftovers = generations.iter().rev().skip(1).map(|generation| name(*generation));
        let unfinished = files.iter().filter(|file| *file == UNFINISHED).cloned();
        for file in leftovers.chain(unfinished) {
            tracing::info!(file, "an earlier log, or an unfinished one, is removed");
            log.disk.remove(&file).map_err(failed("remove", &file))?;
        }
        log.sync_directory().await?;
        Ok((log, recovered))
    }

    async fn recover(&mut self, generation: u64) -> Result<Recovered, LogError> {
        let file = name(generation);
        let bytes = self.disk.read(&file).map_err(failed("read", &file))?;
        let damaged = |offset, what| LogError::Damaged { file: file.clone(), offset, what };
        let contents = frame::read(&bytes, generation)
            .map_err(|damage| damaged(damage.offset as u64, damage.what))?;
        let mut frames = contents.frames.iter();
        let Some(first) = frames.next().filter(|first| first.kind == Kind::Snapshot) else {
            // The file had been synced before it got its name: this is no torn tail.
            return Err(damaged(frame::HEAD as u64, "the snapshot is missing".to_owned()));
        };
        let rest: Vec<_> = frames.map(|f| (f.offset as u64, f.kind, f.payload.to_vec())).collect();
        if let Some((offset, ..)) = rest.iter().find(|(_, kind, _)| *kind == Kind::Snapshot) {
            return Err(damaged(*offset, "a second snapshot".to_owned()));
        }
        self.generation = generation;
        self.length = contents.end as u64;
        self.snapshot = (frame::HEAD * 2 + first.payload.len()) as u64;
        let torn = bytes.len() - contents.end;
        if torn > 0 {
            let offset = contents.end;
            tracing::warn!(file, offset, bytes = torn, "a torn tail is cut off");
            self.disk.truncate(&file, self.length).map_err(failed("truncate", &file))?;
        }
        // A killed process may have left what nobody synced. It is answered from now on.
        self.disk.sync(&file).await.map_err(failed("sync", &file))?;
        let snapshot = Some(first.payload.to_vec());
        Ok(Recovered { snapshot, frames: rest, file })
    }

    /// Appends a frame and makes it durable. After an error the log is of no use any more: what is
    /// on the disk is unknown until it is read again.
    pub(super) async fn commit(&mut self, kind: Kind, payload: &[u8]) -> Result<(), LogError> {
        let file = name(self.generation);
        let mut frame = Vec::new();
        frame::write(&mut frame, self.length, kind, payload);
        self.disk.append(&file, &frame).map_err(failed("append to", &file))?;
        self.disk.sync(&file).await.map_err(failed("sync", &file))?;
        self.length += frame.len() as u64;
        Ok(())
    }

    /// Begins a new generation with this snapshot; the earlier one is not needed any more.
    pub(super) async fn rotate(&mut self, snapshot: &[u8]) -> Result<(), LogError> {
        let earlier = (self.generation > 0).then(|| name(self.generation));
        let file = name(self.generation + 1);
        let mut bytes = frame::file_header(self.generation + 1);
        frame::write(&mut bytes, frame::HEAD as u64, Kind::Snapshot, snapshot);
        self.disk.append(UNFINISHED, &bytes).map_err(failed("append to", UNFINISHED))?;
        self.disk.sync(UNFINISHED).await.map_err(failed("sync", UNFINISHED))?;
        self.disk.rename(UNFINISHED, &file).map_err(failed("rename to", &file))?;
        self.sync_directory().await?;
        self.generation += 1;
        self.length = bytes.len() as u64;
        self.snapshot = self.length;
        if let Some(earlier) = earlier {
            // If this is lost, the next start removes it.
            self.disk.remove(&earlier).map_err(failed("remove", &earlier))?;
        }
        Ok(())
    }

    async fn sync_directory(&self) -> Result<(), LogError> {
        self.disk.sync_directory().await.map_err(failed("sync the directory", ""))
    }

    /// Bytes that were appended since the snapshot.
    pub(super) fn appended(&self) -> u64 {
        self.length - self.snapshot
    }

    /// Bytes of the snapshot.
    pub(super) fn snapshot(&self) -> u64 {
        self.snapshot
    }
}
