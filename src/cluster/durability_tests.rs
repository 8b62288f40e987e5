//! The storage on a disk, killed at random under load: what it answered stays true.
//!
//! Clients judge by answers alone, so that the same test judges wrong disks and wrong storages: in
//! a domain of its own each knows what it wrote; in a shared one each answer is evidence of a mark
//! and of a version, and no later answer may contradict it.

mod client;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use madsim::{
    runtime::{Handle, NodeHandle},
    task::NodeId,
};

use self::client::{Clients, Evidence};
use super::sim;
use crate::{
    history::{ApplyRow, Boundary, RowResult},
    net::{NetSim, TcpListener},
    seed::{Seed, Stream},
    storage::{
        ApplyLog, Count, Disk, GuardKind, LogError, Service, ServiceOptions, Store,
        disk::{SimDisk, SimDrive, Syncing},
        server,
    },
    time::sleep,
};

const ADDRESS: &str = "10.0.0.9:8080";
const LIVES: u64 = 8;
const CLIENTS: u8 = 3;

/// Which law of durability the storage breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// It answers when the sync has begun: before what it answers is durable.
    AnswersBeforeSync,
    /// It forgets that a new name needs a sync of its own.
    NamesNotSynced,
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Ended {
    /// The first contradiction between answers.
    violation: Option<String>,
    written: u64,
    refused: u64,
    replayed: u64,
    snapshots: u64,
    torn: u64,
    lost_names: u64,
}

/// A disk that is wrong in one way.
struct WrongDisk(SimDrive, Wrong);

impl WrongDisk {
    fn hurry(&self, wrong: Wrong, sync: Syncing) -> Syncing {
        if self.1 != wrong {
            return sync;
        }
        if wrong == Wrong::AnswersBeforeSync {
            drop(tokio::spawn(sync));
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Disk for WrongDisk {
    fn list(&self) -> std::io::Result<Vec<String>> {
        self.0.list()
    }
    fn read(&self, file: &str) -> std::io::Result<Vec<u8>> {
        self.0.read(file)
    }
    fn append(&self, file: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.0.append(file, bytes)
    }
    fn truncate(&self, file: &str, length: u64) -> std::io::Result<()> {
        self.0.truncate(file, length)
    }
    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, file: &str) -> std::io::Result<()> {
        self.0.remove(file)
    }
    fn sync(&self, file: &str) -> Syncing {
        self.hurry(Wrong::AnswersBeforeSync, self.0.sync(file))
    }
    fn sync_directory(&self) -> Syncing {
        self.hurry(Wrong::NamesNotSynced, self.0.sync_directory())
    }
}

/// What the storage did with the requests that a client marked as resends.
#[derive(Default)]
struct Rows(Mutex<Vec<ApplyRow>>);

impl ApplyLog for Rows {
    fn boundary(&self, _boundary: Boundary) {}

    fn applied(&self, row: ApplyRow) {
        self.0.lock().unwrap().push(row);
    }
}

pub(super) fn node(name: &str, address: &str) -> NodeHandle {
    let address: IpAddr = address.parse().unwrap();
    let node = Handle::current().create_node().name(name).ip(address).build();
    NetSim::current().set_address(node.id(), address);
    node
}

/// A storage that is killed again and again.
struct Victim {
    id: NodeId,
    disk: SimDisk,
    rows: Arc<Rows>,
    wrong: Wrong,
    services: Vec<Arc<Mutex<Option<Arc<Service>>>>>,
    broken: Arc<Mutex<Option<LogError>>>,
}

impl Victim {
    /// A life: recovery, and then service until it is killed.
    fn start(&mut self) {
        let disk = Arc::new(WrongDisk(self.disk.mount().unwrap(), self.wrong));
        let (rows, broken) = (self.rows.clone(), self.broken.clone());
        let started = Arc::new(Mutex::new(None));
        self.services.push(started.clone());
        let node = Handle::current().get_node(self.id).unwrap();
        node.spawn(async move {
            let machine = Box::new(Store::of_kind(GuardKind::Monotonic));
            let options = ServiceOptions { compact_bytes: 3000, ..ServiceOptions::default() };
            match Service::open(machine, rows, disk, options).await {
                Ok(service) => {
                    let service = Arc::new(service);
                    *started.lock().unwrap() = Some(service.clone());
                    let listener = TcpListener::bind(ADDRESS).await.unwrap();
                    server::serve(listener, service, std::future::pending()).await;
                }
                Err(error) => *broken.lock().unwrap() = Some(error),
            }
        });
    }

    /// Dies; one death in four leaves the page cache, as that of a process does.
    fn kill(&mut self, stream: &mut Stream, ended: &mut Ended) {
        Handle::current().kill(self.id);
        if stream.chance(250) {
            self.disk.kill();
        } else {
            let before = self.disk.files();
            self.disk.crash(&mut |n| stream.below(n));
            let after = self.disk.files();
            ended.lost_names += u64::from(before.keys().ne(after.keys()));
            let changed = |(name, bytes)| after.get(name).is_some_and(|left| left != bytes);
            ended.torn += u64::from(before.iter().any(changed));
        }
        Handle::current().restart(self.id);
    }

    fn count(&self, count: Count) -> u64 {
        let of = |service: &Arc<Mutex<Option<Arc<Service>>>>| {
            service.lock().unwrap().as_ref().map_or(0, |service| service.counters().get(count))
        };
        self.services.iter().map(of).sum()
    }
}

/// One run: clients at work while the storage dies, and a quiet end.
fn run(seed: u64, wrong: Wrong) -> Ended {
    let ended = sim::run(Seed(seed), move || async move {
        let mut stream = Seed(seed).stream("disk");
        let mut ended = Ended::default();
        let mut victim = Victim {
            id: node("storage", "10.0.0.9").id(),
            disk: SimDisk::default(),
            rows: Arc::default(),
            wrong,
            services: Vec::new(),
            broken: Arc::default(),
        };
        victim.start();
        let evidence = Arc::new(Evidence::default());
        let clients = Clients::start(seed, CLIENTS, &evidence);
        for _ in 1..LIVES {
            let latency = stream.duration(Duration::ZERO, Duration::from_millis(8));
            victim.disk.set_sync_latency(latency);
            sleep(stream.duration(Duration::from_millis(5), Duration::from_millis(250))).await;
            victim.kill(&mut stream, &mut ended);
            sleep(stream.duration(Duration::ZERO, Duration::from_millis(20))).await;
            victim.start();
        }
        clients.finish().await;
        ended.violation = evidence.violation();
        if let Some(error) = victim.broken.lock().unwrap().take() {
            ended.violation.get_or_insert(format!("a life could not start: {error}"));
        }
        let resends = std::mem::take(&mut *victim.rows.0.lock().unwrap());
        for row in resends.iter().filter(|row| row.tag == Some(client::RESEND)) {
            ended.replayed += 1;
            if row.result != RowResult::Replayed {
                ended.violation.get_or_insert(format!("a resend was not known: {row:?}"));
            }
        }
        (ended.written, ended.refused) = evidence.counts();
        ended.snapshots = victim.count(Count::Snapshots);
        Handle::current().kill(victim.id);
        sleep(Duration::from_millis(10)).await;
        ended
    });
    ended.unwrap()
}

/// 200 storages die seven deaths each: no answer is contradicted by a later one.
#[test]
fn what_was_answered_stays_true() {
    let mut all = Ended::default();
    for seed in 0..200 {
        let ended = run(seed, Wrong::Nothing);
        assert_eq!(ended.violation, None, "seed {seed}");
        all.written += ended.written;
        all.refused += ended.refused;
        all.replayed += ended.replayed;
        all.snapshots += ended.snapshots;
        all.torn += ended.torn;
        all.lost_names += ended.lost_names;
    }
    assert!(all.written > 10_000 && all.refused > 1_000 && all.replayed > 1_000, "{all:?}");
    assert!(all.snapshots > 100 && all.torn > 100 && all.lost_names > 10, "{all:?}");
}

/// The same test catches a storage that answers too early, and one that loses its names.
#[test]
fn wrong_storages_are_caught() {
    for wrong in [Wrong::AnswersBeforeSync, Wrong::NamesNotSynced] {
        let caught = (0..60).filter(|seed| run(*seed, wrong).violation.is_some()).count();
        assert!(caught >= 5, "{wrong:?}: caught in {caught} of 60 runs");
    }
}

/// The same seed gives the same run, the disk's losses included.
#[test]
fn runs_repeat() {
    let of = |seed| format!("{:?}", run(seed, Wrong::Nothing));
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}
