//! The storage's server against clients that are malformed, slow, many, or just gone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

use super::{durability_tests::node, sim};
use crate::{
    history::{ApplyRow, Boundary, OpKind},
    net::{TcpListener, TcpStream},
    seed::Seed,
    storage::{
        Applied, ApplyLog, Client, ClientOptions, Count, GuardKind, Limits, Request, Service,
        ServiceOptions, StateMachine, Store, admin, server,
    },
    time::{Instant, sim::true_ns, sleep, timeout},
};

const ADDRESS: &str = "10.0.0.9:8080";
const ADMIN: &str = "10.0.0.9:9090";
const CASES: &str = include_str!("../../sim-tests/data/contrib-storage-cases.json");

/// Runs a test on a client's node while the storage serves this machine on its own.
fn serving<F: Future<Output = ()> + Send + 'static>(
    machine: Box<dyn StateMachine>,
    log: Arc<dyn ApplyLog>,
    limits: Limits,
    test: impl FnOnce(Arc<Service>) -> F + Send + 'static,
) {
    let run = sim::run(Seed(1), move || async move {
        let options = ServiceOptions { limits, ..ServiceOptions::default() };
        let service = Arc::new(Service::new(machine, log, options));
        let (served, watched) = (service.clone(), service.clone());
        let storage = node("storage", "10.0.0.9");
        let client = node("client", "10.0.0.1");
        storage.spawn(async move {
            let listener = TcpListener::bind(ADDRESS).await.unwrap();
            server::serve(listener, served, std::future::pending()).await;
        });
        storage.spawn(async move {
            let listener = TcpListener::bind(ADMIN).await.unwrap();
            admin::serve(listener, watched, std::future::pending()).await;
        });
        sleep(Duration::from_millis(10)).await;
        client.spawn(test(service)).await.unwrap();
    });
    run.unwrap();
}

fn store() -> Box<dyn StateMachine> {
    Box::new(Store::of_kind(GuardKind::Equal))
}

/// What comes back until the server closes, or says nothing for a while.
async fn heard(stream: &mut TcpStream, patience: Duration) -> (String, bool) {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match timeout(patience, stream.read(&mut piece)).await {
            Ok(Ok(0)) | Ok(Err(_)) => return (String::from_utf8_lossy(&all).into_owned(), true),
            Ok(Ok(length)) => all.extend_from_slice(&piece[..length]),
            Err(_) => return (String::from_utf8_lossy(&all).into_owned(), false),
        }
    }
}

/// Says something on a new connection and listens.
async fn say(address: &str, bytes: &[u8], end: bool) -> (String, bool) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
    if end {
        stream.shutdown().await.unwrap();
    }
    heard(&mut stream, Duration::from_millis(500)).await
}

fn post(body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
}

fn status(answer: &str) -> Option<u16> {
    answer.strip_prefix("HTTP/1.1 ").or(answer.strip_prefix("HTTP/1.0 "))?.get(..3)?.parse().ok()
}

const READ: &str = "{\"op\":\"read\",\"key\":\"k\"}";

/// The recording shows bytes as in a Python literal: `\n`, `\\`, `\'`, `\xff`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (byte, if byte == b'\\' { bytes.next() } else { None }) {
            (b'\\', Some(b'n')) => out.push(b'\n'),
            (b'\\', Some(b'r')) => out.push(b'\r'),
            (b'\\', Some(b't')) => out.push(b'\t'),
            (b'\\', Some(b'x')) => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                let digits = str::from_utf8(&digits).unwrap().to_owned();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            (b'\\', Some(other)) => out.push(other),
            _ => out.push(byte),
        }
    }
    out
}

/// The bytes of a recorded step, as its client sent them.
fn recorded(case: &str, step: &Value) -> Vec<u8> {
    let text = |name: &str| step[name].as_str().unwrap().to_owned();
    let filler = "x".repeat(10_000_000);
    let body = match case {
        "deep nesting 10001 in an extra field" => {
            format!("{{\"op\":\"read\",\"x\":{}{}}}", "[".repeat(10_001), "]".repeat(10_001)).into()
        }
        "huge val 10 MB" | "huge key 10 MB" | "10 MB of junk" => filler.into(),
        _ => unescape(&text("body")),
    };
    let headers: Vec<&str> =
        step["headers"].as_array().unwrap().iter().map(|h| h.as_str().unwrap()).collect();
    let mut request = text("request_line") + "\r\n";
    if !case.starts_with("no Host") {
        request += "Host: localhost:8080\r\n";
    }
    for header in &headers {
        request += &format!("{header}\r\n");
    }
    let chunked = headers.iter().any(|header| header.starts_with("Transfer-Encoding"));
    let declared = match case {
        "client half-closes before Content-Length bytes" => Some(body.len() + 20),
        "two pipelined requests (first answer shown)" => Some(READ.len()),
        _ if chunked || case.contains("no Content-Length") || body.is_empty() => None,
        _ => Some(body.len()),
    };
    if let Some(length) = declared {
        request += &format!("Content-Length: {length}\r\n");
    }
    [(request + "\r\n").into_bytes(), body].concat()
}

/// Over the wire, too, no recorded case ends the server, and what ended the Go server is a 4xx.
#[test]
fn recorded_cases_over_the_wire() {
    serving(store(), Arc::new(()), Limits::default(), |service| async move {
        let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
        let (mut fine, mut told) = (0, 0);
        for case in &cases {
            let name = case["case"].as_str().unwrap();
            let mut exits = case["go_server_exits"] == true;
            for step in case["steps"].as_array().unwrap() {
                let half = name.contains("half-closes");
                let (answer, _) = say(ADDRESS, &recorded(name, step), half).await;
                // A client that sent HTTP/2 is not answered in a language that it does not speak.
                if name == "HTTP/2 preface" && answer.is_empty() {
                    continue;
                }
                let status = status(&answer).unwrap_or_else(|| panic!("{name}: {answer:?}"));
                let ended_go = exits && step["status"].is_null();
                let well = if ended_go { 400..=499 } else { 100..=499 };
                assert!(well.contains(&status), "{name}: {answer}");
                // It answered nothing after its end; ours goes on.
                exits &= !ended_go;
                told += u32::from(status >= 400);
                fine += u32::from(status < 400);
            }
        }
        assert!(fine >= 40 && told >= 25, "{fine} {told}");
        let (answer, _) = say(ADDRESS, &post(READ), false).await;
        assert_eq!(status(&answer), Some(200), "{answer}");
        assert!(service.counters().get(Count::Rejected) >= 25);
        assert_eq!(service.counters().get(Count::Panics), 0);
    });
}

/// Slow heads and bodies are bounded in time whatever their pace, and an idle connection too.
#[test]
fn slow_clients_are_timed_out() {
    serving(store(), Arc::new(()), Limits::default(), |service| async move {
        // A byte a second: each one comes in time and the head does not.
        let started = Instant::now();
        let mut slow = TcpStream::connect(ADDRESS).await.unwrap();
        while started.elapsed() < Duration::from_secs(30) {
            if slow.write_all(b"P").await.is_err() || slow.flush().await.is_err() {
                break;
            }
            if heard(&mut slow, Duration::from_secs(1)).await.1 {
                break;
            }
        }
        let ended = started.elapsed().as_millis();
        assert!((9_900..12_000).contains(&ended), "{ended} ms");
        // A body that never comes is told so.
        let started = Instant::now();
        let mut slow = TcpStream::connect(ADDRESS).await.unwrap();
        slow.write_all(b"POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 9\r\n\r\n{").await.unwrap();
        slow.flush().await.unwrap();
        let (answer, closed) = heard(&mut slow, Duration::from_secs(200)).await;
        let ended = started.elapsed().as_millis();
        assert_eq!((status(&answer), closed), (Some(408), true), "{answer}");
        assert!((29_900..31_000).contains(&ended), "{ended} ms");
        // Nothing at all, before the first request and after it.
        for first in [&b""[..], &post(READ)] {
            let started = Instant::now();
            let mut idle = TcpStream::connect(ADDRESS).await.unwrap();
            idle.write_all(first).await.unwrap();
            idle.flush().await.unwrap();
            assert!(heard(&mut idle, Duration::from_secs(200)).await.1);
            let ended = started.elapsed().as_secs();
            assert!((60..=121).contains(&ended), "{ended} s");
        }
        assert_eq!(service.counters().get(Count::ConnectionsTimedOut), 4);
    });
}

/// Limits of heads, bodies, keys and values; each says what to do instead.
#[test]
fn sizes_are_limited() {
    let limits = Limits {
        body_bytes: 1000,
        key_bytes: 10,
        value_bytes: 20,
        bodies_bytes: 900,
        head_bytes: 8192,
        ..Limits::default()
    };
    serving(store(), Arc::new(()), limits, |_| async move {
        let long = |length: usize| "x".repeat(length);
        let write = |key: &str, val: &str| {
            format!("{{\"op\":\"write\",\"key\":\"{key}\",\"val\":\"{val}\"}}")
        };
        let header = format!("GET / HTTP/1.1\r\nHost: s\r\nA: {}\r\n\r\n", long(9000));
        let cases = [
            (post(&write(&long(10), &long(20))), 200, "\"err\":\"\""),
            (post(&write(&long(11), "")), 400, "at most 10 bytes"),
            (post(&write("k", &long(21))), 400, "at most 20 bytes"),
            (post(&long(1001)), 413, "more than 1000 bytes"),
            (post(&long(950)), 503, "send it again later"),
            (header.into_bytes(), 431, ""),
        ];
        for (request, expected, part) in cases {
            let (answer, _) = say(ADDRESS, &request, false).await;
            assert_eq!(status(&answer), Some(expected), "{answer}");
            assert!(answer.contains(part), "{answer}");
        }
    });
}

/// A head is refused if and only if it is longer than the limit, however it comes: in one piece,
/// cut anywhere, with a body, or behind another request; also with a limit below what hyper reads.
#[test]
fn heads_are_limited_to_the_byte() {
    for max in [8192, 20_000, 500] {
        let limits = Limits { head_bytes: max, ..Limits::default() };
        serving(store(), Arc::new(()), limits, move |_| async move {
            let head = |length: usize| {
                let head = |fill: &str| {
                    let lines = ["POST /a?b=c HTTP/1.1", "Host: s", "Content-Length: 23"];
                    format!("{}\r\nA: {fill}\r\n\r\n", lines.join("\r\n"))
                };
                let request = head(&"x".repeat(length - head("").len()));
                assert_eq!(request.len(), length);
                [request.as_bytes(), READ.as_bytes()].concat()
            };
            assert_eq!(READ.len(), 23);
            for length in [max - 1, max, max + 1, max + 2, max + 300] {
                let expected = if length > max { 431 } else { 200 };
                let request = head(length);
                for cut in [0, 1, max / 2, max - 1, max, length] {
                    let mut stream = TcpStream::connect(ADDRESS).await.unwrap();
                    stream.write_all(&request[..cut]).await.unwrap();
                    stream.flush().await.unwrap();
                    sleep(Duration::from_millis(10)).await;
                    // What was refused already is not taken any more.
                    let _ = stream.write_all(&request[cut..]).await;
                    let _ = stream.flush().await;
                    let (answer, _) = heard(&mut stream, Duration::from_millis(100)).await;
                    assert_eq!(status(&answer), Some(expected), "{length} of {max}, cut at {cut}");
                }
                let two = [head(max), request].concat();
                let (answer, _) = say(ADDRESS, &two, false).await;
                let second = answer[1..].split_once("HTTP/1.1 ").expect("two answers").1;
                assert!(second.starts_with(&expected.to_string()), "{length} of {max}: {answer}");
            }
        });
    }
}

/// Too many connections: further ones are told so, until one ends.
#[test]
fn connections_are_capped() {
    let limits = Limits { connections: 2, ..Limits::default() };
    serving(store(), Arc::new(()), limits, |service| async move {
        let first = TcpStream::connect(ADDRESS).await.unwrap();
        let _second = TcpStream::connect(ADDRESS).await.unwrap();
        let (answer, closed) = say(ADDRESS, &post(READ), true).await;
        assert_eq!((status(&answer), closed), (Some(503), true), "{answer}");
        drop(first);
        sleep(Duration::from_millis(100)).await;
        let (answer, _) = say(ADDRESS, &post(READ), false).await;
        assert_eq!(status(&answer), Some(200), "{answer}");
        let counters = service.counters();
        assert_eq!(counters.get(Count::ConnectionsRefused), 1);
        assert_eq!(counters.get(Count::Connections), 3);
        let (metrics, _) = say(ADMIN, b"GET /metrics HTTP/1.1\r\nHost: s\r\n\r\n", false).await;
        for line in ["\nadmitted 1\n", "\nconnections_refused 1\n", "\nboot 1\n", "\nstopped 0\n"] {
            assert!(metrics.contains(line), "{metrics}");
        }
        let (other, _) = say(ADMIN, b"GET / HTTP/1.1\r\nHost: s\r\n\r\n", false).await;
        assert_eq!(status(&other), Some(404));
    });
}

/// Panics at one key.
struct Panics(Store);

impl StateMachine for Panics {
    fn apply(&mut self, request: &Request) -> Applied {
        assert_ne!(request.key, "panic", "on purpose");
        self.0.apply(request)
    }
}

struct PanicsAtSecondAnswer;

impl ApplyLog for PanicsAtSecondAnswer {
    fn boundary(&self, boundary: Boundary) {
        assert!(!matches!(boundary, Boundary::Answer { request: 2, .. }), "on purpose");
    }

    fn applied(&self, _row: ApplyRow) {}
}

/// A panic is a 500 for the one who caused it. Others go on, unless it left the state half changed:
/// then nothing that could be wrong is answered any more.
#[test]
fn a_panic_is_a_500() {
    let machine = Box::new(Panics(Store::of_kind(GuardKind::Equal)));
    serving(machine, Arc::new(PanicsAtSecondAnswer), Limits::default(), |service| async move {
        let mut statuses = Vec::new();
        for key in ["a", "a", "a", "panic", "a"] {
            let body = format!("{{\"op\":\"read\",\"key\":\"{key}\"}}");
            let (answer, _) = say(ADDRESS, &post(&body), false).await;
            statuses.push(status(&answer).unwrap());
        }
        assert_eq!(statuses, [200, 500, 200, 500, 503]);
        assert_eq!(service.counters().get(Count::Panics), 2);
        assert!(service.stopped().is_some());
    });
}

/// When each row was applied, by the true clock.
#[derive(Default)]
struct Times(Mutex<Vec<(u64, ApplyRow)>>);

impl ApplyLog for Times {
    fn boundary(&self, _boundary: Boundary) {}

    fn applied(&self, row: ApplyRow) {
        self.0.lock().unwrap().push((true_ns(), row));
    }
}

/// Sixteen writers and readers of one key: the order of application explains every answer, and
/// each request was applied between its sending and its answer.
#[test]
fn concurrent_writers_are_linearizable() {
    let times = Arc::new(Times::default());
    let machine = Box::new(Store::of_kind(GuardKind::Unfenced));
    let log = times.clone();
    serving(machine, log, Limits::default(), |_| async move {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for client in 0..16_u64 {
            let answers = answers.clone();
            tasks.push(tokio::spawn(async move {
                let url = format!("http://{ADDRESS}");
                let mut storage = Client::new(&url, ClientOptions::default()).unwrap();
                for round in 0..50 {
                    let tag = client * 1000 + round;
                    let write = Request::write("k", tag.to_string(), 0);
                    let request =
                        if (client + round) % 2 == 0 { write } else { Request::read("k") };
                    let invoked = true_ns();
                    let answer = storage.call_tagged(&request, Some(tag)).await.unwrap();
                    answers.lock().unwrap().push((tag, invoked, true_ns(), answer.val));
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let rows = times.0.lock().unwrap();
        let mut value = String::new();
        for (applied, row) in rows.iter() {
            if row.kind == OpKind::Write {
                value = row.value.clone().unwrap();
            }
            let answers = answers.lock().unwrap();
            let (_, invoked, returned, val) =
                answers.iter().find(|answer| Some(answer.0) == row.tag).unwrap();
            assert!(invoked < applied && applied < returned, "{row:?}");
            assert_eq!(*val, value, "{row:?}");
        }
        assert_eq!(rows.len(), 800);
    });
}

/// A stop answers what was begun, and tells nobody else.
#[test]
fn a_graceful_stop_answers_what_was_begun() {
    let run = sim::run(Seed(3), || async {
        let storage = node("storage", "10.0.0.9");
        let stop = Arc::new(Notify::new());
        let told = stop.clone();
        let service = Service::new(store(), Arc::new(()), ServiceOptions::default());
        let served = storage.spawn(async move {
            let listener = TcpListener::bind(ADDRESS).await.unwrap();
            let started = Instant::now();
            server::serve(listener, Arc::new(service), told.notified()).await;
            started.elapsed()
        });
        let client = node("client", "10.0.0.1");
        sleep(Duration::from_millis(10)).await;
        let asked = client.spawn(stopped_half_way(stop));
        asked.await.unwrap();
        assert!(served.await.unwrap() < Duration::from_secs(1));
    });
    run.unwrap();
}

async fn stopped_half_way(stop: Arc<Notify>) {
    let mut begun = TcpStream::connect(ADDRESS).await.unwrap();
    let request = post(READ);
    let (first, rest) = request.split_at(60);
    begun.write_all(first).await.unwrap();
    begun.flush().await.unwrap();
    sleep(Duration::from_millis(100)).await;
    stop.notify_one();
    sleep(Duration::from_millis(100)).await;
    assert!(TcpStream::connect(ADDRESS).await.is_err());
    begun.write_all(rest).await.unwrap();
    begun.flush().await.unwrap();
    let (answer, closed) = heard(&mut begun, Duration::from_secs(1)).await;
    assert_eq!((status(&answer), closed), (Some(200), true), "{answer}");
}
