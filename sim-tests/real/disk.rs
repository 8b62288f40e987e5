//! The storage on a real directory, over real sockets.

use std::{
    fs,
    io::{Read, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use leasehold::{
    net::TcpListener,
    storage::{
        Client, ClientOptions, Count, GuardKind, Limits, LogError, Request, Service,
        ServiceOptions, Store, admin, disk::Directory, server,
    },
    time::timeout,
};
use tokio::{sync::Notify, task::JoinHandle};

/// A data directory that goes with the test.
struct Fresh(PathBuf);

impl Fresh {
    fn new(name: &str) -> Self {
        let name = format!("leasehold-disk-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Fresh(path)
    }

    /// The one log file.
    fn log(&self) -> PathBuf {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let is_log =
            |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("log-");
        let logs: Vec<PathBuf> = files.filter(is_log).collect();
        assert_eq!(logs.len(), 1, "{logs:?}");
        logs[0].clone()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn open(directory: &Fresh, compact_bytes: u64) -> Result<Service, LogError> {
    let disk = Arc::new(Directory::open(&directory.0).unwrap());
    let machine = Box::new(Store::of_kind(GuardKind::Monotonic));
    let options = ServiceOptions { compact_bytes, ..ServiceOptions::default() };
    Service::open(machine, Arc::new(()), disk, options).await
}

/// A storage that serves until it is stopped.
struct Running {
    address: String,
    service: Arc<Service>,
    stop: Arc<Notify>,
    served: JoinHandle<()>,
}

impl Running {
    async fn start(service: Service) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (service, stop) = (Arc::new(service), Arc::new(Notify::new()));
        let (serving, told) = (service.clone(), stop.clone());
        let served =
            tokio::spawn(async move { server::serve(listener, serving, told.notified()).await });
        Running { address, service, stop, served }
    }

    fn client(&self) -> Client {
        Client::new(&self.address, ClientOptions::default()).unwrap()
    }

    async fn stop(self) {
        self.stop.notify_one();
        timeout(Duration::from_secs(10), self.served).await.expect("it stops in time").unwrap();
    }
}

/// What was answered is there after a restart, with its mark and its request numbers; many writers
/// share syncs, and the log is compacted on the way.
#[tokio::test]
async fn a_restart_finds_what_was_answered() {
    let directory = Fresh::new("restart");
    let storage = Running::start(open(&directory, 20_000).await.unwrap()).await;
    let mut tasks = Vec::new();
    for writer in 0..32 {
        let mut client = storage.client();
        tasks.push(tokio::spawn(async move {
            let mut holding = client.holding(format!("d{writer}"), 5);
            for value in 0..20 {
                holding.write("k", &format!("value {value}"), None).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let counters = storage.service.counters();
    assert_eq!(counters.get(Count::Admitted), 640);
    // A sync for each write would be 640.
    let syncs = counters.get(Count::Syncs);
    assert!(syncs <= 320 && counters.get(Count::Snapshots) > 0, "{syncs} syncs");
    assert!(Directory::open(&directory.0).is_err(), "two processes in one directory");
    storage.stop().await;

    let storage = Running::start(open(&directory, 20_000).await.unwrap()).await;
    assert_eq!((storage.service.boot(), storage.service.applied()), (2, 640));
    let mut client = storage.client();
    for writer in 0..32 {
        let domain = format!("d{writer}");
        let read = client.read_unfenced(&domain, "k", None).await.unwrap();
        assert_eq!(read.as_deref(), Some("value 19"));
        let again = Request { domain, seq: Some(20), ..Request::write("k", "value 19", 5) };
        assert_eq!(client.call(&again).await.unwrap().err, "");
        let stale = client.call(&Request { seq: None, version: Some(4), ..again }).await.unwrap();
        assert!(stale.err.contains("stale token"), "{}", stale.err);
    }
    assert_eq!(storage.service.counters().get(Count::Replayed), 32);
    storage.stop().await;
}

/// A torn tail is cut off; a damaged middle is an error with file and offset.
#[tokio::test]
async fn torn_and_damaged_logs() {
    let directory = Fresh::new("damage");
    let storage = Running::start(open(&directory, 1 << 20).await.unwrap()).await;
    let mut client = storage.client();
    for token in 1..=5 {
        client.call(&Request::write("k", format!("v{token}"), token)).await.unwrap();
    }
    storage.stop().await;
    let log = directory.log();
    let whole = fs::read(&log).unwrap();
    fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(&[7; 100]).unwrap();
    assert_eq!(open(&directory, 1 << 20).await.unwrap().applied(), 5);
    fs::write(&log, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(open(&directory, 1 << 20).await.unwrap().applied(), 4);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&log, &damaged).unwrap();
    let Err(LogError::Damaged { file, offset, .. }) = open(&directory, 1 << 20).await else {
        panic!("a damaged log was taken for a good one");
    };
    assert!(log.ends_with(file) && offset <= whole.len() as u64 / 2);
    assert_eq!(fs::read(&log).unwrap(), damaged, "nothing was changed");
}

/// What a socket hears within some seconds.
fn raw(address: &str, bytes: &[u8]) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut heard = String::new();
    let _ = stream.read_to_string(&mut heard);
    heard
}

/// Real sockets: slow ones are closed, too many are turned away, and the counters tell.
#[tokio::test]
async fn slow_and_many_clients() {
    let limits = Limits {
        connections: 1,
        head_timeout: Duration::from_millis(200),
        body_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let options = ServiceOptions { limits, ..ServiceOptions::default() };
    let machine = Box::new(Store::of_kind(GuardKind::Equal));
    let storage = Running::start(Service::new(machine, Arc::new(()), options)).await;
    let watch = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let watched = watch.local_addr().unwrap().to_string();
    let watching = admin::serve(watch, storage.service.clone(), std::future::pending());
    let watching = tokio::spawn(watching);
    let (address, service) = (storage.address.clone(), storage.service.clone());
    let heard = tokio::task::spawn_blocking(move || {
        let slow_head = raw(&address, b"POST / HT");
        let slow_body = raw(&address, b"POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 9\r\n\r\n{");
        let open = std::net::TcpStream::connect(&address).unwrap();
        // The two before it, and this one: it has the only slot.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while service.counters().get(Count::Connections) < 3 {
            assert!(std::time::Instant::now() < deadline, "the connection is not accepted");
            std::thread::yield_now();
        }
        let turned_away = raw(&address, b"GET / HTTP/1.1\r\nHost: s\r\n\r\n");
        drop(open);
        let metrics = raw(&watched, b"GET /metrics HTTP/1.1\r\nHost: s\r\n\r\n");
        [slow_head, slow_body, turned_away, metrics]
    });
    let [slow_head, slow_body, turned_away, metrics] = heard.await.unwrap();
    assert_eq!(slow_head, "");
    assert!(slow_body.starts_with("HTTP/1.1 408"), "{slow_body}");
    assert!(turned_away.starts_with("HTTP/1.1 503"), "{turned_away}");
    for line in ["connections_timed_out 2\n", "connections_refused 1\n", "panics 0\n"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    watching.abort();
    storage.stop().await;
}
