//! The storage's machine: its disk, and the lives of its process.
//!
//! A storage that can be kept is served from a simulated disk: a killed process loses what was not
//! synced, as in a loss of power, and the next life begins with a fresh state machine and what the
//! disk has. One that cannot be kept is served from memory and is never killed.

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::truth::Truth;
use crate::{
    seed::{Seed, Stream},
    storage::{
        Disk, LogError, Service, ServiceOptions,
        disk::{SimDisk, SimDrive},
    },
    system::{MakeStorage, WrapDisk},
    time::sleep,
};

/// How long a sync takes when nothing disturbs it.
const SYNC: Duration = Duration::from_millis(1);
/// A process that cannot read its disk ends, and whoever looks after it starts it again.
const OPEN_AGAIN: Duration = Duration::from_millis(200);

/// The storage's machine.
pub(crate) struct Host {
    make: MakeStorage,
    wrap: Option<WrapDisk>,
    truth: Arc<Truth>,
    disk: SimDisk,
    /// What serves from memory; none for a storage that is kept on the disk.
    volatile: Option<Arc<Service>>,
    stream: Mutex<Stream>,
    /// How much longer a sync takes, by each fault that makes it slow.
    slow: Mutex<Vec<Duration>>,
    /// How many faults let its syncs fail, and its appends.
    failing: Mutex<(u32, u32)>,
    /// Whether this life of the process listens already.
    serves: AtomicBool,
}

impl Host {
    pub(super) fn new(
        seed: Seed,
        make: MakeStorage,
        wrap: Option<WrapDisk>,
        truth: Arc<Truth>,
    ) -> Self {
        let machine = make();
        let kept = machine.save().is_some();
        let volatile =
            (!kept).then(|| Arc::new(Service::new(machine, truth.clone(), service_options())));
        Host {
            make,
            wrap,
            truth,
            disk: SimDisk::default(),
            volatile,
            stream: Mutex::new(seed.stream("disk")),
            slow: Mutex::default(),
            failing: Mutex::default(),
            serves: AtomicBool::new(false),
        }
    }

    /// Whether it outlives a kill.
    pub(crate) fn is_kept(&self) -> bool {
        self.volatile.is_none()
    }

    /// The disk; none if the storage is served from memory.
    pub(crate) fn disk(&self) -> Option<&SimDisk> {
        self.is_kept().then_some(&self.disk)
    }

    /// How many requests were applied, over all lives.
    pub(super) fn applied(&self) -> u64 {
        self.truth.applied_rows()
    }

    /// A new life: what there is to serve, once the disk can be read.
    ///
    /// # Panics
    /// If the disk holds what no storage understands: that is a fault of the storage, unless a
    /// wrapped disk has lied. Then the storage begins anew, and the judge sees what is missing.
    pub(super) async fn open(&self) -> Arc<Service> {
        if let Some(service) = &self.volatile {
            return service.clone();
        }
        loop {
            match Service::open((self.make)(), self.truth.clone(), self.mount(), service_options())
                .await
            {
                Ok(service) => {
                    self.set_sync_latency();
                    return Arc::new(service);
                }
                Err(error @ LogError::Io { .. }) => {
                    tracing::warn!(%error, "the storage cannot start");
                    sleep(OPEN_AGAIN).await;
                }
                Err(error) if self.wrap.is_some() => {
                    tracing::warn!(%error, "the storage begins with an empty disk");
                    self.disk.clear();
                }
                Err(error) => panic!("the storage cannot start from its disk: {error}"),
            }
        }
    }

    fn mount(&self) -> Arc<dyn Disk> {
        let drive: SimDrive = match self.disk.mount() {
            Ok(drive) => drive,
            Err(error) => panic!("the storage's disk is not free: {error}"),
        };
        let disk: Arc<dyn Disk> = Arc::new(drive);
        self.wrap.map_or(disk.clone(), |wrap| wrap(disk))
    }

    /// The process listens now.
    pub(super) fn listens(&self) {
        self.serves.store(true, Ordering::Relaxed);
    }

    pub(super) fn serves(&self) -> bool {
        self.serves.load(Ordering::Relaxed)
    }

    /// The process is dead, and the machine loses its power with it.
    pub(super) fn crash(&self) {
        self.serves.store(false, Ordering::Relaxed);
        let mut stream = lock(&self.stream);
        self.disk.crash(&mut |n| stream.below(n));
    }

    /// The process is dead, the machine goes on.
    pub(super) fn die(&self) {
        self.serves.store(false, Ordering::Relaxed);
        self.disk.kill();
    }

    /// How many random numbers its crashes drew.
    pub(super) fn draws(&self) -> u64 {
        lock(&self.stream).draws()
    }

    /// Makes each sync take this much longer, on top of others.
    pub(crate) fn add_sync_latency(&self, latency: Duration) {
        lock(&self.slow).push(latency);
        self.set_sync_latency();
    }

    /// Takes one back; syncs under way keep their time.
    pub(crate) fn remove_sync_latency(&self, latency: Duration) {
        let mut slow = lock(&self.slow);
        if let Some(at) = slow.iter().position(|one| *one == latency) {
            slow.remove(at);
        }
        drop(slow);
        self.set_sync_latency();
    }

    /// Lets the disk fail, as one that is full or in its syncs, or takes one such fault back.
    pub(crate) fn fail(&self, full: bool, on: bool) {
        let (syncs, appends) = &mut *lock(&self.failing);
        let count = if full { &mut *appends } else { &mut *syncs };
        *count = if on { *count + 1 } else { count.saturating_sub(1) };
        self.disk.set_syncs_fail(*syncs > 0);
        self.disk.set_appends_fail(*appends > 0);
    }

    fn set_sync_latency(&self) {
        let slow: Duration = lock(&self.slow).iter().sum();
        self.disk.set_sync_latency(SYNC + slow);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn service_options() -> ServiceOptions {
    // A panic of a storage under test is to end the run; snapshots are to happen within it.
    ServiceOptions { catch_panics: false, compact_bytes: 8 * 1024, ..ServiceOptions::default() }
}
