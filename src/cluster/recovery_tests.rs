//! A storage on a disk: starting from it, sharing its syncs, and standing still when it fails.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use madsim::runtime::NodeHandle;
use tokio::sync::Notify;

use super::{durability_tests::node, sim};
use crate::{
    net::TcpListener,
    seed::Seed,
    storage::{
        Client, ClientOptions, Count, GuardKind, LogError, Request, Response, Service,
        ServiceOptions, StateMachine, StorageError, Store, disk::SimDisk, server,
    },
    time::{Instant, sleep},
};

const ADDRESS: &str = "10.0.0.9:8080";

async fn open_with(
    disk: &SimDisk,
    machine: Box<dyn StateMachine>,
    compact_bytes: u64,
) -> Result<Service, LogError> {
    let options = ServiceOptions { compact_bytes, ..ServiceOptions::default() };
    Service::open(machine, Arc::new(()), Arc::new(disk.mount().unwrap()), options).await
}

async fn open(disk: &SimDisk) -> Result<Service, LogError> {
    open_with(disk, Box::new(Store::of_kind(GuardKind::Monotonic)), 1 << 20).await
}

/// Serves until told to stop; gives how long that took from then on.
fn serve(storage: &NodeHandle, service: &Arc<Service>) -> Arc<Notify> {
    let stop = Arc::new(Notify::new());
    let (service, told) = (service.clone(), stop.clone());
    drop(storage.spawn(async move {
        let listener = TcpListener::bind(ADDRESS).await.unwrap();
        server::serve(listener, service, told.notified()).await;
    }));
    stop
}

fn client() -> Client {
    let options =
        ClientOptions { attempt_timeout: Duration::from_secs(100), ..ClientOptions::default() };
    Client::new(&format!("http://{ADDRESS}"), options).unwrap()
}

/// Sends these requests one after another, from a client's node.
async fn asked(from: &NodeHandle, requests: Vec<Request>) -> Vec<Result<Response, StorageError>> {
    let asked = from.spawn(async move {
        let mut answers = Vec::new();
        for request in requests {
            // A new one each: a storage that has stopped closes its connections.
            answers.push(client().call(&request).await);
        }
        answers
    });
    asked.await.unwrap()
}

fn writes(tokens: std::ops::RangeInclusive<i64>) -> Vec<Request> {
    tokens.map(|token| Request::write("k", format!("v{token}"), token)).collect()
}

fn in_sim<F: Future<Output = ()> + 'static>(
    test: impl FnOnce(NodeHandle, NodeHandle) -> F + Send + 'static,
) {
    let run = sim::run(Seed(1), move || async move {
        let (storage, client) = (node("storage", "10.0.0.9"), node("client", "10.0.0.1"));
        test(storage, client).await;
    });
    run.unwrap();
}

/// A disk on which five writes were answered.
async fn used(storage: &NodeHandle, client: &NodeHandle, compact_bytes: u64) -> SimDisk {
    let disk = SimDisk::default();
    let machine = Box::new(Store::of_kind(GuardKind::Monotonic));
    let service = Arc::new(open_with(&disk, machine, compact_bytes).await.unwrap());
    let stop = serve(storage, &service);
    sleep(Duration::from_millis(10)).await;
    let answers = asked(client, writes(1..=5)).await;
    assert!(answers.iter().all(Result::is_ok));
    stop.notify_one();
    drop(service);
    sleep(Duration::from_secs(10)).await;
    disk
}

/// What is logged in this thread while the guard lives.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A torn tail is cut off with a warning that names file, place and bytes; the index goes on.
#[test]
fn a_torn_tail_is_cut_off_with_a_warning() {
    in_sim(|storage, client| async move {
        let disk = used(&storage, &client, 1 << 20).await;
        let (file, bytes) = disk.files().into_iter().next().unwrap();
        assert!(disk.edit(&file, |bytes| bytes.truncate(bytes.len() - 3)));
        let lines = Lines::default();
        let written = lines.clone();
        let service = {
            let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || lines.clone());
            let _guard = tracing::subscriber::set_default(log.finish());
            open(&disk).await.unwrap()
        };
        assert_eq!((service.applied(), service.boot()), (4, 2));
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let warning = text.lines().find(|line| line.contains("WARN")).unwrap();
        let length = disk.files()[&file].len();
        assert!(length < bytes.len() + 40, "the tail is gone, and a boot was noted");
        for part in [&*file, "torn tail", "offset=", "bytes="] {
            assert!(warning.contains(part), "{warning}");
        }
    });
}

/// Damage before the end, in the header or in the snapshot is an error that names file and offset,
/// and nothing on the disk changes by it.
#[test]
fn damage_is_an_error_and_changes_nothing() {
    in_sim(|storage, client| async move {
        let disk = used(&storage, &client, 1 << 20).await;
        let (file, whole) = disk.files().into_iter().next().unwrap();
        for (at, expected) in [(3, 0), (40, 32), (70, 32), (whole.len() / 2, 64)] {
            disk.edit(&file, |bytes| bytes[at] ^= 0x10);
            let before = disk.files();
            let Err(error) = open(&disk).await else { panic!("started in spite of {at}") };
            let LogError::Damaged { file: named, offset, .. } = &error else { panic!("{error}") };
            assert_eq!(*named, file);
            assert!(*offset >= expected && *offset as usize <= at, "{error}");
            assert!(error.to_string().contains(&format!("offset {offset}")), "{error}");
            assert_eq!(disk.files(), before);
            disk.edit(&file, |bytes| bytes[at] ^= 0x10);
        }
        disk.edit(&file, |bytes| bytes.truncate(50));
        assert!(matches!(open(&disk).await, Err(LogError::Damaged { offset: 32, .. })));
    });
}

/// A storage of the crate with another guard, and one that keeps nothing.
#[test]
fn another_storage_does_not_start_there() {
    struct Forgetful;
    impl StateMachine for Forgetful {
        fn apply(&mut self, _request: &Request) -> crate::storage::Applied {
            crate::storage::Applied::refused("never")
        }
    }
    in_sim(|storage, client| async move {
        let disk = used(&storage, &client, 100).await;
        assert_eq!(disk.files().len(), 1);
        let other = Box::new(Store::of_kind(GuardKind::Equal));
        let Err(error) = open_with(&disk, other, 1).await else { panic!("another guard started") };
        assert!(error.to_string().contains("guard monotonic"), "{error}");
        assert_eq!(open(&disk).await.unwrap().applied(), 5);
        let Err(error) = open_with(&SimDisk::default(), Box::new(Forgetful), 1).await else {
            panic!("it cannot be kept and started");
        };
        assert!(matches!(error, LogError::Volatile), "{error}");
    });
}

/// Forty requests at one time share a few syncs, and none is answered before its own is over: reads
/// and refusals of what is not durable yet wait as well.
#[test]
fn requests_share_a_sync_and_wait_for_it() {
    in_sim(|storage, from| async move {
        let disk = SimDisk::default();
        let service = Arc::new(open(&disk).await.unwrap());
        let _stop = serve(&storage, &service);
        sleep(Duration::from_millis(10)).await;
        disk.set_sync_latency(Duration::from_millis(500));
        let (before, started) = (service.counters().get(Count::Syncs), Instant::now());
        let mut tasks = Vec::new();
        for token in 1..=40 {
            let ask = async move {
                let request = match token {
                    // Late enough to see what was noted, early enough to see it not durable.
                    38..=40 => {
                        sleep(Duration::from_millis(50)).await;
                        Request { version: (token == 38).then_some(1), ..Request::read("k") }
                    }
                    _ => Request::write("k", format!("v{token}"), token),
                };
                client().call(&request).await.unwrap();
                started.elapsed()
            };
            tasks.push(from.spawn(ask));
        }
        for task in tasks {
            let took = task.await.unwrap();
            assert!(took >= Duration::from_millis(500), "answered after {took:?}");
        }
        let syncs = service.counters().get(Count::Syncs) - before;
        assert!((1..=3).contains(&syncs), "{syncs} syncs");
    });
}

/// After a failed sync nothing is acknowledged: 500 for what was under way, then 503; a restart
/// finds what had been answered before.
#[test]
fn a_failed_disk_stops_the_storage() {
    in_sim(|storage, client| async move {
        for full in [false, true] {
            let disk = SimDisk::default();
            let service = Arc::new(open(&disk).await.unwrap());
            let stop = serve(&storage, &service);
            sleep(Duration::from_millis(10)).await;
            assert!(asked(&client, writes(1..=2)).await.iter().all(Result::is_ok));
            disk.set_syncs_fail(!full);
            disk.set_appends_fail(full);
            let asked_then = asked(&client, [writes(3..=4), vec![Request::read("k")]].concat());
            let answers = asked_then.await;
            let statuses: Vec<u16> = answers
                .iter()
                .map(|answer| match answer {
                    Err(StorageError::Protocol { status, .. }) => *status,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(statuses, [500, 503, 503]);
            assert!(service.stopped().is_some());
            assert_eq!(service.counters().get(Count::Failed), 3);
            stop.notify_one();
            drop(service);
            sleep(Duration::from_secs(10)).await;
            disk.set_syncs_fail(false);
            disk.set_appends_fail(false);
            disk.crash(&mut |n| n - 1);
            let again = open(&disk).await.unwrap();
            assert!(again.applied() >= 2, "{}", again.applied());
        }
    });
}

/// A stop waits for the sync of what was begun, but not for ever.
#[test]
fn a_stop_waits_for_the_disk_within_bounds() {
    in_sim(|storage, client| async move {
        for (latency, answered) in [(1, true), (60, false)] {
            let disk = SimDisk::default();
            let service = Arc::new(open(&disk).await.unwrap());
            disk.set_sync_latency(Duration::from_secs(latency));
            let stop = Arc::new(Notify::new());
            let told = stop.clone();
            let served = storage.spawn(async move {
                let listener = TcpListener::bind(ADDRESS).await.unwrap();
                server::serve(listener, service, told.notified()).await;
            });
            sleep(Duration::from_millis(10)).await;
            let stopping = async {
                sleep(Duration::from_millis(100)).await;
                stop.notify_one();
                let started = Instant::now();
                served.await.unwrap();
                started.elapsed()
            };
            let (answers, took) = tokio::join!(asked(&client, writes(1..=1)), stopping);
            assert_eq!(answers[0].is_ok(), answered, "{answers:?}");
            assert!(took < Duration::from_millis(5100), "{took:?}");
        }
    });
}
