//! The real disk: a directory of files that belongs to one process at a time.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{Disk, Syncing};

/// The file whose lock says that a process uses the directory. It stays when the process ends; the
/// lock does not. Empty at first; what it holds says that the directory has been used.
const LOCK_FILE: &str = "lock";
/// What the lock file holds once another file has been made durable beside it.
const USED: &[u8] = b"this directory holds a storage\n";

/// A data directory, locked for this process as long as it is open.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    open: Mutex<BTreeMap<String, Arc<File>>>,
    /// The lock is the open file's, and goes with it; a sync under way keeps it too.
    lock: Arc<File>,
}

impl Directory {
    /// Opens the directory, which is made if it is missing, and locks it.
    ///
    /// # Errors
    /// `WouldBlock` if another process, or another part of this one, has it; else the system's.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("data directory {}: {error}", path.display()))
        };
        make(&path).map_err(named)?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let lock = options.open(path.join(LOCK_FILE)).map_err(named)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = "another process uses it: stop that one, or choose another directory";
                return Err(named(io::Error::new(io::ErrorKind::WouldBlock, text)));
            }
            Err(TryLockError::Error(error)) => return Err(named(error)),
        }
        Ok(Directory { path, open: Mutex::default(), lock: Arc::new(lock) })
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<String, Arc<File>>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The open file of this name.
    fn file(&self, name: &str, create: bool) -> io::Result<Arc<File>> {
        let mut open = self.handles();
        if let Some(file) = open.get(name) {
            return Ok(file.clone());
        }
        let mut options = OpenOptions::new();
        options.append(true).create(create);
        let file = Arc::new(options.open(self.path.join(name))?);
        open.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    /// Runs a sync where it may block: on a thread for that.
    fn blocking(&self, sync: impl FnOnce() -> io::Result<()> + Send + 'static) -> Syncing {
        let lock = self.lock.clone();
        Box::pin(async move {
            let synced = tokio::task::spawn_blocking(move || {
                let result = sync();
                drop(lock);
                result
            });
            synced.await.map_err(io::Error::other)?
        })
    }
}

/// Whether the lock file says that the directory has been used. A mark that was torn by a crash is
/// one, too: it was written after the files were there.
fn is_marked(lock: &File) -> io::Result<bool> {
    Ok(lock.metadata()?.len() > 0)
}

/// Makes the directory, and the names of all that had to be made durable.
fn make(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    fs::create_dir_all(path)?;
    for made in missing.into_iter().rev() {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

impl Disk for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
                && name != LOCK_FILE
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path.join(file))
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        (&*self.file(file, true)?).write_all(bytes)
    }

    fn truncate(&self, file: &str, length: u64) -> io::Result<()> {
        self.file(file, false)?.set_len(length)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut open = self.handles();
        fs::rename(self.path.join(from), self.path.join(to))?;
        open.remove(to);
        if let Some(file) = open.remove(from) {
            open.insert(to.to_owned(), file);
        }
        Ok(())
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        self.handles().remove(file);
        fs::remove_file(self.path.join(file))
    }

    fn sync(&self, file: &str) -> Syncing {
        match self.file(file, false) {
            // The length is synced with the data; times and owners do not matter.
            Ok(file) => self.blocking(move || file.sync_data()),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    fn sync_directory(&self) -> Syncing {
        let (path, lock) = (self.path.clone(), self.lock.clone());
        let holds_files = self.list().map(|files| !files.is_empty());
        self.blocking(move || {
            File::open(path)?.sync_all()?;
            // After the names, so that a crash in between leaves files without the mark and never
            // the mark without files.
            if holds_files? && !is_marked(&lock)? {
                lock.write_all_at(USED, 0)?;
                lock.sync_all()?;
            }
            Ok(())
        })
    }

    fn is_used(&self) -> bool {
        // What cannot be read does not say that the directory is fresh.
        is_marked(&self.lock).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("leasehold-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    /// Every operation does what it says, and the lock file is not among the files.
    #[tokio::test]
    async fn files_of_a_directory() {
        let path = fresh("files").join("deep");
        let disk = Directory::open(&path).unwrap();
        disk.append("b", b"one").unwrap();
        disk.append("b", b" two").unwrap();
        disk.append("a", b"x").unwrap();
        assert_eq!(disk.list().unwrap(), ["a", "b"]);
        disk.truncate("b", 3).unwrap();
        disk.append("b", b"!").unwrap();
        disk.sync("b").await.unwrap();
        disk.rename("b", "a").unwrap();
        disk.append("a", b"?").unwrap();
        disk.sync_directory().await.unwrap();
        assert_eq!(disk.read("a").unwrap(), b"one!?");
        assert_eq!(disk.list().unwrap(), ["a"]);
        disk.remove("a").unwrap();
        assert_eq!(disk.read("a").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(disk.sync("a").await.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(disk.truncate("a", 0).is_err() && disk.list().unwrap().is_empty());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    /// A directory is used from the moment at which a file in it was made durable, also when the
    /// process was killed between that and the mark.
    #[tokio::test]
    async fn a_used_directory_is_not_fresh() {
        let path = fresh("used");
        let disk = Directory::open(&path).unwrap();
        disk.sync_directory().await.unwrap();
        assert!(!disk.is_used(), "there was nothing yet");
        disk.append("a", b"x").unwrap();
        drop(disk);
        let disk = Directory::open(&path).unwrap();
        assert!(!disk.is_used() && disk.list().unwrap() == ["a"]);
        disk.sync_directory().await.unwrap();
        assert!(disk.is_used());
        disk.remove("a").unwrap();
        drop(disk);
        let disk = Directory::open(&path).unwrap();
        assert!(disk.is_used() && disk.list().unwrap().is_empty());
        fs::remove_dir_all(&path).unwrap();
    }

    /// A directory has one user; the next one may come when it has gone.
    #[tokio::test]
    async fn a_directory_has_one_user() {
        let path = fresh("lock");
        let first = Directory::open(&path).unwrap();
        let second = Directory::open(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        assert!(second.to_string().contains("another process uses it"), "{second}");
        drop(first);
        assert!(Directory::open(&path).is_ok());
        fs::remove_dir_all(&path).unwrap();
    }
}
