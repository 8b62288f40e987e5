//! The simulated disk: a page cache above a platter, and what a crash leaves of the first.
//!
//! [`SimDisk`] is the hardware and stays when its machine dies; [`SimDrive`] is the disk as one
//! life of the process has it. A killed process leaves the cache; a power loss takes from it at the
//! choice of the caller's random numbers: of bytes that were not synced a beginning, holes, all or
//! nothing; of names that were not synced each one by itself, in any combination. That is more
//! cruel than a journalling file system, and allowed by what POSIX promises.
//!
//! Left out: damage to what was synced, other than by [`SimDisk::edit`].

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use super::{Disk, Syncing};
use crate::time;

/// A number below the one given: the random choice of a power loss.
pub type Below<'a> = &'a mut dyn FnMut(u64) -> u64;

/// The disk of a simulated machine. Cloning gives another handle of the same disk.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

/// A simulated disk as one life of a process has it.
pub struct SimDrive {
    disk: SimDisk,
    life: u64,
}

#[derive(Default)]
struct State {
    files: BTreeMap<u64, File>,
    made: u64,
    /// The names that the process sees, and those that are on the platter.
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    /// What leads from the durable names to the seen ones.
    steps: Vec<Step>,
    life: u64,
    mounted: bool,
    sync_latency: Duration,
    syncs_fail: bool,
    appends_fail: bool,
    syncs: u64,
    failures: u64,
}

/// Contents as the process sees them, and as they are on the platter.
#[derive(Default, Clone)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// It was cut below its durable length since the last sync.
    cut: bool,
}

#[derive(Clone)]
enum Step {
    Link(String, u64),
    Unlink(String),
    Rename(String, String, u64),
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {name:?} on the simulated disk"))
}

impl SimDisk {
    /// Opens the disk for a life of the process.
    ///
    /// # Errors
    /// `WouldBlock` if a process has it.
    pub fn mount(&self) -> io::Result<SimDrive> {
        let mut state = self.lock();
        if state.mounted {
            let text = "another process uses the simulated disk";
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        state.mounted = true;
        state.life += 1;
        Ok(SimDrive { disk: self.clone(), life: state.life })
    }

    /// The process dies: its syncs under way come to nothing, the cache stays.
    pub fn kill(&self) {
        let mut state = self.lock();
        state.mounted = false;
        state.life += 1;
    }

    /// The machine loses its power: `below` decides what is left of what was not synced.
    pub fn crash(&self, below: Below<'_>) {
        self.kill();
        let mut state = self.lock();
        for step in std::mem::take(&mut state.steps) {
            if below(2) == 0 {
                step.apply(&mut state.durable_names);
            }
        }
        state.names = state.durable_names.clone();
        let State { files, names, .. } = &mut *state;
        files.retain(|id, _| names.values().any(|named| named == id));
        for file in files.values_mut() {
            file.crash(below);
        }
    }

    /// Somebody puts an empty disk in its place.
    pub fn clear(&self) {
        self.kill();
        let mut state = self.lock();
        state.files.clear();
        state.names.clear();
        state.durable_names.clear();
        state.steps.clear();
    }

    /// How long each sync takes from now on.
    pub fn set_sync_latency(&self, latency: Duration) {
        self.lock().sync_latency = latency;
    }

    /// Whether syncs fail from now on, those under way included.
    pub fn set_syncs_fail(&self, fail: bool) {
        self.lock().syncs_fail = fail;
    }

    /// Whether appends write half and fail from now on, as on a full disk.
    pub fn set_appends_fail(&self, fail: bool) {
        self.lock().appends_fail = fail;
    }

    /// How many syncs have completed.
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// How many appends and syncs have failed because they were told to.
    pub fn failures(&self) -> u64 {
        self.lock().failures
    }

    /// The files that there are, with their contents.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.lock();
        let contents = |id| state.files.get(id).map(|file| file.seen.clone()).unwrap_or_default();
        state.names.iter().map(|(name, id)| (name.clone(), contents(id))).collect()
    }

    /// Changes a file behind everyone's back, on the platter too; whether there is one.
    pub fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut state = self.lock();
        let Some(id) = state.names.get(name).copied() else { return false };
        let Some(file) = state.files.get_mut(&id) else { return false };
        change(&mut file.seen);
        *file =
            File { durable: file.seen.clone(), seen: std::mem::take(&mut file.seen), cut: false };
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        let id = self.names.get(name).ok_or_else(|| not_found(name))?;
        self.files.get_mut(id).ok_or_else(|| not_found(name))
    }

    fn step(&mut self, step: Step) {
        step.apply(&mut self.names);
        self.steps.push(step);
    }
}

impl Step {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Step::Link(name, id) => drop(names.insert(name.clone(), *id)),
            Step::Unlink(name) => drop(names.remove(name)),
            Step::Rename(from, to, id) => {
                if names.get(from) == Some(id) {
                    names.remove(from);
                }
                names.insert(to.clone(), *id);
            }
        }
    }
}

impl File {
    /// What was seen at this length has reached the platter.
    fn synced(&mut self, length: usize, whole: Option<Vec<u8>>) {
        match whole {
            Some(whole) => {
                self.durable = whole;
                self.cut = false;
            }
            None if length > self.durable.len() && length <= self.seen.len() => {
                self.durable.extend_from_slice(&self.seen[self.durable.len()..length]);
            }
            None => {}
        }
    }

    fn crash(&mut self, below: Below<'_>) {
        if self.cut {
            if below(2) == 0 {
                self.durable.clone_from(&self.seen);
            }
        } else {
            let tail = self.seen.len() - self.durable.len();
            let kept = below(tail as u64 + 1) as usize;
            let (from, until) = match below(4) {
                // A beginning is left.
                0 => {
                    self.seen.truncate(self.durable.len() + kept);
                    (0, 0)
                }
                // The length is there and the end of the contents is not.
                1 => (kept, tail),
                // All of it had reached the platter.
                2 => (0, 0),
                // Pages came in another order.
                _ => (kept, kept + below((tail - kept) as u64 + 1) as usize),
            };
            let start = self.durable.len();
            self.seen[start + from..start + until].fill(0);
            self.durable.clone_from(&self.seen);
        }
        *self = File {
            seen: self.durable.clone(),
            durable: std::mem::take(&mut self.durable),
            cut: false,
        };
    }
}

impl SimDisk {
    /// The state, if this life of the process goes on.
    fn in_life(&self, life: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.life == life {
            return Ok(state);
        }
        Err(io::Error::other("the process that had opened the simulated disk is gone"))
    }
}

impl SimDrive {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        self.disk.in_life(self.life)
    }

    /// Waits as long as a sync takes, and then does what it does.
    fn syncing(
        &self,
        begun: io::Result<Duration>,
        done: impl FnOnce(&mut State) + Send + 'static,
    ) -> Syncing {
        let (disk, life) = (self.disk.clone(), self.life);
        Box::pin(async move {
            let latency = begun?;
            if latency > Duration::ZERO {
                time::sleep(latency).await;
            }
            let mut state = disk.in_life(life)?;
            if state.syncs_fail {
                state.failures += 1;
                return Err(io::Error::other("the simulated disk cannot sync"));
            }
            state.syncs += 1;
            done(&mut state);
            Ok(())
        })
    }
}

impl Drop for SimDrive {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state() {
            state.mounted = false;
            state.life += 1;
        }
    }
}

impl Disk for SimDrive {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state()?.names.keys().cloned().collect())
    }

    fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        Ok(self.state()?.file(file)?.seen.clone())
    }

    fn append(&self, file: &str, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        if !state.names.contains_key(file) {
            state.made += 1;
            let id = state.made;
            state.files.insert(id, File::default());
            state.step(Step::Link(file.to_owned(), id));
        }
        let fail = state.appends_fail;
        state.failures += u64::from(fail);
        let written = if fail { bytes.len() / 2 } else { bytes.len() };
        state.file(file)?.seen.extend_from_slice(&bytes[..written]);
        if fail {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"));
        }
        Ok(())
    }

    fn truncate(&self, file: &str, length: u64) -> io::Result<()> {
        let mut state = self.state()?;
        let file = state.file(file)?;
        file.seen.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        file.cut |= file.seen.len() < file.durable.len();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state()?;
        let id = *state.names.get(from).ok_or_else(|| not_found(from))?;
        state.step(Step::Rename(from.to_owned(), to.to_owned(), id));
        Ok(())
    }

    fn remove(&self, file: &str) -> io::Result<()> {
        let mut state = self.state()?;
        state.file(file)?;
        state.step(Step::Unlink(file.to_owned()));
        Ok(())
    }

    fn sync(&self, file: &str) -> Syncing {
        let begun = || {
            let mut state = self.state()?;
            let id = *state.names.get(file).ok_or_else(|| not_found(file))?;
            let latency = state.sync_latency;
            let file = state.file(file)?;
            // An append costs its own length and not the file's.
            let whole = file.cut.then(|| file.seen.clone());
            Ok((latency, id, file.seen.len(), whole))
        };
        match begun() {
            Ok((latency, id, length, whole)) => self.syncing(Ok(latency), move |state| {
                if let Some(file) = state.files.get_mut(&id) {
                    file.synced(length, whole);
                }
            }),
            Err(error) => self.syncing(Err(error), |_| {}),
        }
    }

    fn sync_directory(&self) -> Syncing {
        let begun =
            self.state().map(|state| (state.sync_latency, state.names.clone(), state.steps.len()));
        match begun {
            Ok((latency, names, taken)) => self.syncing(Ok(latency), move |state| {
                // Another sync may have overtaken this one.
                let taken = taken.min(state.steps.len());
                state.steps.drain(..taken);
                state.durable_names = names;
            }),
            Err(error) => self.syncing(Err(error), |_| {}),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn synced(sync: Syncing) {
        sync.now_or_never().expect("it takes no time").unwrap();
    }

    /// What was synced stays over any crash; of the rest, everything is possible and is seen.
    #[test]
    fn a_crash_takes_what_was_not_synced() {
        let (mut kept, mut torn, mut lost, mut holes) = (0, 0, 0, 0);
        for run in 0..256_u64 {
            let disk = SimDisk::default();
            let drive = disk.mount().unwrap();
            drive.append("a", b"synced").unwrap();
            synced(drive.sync("a"));
            synced(drive.sync_directory());
            drive.append("a", b"0123456789").unwrap();
            let mut state = run << 32;
            disk.crash(&mut |n| {
                // SplitMix64.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (mixed ^ (mixed >> 31)) % n
            });
            let contents = disk.mount().unwrap().read("a").unwrap();
            let tail = contents.strip_prefix(b"synced").expect("it was synced");
            match tail {
                b"0123456789" => kept += 1,
                b"" => lost += 1,
                tail if b"0123456789".starts_with(tail) => torn += 1,
                tail => {
                    assert_eq!(tail.len(), 10);
                    holes += 1;
                }
            }
        }
        assert!(kept > 0 && torn > 0 && lost > 0 && holes > 0, "{kept} {torn} {lost} {holes}");
    }

    /// A name is lost until the directory is synced, and its removal too.
    #[test]
    fn names_are_lost() {
        let disk = SimDisk::default();
        let drive = disk.mount().unwrap();
        drive.append("old", b"1").unwrap();
        synced(drive.sync("old"));
        synced(drive.sync_directory());
        drive.rename("old", "new").unwrap();
        drive.append("other", b"2").unwrap();
        disk.crash(&mut |n| n - 1);
        let drive = disk.mount().unwrap();
        assert_eq!(drive.list().unwrap(), ["old"]);
        drive.rename("old", "new").unwrap();
        synced(drive.sync_directory());
        drive.remove("new").unwrap();
        disk.crash(&mut |n| n - 1);
        assert_eq!(disk.mount().unwrap().list().unwrap(), ["new"]);
    }

    /// A disk has one user, and the one of a dead process can do no more.
    #[test]
    fn a_disk_has_one_user() {
        let disk = SimDisk::default();
        let drive = disk.mount().unwrap();
        assert!(disk.mount().is_err());
        disk.kill();
        assert!(drive.append("a", b"1").is_err());
        let next = disk.mount().unwrap();
        drop(drive);
        next.append("a", b"1").unwrap();
        let (under_way, done) = (next.sync("a"), next.sync("a"));
        synced(done);
        drop(next);
        assert!(under_way.now_or_never().unwrap().is_err());
        assert_eq!((disk.mount().is_ok(), disk.syncs()), (true, 1));
    }
}
