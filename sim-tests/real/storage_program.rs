//! `leasehold storage`, the program: killed again and again under load, stopped in an orderly way,
//! watched, and started wrongly.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
    sync::{Arc, Barrier},
    time::Duration,
};

use leasehold::{
    seed::Seed,
    storage::{Client, ClientOptions, Request},
    time::sleep,
};
use tokio::{sync::Notify, task::JoinHandle};

use super::program::{Program, Storage};

/// How often the storage is killed.
const KILLS: u32 = 50;
/// How many write at one time, each in a domain of its own.
const WRITERS: u64 = 6;

/// A directory that goes with the test.
struct Fresh(PathBuf);

impl Fresh {
    fn new(name: &str) -> Self {
        let name = format!("leasehold-program-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Fresh(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A writer: it counts up in a key of its domain, and knows what was acknowledged.
struct Writer {
    domain: String,
    /// The last request without an answer: its outcome is unknown.
    pending: Option<Request>,
    seq: u64,
    /// The last value that was acknowledged, and the highest token.
    value: u64,
    mark: i64,
    acknowledged: u64,
}

impl Writer {
    fn new(number: u64) -> Self {
        let domain = format!("d{number}");
        Writer { domain, pending: None, seq: 0, value: 0, mark: 0, acknowledged: 0 }
    }

    fn client(address: &str) -> Client {
        let options =
            ClientOptions { attempt_timeout: Duration::from_secs(2), ..ClientOptions::default() };
        Client::new(address, options).expect("host:port")
    }

    /// After a restart: what was acknowledged is there, and so is the mark.
    async fn verify(&mut self, address: &str) {
        let mut client = Writer::client(address);
        let read = client.read_unfenced(&self.domain, "k", None).await.expect("it answers");
        let found: u64 = read.map_or(0, |value| value.parse().expect("a number"));
        let next = self.pending.as_ref().map_or(self.value, |_| self.value + 1);
        assert!((self.value..=next).contains(&found), "{found}, acknowledged {}", self.value);
        if self.mark < 2 {
            return;
        }
        let domain = self.domain.clone();
        let below = Request { domain, version: Some(self.mark - 1), ..Request::read("k") };
        let answer = client.call(&below).await.expect("it answers");
        assert!(answer.err.starts_with("stale token"), "mark {}: {answer:?}", self.mark);
    }

    /// Works under a token until the storage is gone.
    async fn work(mut self, address: String, token: i64) -> Self {
        let mut client = Writer::client(&address);
        if let Some(request) = &self.pending {
            // The same number again: whatever became of it, now it has happened once.
            match client.call(request).await {
                Ok(answer) => assert_eq!(answer.err, "", "{request:?}"),
                Err(_) => return self,
            }
            self.settle();
        }
        loop {
            let fresh = self.mark < token;
            let request = self.next(token, fresh);
            self.pending = (!fresh).then(|| request.clone());
            match client.call(&request).await {
                Ok(answer) if fresh => {
                    assert!(answer.err.is_empty() || answer.is_not_found(), "{answer:?}");
                    self.mark = token;
                    self.acknowledged += 1;
                }
                Ok(answer) => {
                    assert_eq!(answer.err, "", "{request:?}");
                    self.settle();
                }
                Err(_) => return self,
            }
        }
    }

    /// A holder enters with a fenced read, and then writes.
    fn next(&mut self, token: i64, entering: bool) -> Request {
        self.seq += 1;
        let request = match entering {
            true => Request { version: Some(token), ..Request::read("k") },
            false => Request::write("k", (self.value + 1).to_string(), token),
        };
        Request { domain: self.domain.clone(), seq: Some(self.seq), ..request }
    }

    fn settle(&mut self) {
        self.pending = None;
        self.value += 1;
        self.acknowledged += 1;
    }
}

/// No acknowledged write is lost, no mark falls, and a resend of what was under way is settled:
/// over kills at any time, also while the log is compacted.
#[tokio::test]
async fn killed_under_load() {
    let directory = Fresh::new("kill");
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let mut moments = Seed(4).stream("kill");
    let (mut unknown, mut listen) = (0, "127.0.0.1:0".to_owned());
    for round in 1..=KILLS + 1 {
        let arguments = ["--data-dir", directory.path(), "--compact-bytes", "20000", "--listen"];
        let storage = Storage::start(&[&arguments[..], &[&listen]].concat()).await;
        listen = storage.address.clone();
        unknown += writers.iter().filter(|writer| writer.pending.is_some()).count();
        for writer in &mut writers {
            writer.verify(&listen).await;
        }
        if round > KILLS {
            storage.program.signal("-TERM");
            assert_eq!(storage.program.ends().await.0, Some(0));
            break;
        }
        let work: Vec<JoinHandle<Writer>> = writers
            .drain(..)
            .map(|writer| tokio::spawn(writer.work(listen.clone(), i64::from(round))))
            .collect();
        sleep(Duration::from_micros(20_000 + moments.below(130_000))).await;
        storage.program.kill().await;
        for writer in work {
            writers.push(writer.await.expect("no writer found a fault"));
        }
    }
    let acknowledged: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
    assert!(acknowledged > 50 * WRITERS, "only {acknowledged} were acknowledged");
    assert!(unknown > 20, "only {unknown} outcomes were unknown");
}

/// Reads one answer, headers and body.
fn hear(stream: &mut TcpStream, until: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let (mut heard, mut buffer) = (String::new(), [0; 4096]);
    while !heard.contains(until) {
        let read = stream.read(&mut buffer).expect("an answer");
        assert!(read > 0, "{heard}");
        heard += &String::from_utf8_lossy(&buffer[..read]);
    }
    heard
}

/// SIGTERM: a request in progress is answered, new connections are not taken, the data is kept.
#[tokio::test]
async fn a_stop_finishes_what_is_in_progress() {
    let directory = Fresh::new("stop");
    let storage = Storage::start(&["--data-dir", directory.path()]).await;
    let (program, address) = (storage.program, storage.address);
    let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Barrier::new(2)));
    let (told, go_on, to) = (begun.clone(), stopped.clone(), address.clone());
    let request = tokio::task::spawn_blocking(move || {
        let body = "{\"op\":\"write\",\"key\":\"k\",\"val\":\"late\",\"version\":3}";
        let head = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(&to).expect("it listens");
        stream.write_all(head.as_bytes()).expect("it reads");
        // Now the request is in progress: its body is asked for.
        hear(&mut stream, "100 Continue\r\n\r\n");
        told.notify_one();
        go_on.wait();
        stream.write_all(body.as_bytes()).expect("it reads on");
        hear(&mut stream, "\"err\"")
    });
    begun.notified().await;
    program.signal("-TERM");
    while TcpStream::connect(&address).is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
    tokio::task::spawn_blocking(move || stopped.wait()).await.expect("it waits");
    let heard = request.await.expect("an answer");
    assert!(heard.ends_with("{\"val\":\"late\",\"version\":3,\"err\":\"\"}"), "{heard}");
    assert_eq!(program.ends().await.0, Some(0));

    let storage = Storage::start(&["--data-dir", directory.path()]).await;
    let mut client = Writer::client(&storage.address);
    let read = client.read_unfenced("", "k", None).await.expect("it answers");
    assert_eq!(read.as_deref(), Some("late"));
    storage.program.signal("-INT");
    assert_eq!(storage.program.ends().await.0, Some(0));
}

/// The counters tell what happened, on a listener of their own.
#[tokio::test]
async fn counters() {
    let storage = Storage::start(&["--admin", "127.0.0.1:0"]).await;
    let line = storage.program.line("counters http://").await;
    assert!(line.contains("guard monotonic; data in memory"), "{line}");
    let url = line.split("counters http://").nth(1).expect("just found").to_owned();
    let address = url.trim_end_matches("/metrics").to_owned();
    let mut client = Writer::client(&storage.address);
    for token in [5, 6, 5] {
        client.call(&Request::write("k", "v", token)).await.expect("it answers");
    }
    assert!(client.call(&Request::write("k", "v", 0)).await.is_err());
    let metrics = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: s\r\n\r\n").expect("it reads");
        hear(&mut stream, "stopped ")
    });
    let metrics = metrics.await.expect("an answer");
    for expected in ["\nadmitted 2\n", "\nrefused 1\n", "\nrejected 1\n", "\npanics 0\n"] {
        assert!(metrics.contains(expected), "{metrics} lacks {expected}");
    }
}

/// The log files of a data directory.
fn logs(directory: &Fresh) -> Vec<PathBuf> {
    let files = fs::read_dir(&directory.0).expect("a directory");
    let files = files.map(|entry| entry.expect("an entry").path());
    let is_log = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("log-"))
    };
    files.filter(is_log).collect()
}

/// A log that was taken away is missed: the storage does not start empty, and says what would make
/// it. What a crash during the very first start leaves behind is no obstacle.
#[tokio::test]
async fn a_missing_log_is_no_fresh_start() {
    let directory = Fresh::new("missing");
    fs::create_dir_all(&directory.0).expect("a directory");
    fs::write(directory.0.join("lock"), "").expect("writable");
    fs::write(directory.0.join("log-unfinished"), "LEASE").expect("writable");
    let data = ["--listen", "127.0.0.1:0", "--data-dir", directory.path()];
    let storage = Storage::start(&data).await;
    let mut client = Writer::client(&storage.address);
    client.call(&Request::write("k", "v", 7)).await.expect("it answers");
    storage.program.kill().await;

    let log = logs(&directory).pop().expect("a log");
    let away = directory.0.join("away");
    fs::rename(&log, &away).expect("movable");
    for _ in 0..2 {
        let (status, line) = fails(&data).await;
        assert_eq!(status, Some(1), "{line}");
        for part in [directory.path(), "log-", "\"lock\"", "restore", "lose"] {
            assert!(line.contains(part), "{line} lacks {part}");
        }
    }
    assert!(logs(&directory).is_empty(), "nothing was made in its place");
    fs::rename(&away, &log).expect("movable");
    let storage = Storage::start(&data).await;
    let mut client = Writer::client(&storage.address);
    let read = client.read_unfenced("", "k", None).await.expect("it answers");
    assert_eq!(read.as_deref(), Some("v"));
    storage.program.kill().await;
    for log in logs(&directory) {
        fs::remove_file(log).expect("removable");
    }
    fs::remove_file(directory.0.join("lock")).expect("removable");
    let storage = Storage::start(&data).await;
    let mut client = Writer::client(&storage.address);
    assert_eq!(client.read_unfenced("", "k", None).await.expect("it answers"), None);
}

/// The file grows up to the limit that the system sets, while it is appended to or compacted: the
/// write that does not fit is not acknowledged, nothing is any more, the program ends with a line
/// that says why, and the next one, without the limit, has all that was acknowledged.
#[tokio::test]
async fn a_file_that_may_not_grow() {
    for compact_bytes in ["1000000000", "3000"] {
        let directory = Fresh::new(&format!("limit-{compact_bytes}"));
        let arguments = ["--data-dir", directory.path(), "--compact-bytes", compact_bytes];
        let mut limited = tokio::process::Command::new("sh");
        // 32 blocks of 512 bytes, or of 1024: shells differ.
        limited
            .args(["-c", "ulimit -f 32; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_leasehold")])
            .args(["storage", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env_remove("RUST_LOG");
        let program = Program::spawn(&mut limited);
        let line = program.line("listening on ").await;
        let (_, rest) = line.split_once("listening on ").expect("just found");
        let address = rest.split(';').next().expect("at least one part").to_owned();
        let mut client = Writer::client(&address);
        let mut acknowledged = 0;
        loop {
            let key = format!("k{acknowledged}");
            match client.call(&Request::write(key, "v".repeat(200), 1)).await {
                Ok(answer) if answer.err.is_empty() => acknowledged += 1,
                _ => break,
            }
            assert!(acknowledged < 1000, "the limit is not reached");
        }
        assert!(acknowledged > 20, "{acknowledged}");
        assert!(client.call(&Request::write("late", "v", 1)).await.is_err());
        let (status, lines) = program.ends().await;
        let last = lines.last().expect("a line");
        assert_eq!(status, Some(1), "{lines:?}");
        assert!(last.contains("cannot append to") && last.contains("too large"), "{lines:?}");

        let storage = Storage::start(&arguments).await;
        let mut client = Writer::client(&storage.address);
        for written in 0..acknowledged {
            let read = client.read_unfenced("", &format!("k{written}"), None).await;
            assert_eq!(read.expect("it answers"), Some("v".repeat(200)), "k{written}");
        }
        assert_eq!(client.read_unfenced("", "late", None).await.expect("it answers"), None);
    }
}

/// What ends a start: status, and one line that says why.
async fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let (status, lines) = Program::start([&["storage"], arguments].concat()).ends().await;
    assert_eq!(lines.len(), 1, "{arguments:?}: {lines:?}");
    (status, lines[0].clone())
}

/// A wrong start ends with one line that says what is wrong: status 1 if it is the world, 2 if it
/// is the request.
#[tokio::test]
async fn wrong_starts() {
    let directory = Fresh::new("wrong");
    let data = ["--listen", "127.0.0.1:0", "--data-dir", directory.path()];
    let storage = Storage::start(&data).await;
    let (status, line) = fails(&["--listen", &storage.address]).await;
    assert_eq!(status, Some(1), "{line}");
    assert!(line.contains(&storage.address) && line.contains("in use"), "{line}");
    let (status, line) = fails(&data).await;
    assert_eq!(status, Some(1), "{line}");
    assert!(line.contains("another process uses it"), "{line}");
    let mut client = Writer::client(&storage.address);
    for token in 1..=5 {
        client.call(&Request::write("k", "a value", token)).await.expect("it answers");
    }
    storage.program.kill().await;

    let (status, line) = fails(&[&data[..], &["--guard", "equal"]].concat()).await;
    assert_eq!(status, Some(1), "{line}");
    assert!(line.contains("monotonic") && line.contains("equal"), "{line}");
    let log = fs::read_dir(&directory.0).expect("a directory").find_map(|entry| {
        let path = entry.expect("an entry").path();
        path.file_name()?.to_str()?.starts_with("log-").then_some(path)
    });
    let log = log.expect("a log");
    let mut bytes = fs::read(&log).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).expect("writable");
    let (status, line) = fails(&data).await;
    assert_eq!(status, Some(1), "{line}");
    let file = log.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    assert!(line.contains(directory.path()) && line.contains(file), "{line}");
    assert!(line.contains("damaged at offset "), "{line}");

    for (arguments, expected) in [
        (&["--listen", "nowhere"][..], "--listen \"nowhere\""),
        (&["--guard", "strict"], "'strict'"),
        (&["--max-connections", "0"], "--max-connections"),
    ] {
        let (status, line) = fails(arguments).await;
        assert_eq!(status, Some(2), "{line}");
        assert!(line.contains(expected), "{line}");
    }
}
