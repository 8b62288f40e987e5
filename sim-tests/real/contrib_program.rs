//! `leasehold client` and `leasehold storage`, the pair of contrib/lock, against a real etcd: its
//! story line by line, what the original hides, and the bytes on the wire.

use std::{
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use tokio::sync::Notify;

use super::{
    member::Member,
    program::{PATIENCE, Program, Storage, leasehold},
};

/// An exit status, and the lines without their time stamps.
type Ended = (Option<i32>, Vec<String>);

/// How client 1 loses its lease.
#[derive(Clone, Copy)]
enum Loss {
    /// An operator revokes it.
    Revoke,
    /// Its renewals do not arrive any more, and it runs out.
    Expiry,
    /// The process is stopped until it has run out, and then goes on (SIGSTOP, SIGCONT).
    Stop,
}

/// A way to etcd that can be blocked: what is in it stays there.
struct Way {
    address: String,
    blocked: Arc<AtomicBool>,
    block: Arc<Notify>,
}

impl Way {
    async fn to(endpoint: &str) -> Self {
        let target = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound").to_string();
        let (blocked, block) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (told, wait) = (blocked.clone(), block.clone());
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (target, told, wait) = (target.clone(), told.clone(), wait.clone());
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(&target).await.expect("etcd listens");
                    let block = wait.notified();
                    if !told.load(Ordering::SeqCst) {
                        tokio::select! {
                            biased;
                            () = block => {}
                            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => return,
                        }
                    }
                    std::future::pending::<()>().await;
                });
            }
        });
        Way { address, blocked, block }
    }

    fn block(&self) {
        self.blocked.store(true, Ordering::SeqCst);
        self.block.notify_waiters();
    }
}

fn client(number: &str, etcd: &str, storage: &str, token: &str) -> Program {
    let storage = format!("http://{storage}");
    Program::start(["client", number, "--endpoints", etcd, "--storage", &storage, "--token", token])
}

/// Takes off what Go's log puts in front: `2006/01/02 15:04:05 `.
fn unstamped(line: &str) -> String {
    let (stamp, rest) = line.split_at_checked(20).unwrap_or_else(|| panic!("{line:?}"));
    let shape: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000/00/00 00:00:00 ", "{line}");
    rest.to_owned()
}

async fn ended(program: Program) -> Ended {
    let (status, lines) = program.ends().await;
    (status, lines.iter().map(|line| unstamped(line)).collect())
}

/// The story: client 1 locks and loses its lease, client 2 writes, client 1 goes on; and then
/// client 2 once more.
async fn story(loss: Loss, guard: &str, token: &str) -> [Ended; 3] {
    let member = Member::start().await;
    let storage = Storage::start(&["--guard", guard]).await;
    let way = Way::to(member.endpoint()).await;
    let mut first = client("1", &way.address, &storage.address, token);
    let line = first.line("please manually revoke").await;
    let hex = line.split("lease revoke ").nth(1).and_then(|rest| rest.split('\'').next());
    let lease = i64::from_str_radix(hex.expect("the line names the lease"), 16).expect("hex");
    match loss {
        Loss::Revoke => {
            member.another_client().await.lease_revoke(lease).await.expect("it is there");
        }
        Loss::Expiry => way.block(),
        Loss::Stop => first.signal("-STOP"),
    }
    let deadline = Instant::now() + PATIENCE;
    while member.has_lease(lease).await {
        assert!(Instant::now() < deadline, "the lease does not end");
        sleep(Duration::from_millis(20)).await;
    }
    let second = ended(client("2", member.endpoint(), &storage.address, token)).await;
    if let Loss::Stop = loss {
        first.signal("-CONT");
    }
    first.press().await;
    let first = ended(first).await;
    let third = ended(client("2", member.endpoint(), &storage.address, token)).await;
    assert!(member.queue("/lock/").await.is_empty(), "all have given the lock back");
    [first, second, third]
}

fn version(lines: &[String]) -> String {
    let acquired = lines[2].strip_prefix("acquired lock, version: ");
    acquired.unwrap_or_else(|| panic!("{lines:?}")).to_owned()
}

/// What was told, and what the original tells: its lines, and its fault, that a rightful client 2
/// is refused.
async fn as_the_original(loss: Loss) -> [[Ended; 3]; 2] {
    let [first, second, third] = story(loss, "equal", "lease").await;
    let [old, new, newest] = [&first.1, &second.1, &third.1].map(|lines| version(lines));
    let different = |given: &str| {
        format!("error: given version ({given}) is different from the existing version ({new})",)
    };
    let begins = |number: u8, version: &str| {
        [
            format!("client {number} starts"),
            "created etcd client and session".to_owned(),
            format!("acquired lock, version: {version}"),
        ]
    };
    let please = format!(
        "please manually revoke the lease using 'etcdctl lease revoke {old}' or wait for it to \
         expire, then start executing client 2 and hit any key..."
    );
    let expected =
        format!("expected fail to write to storage with old lease version: {}", different(&old));
    let lines = [&begins(1, &old)[..], &[please, "resuming client 1".into(), expected]].concat();
    let expected_first = (Some(0), lines);
    let written = format!("successfully write a key to storage using lease {new}");
    let continuing = "this is client 2, continuing".to_owned();
    let lines = [&begins(2, &new)[..], &[continuing.clone(), written]].concat();
    let expected_second = (Some(0), lines);
    let refused = format!("unexpected fail to write to storage: {}", different(&newest));
    let lines = [&begins(2, &newest)[..], &[continuing, refused]].concat();
    let expected = [expected_first, expected_second, (Some(1), lines)];
    [[first, second, third], expected]
}

#[tokio::test]
async fn the_story_by_revoke() {
    let [told, expected] = as_the_original(Loss::Revoke).await;
    assert_eq!(told, expected);
}

#[tokio::test]
async fn the_story_by_expiry() {
    let [told, expected] = as_the_original(Loss::Expiry).await;
    assert_eq!(told, expected);
}

#[tokio::test]
async fn the_story_by_a_stopped_process() {
    let [told, expected] = as_the_original(Loss::Stop).await;
    assert_eq!(told, expected);
}

/// With an order instead of equality, and versions that have one (the defaults), the late client is
/// refused all the same, and the rightful one gets in. The versions of the three.
async fn with_monotonic_tokens(loss: Loss) -> [i64; 3] {
    let [first, second, third] = story(loss, "monotonic", "revision").await;
    let stale = "expected fail to write to storage with old lease version: error: stale token:";
    assert!(first.1[5].starts_with(stale), "{first:?}");
    assert_eq!(first.1.len(), 6, "{first:?}");
    let written = format!("successfully write a key to storage using lease {}", version(&third.1));
    assert_eq!(third.1[4], written);
    assert_eq!([first.0, second.0, third.0], [Some(0); 3], "{first:?} {second:?} {third:?}");
    [first, second, third]
        .map(|ended| i64::from_str_radix(&version(&ended.1), 16).expect("the version is hex"))
}

#[tokio::test]
async fn monotonic_tokens_by_revoke() {
    let versions = with_monotonic_tokens(Loss::Revoke).await;
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

#[tokio::test]
async fn monotonic_tokens_by_expiry() {
    let versions = with_monotonic_tokens(Loss::Expiry).await;
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

#[tokio::test]
async fn monotonic_tokens_by_a_stopped_process() {
    let versions = with_monotonic_tokens(Loss::Stop).await;
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

/// What the Go client sends (`net/http`, `transfer.go`), without two lines of it: `User-Agent:
/// Go-http-client/1.1` would be a lie, and `Accept-Encoding: gzip` a promise to read that.
#[tokio::test]
async fn bytes_on_the_wire() {
    let member = Member::start().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound").to_string();
    let capture = tokio::task::spawn_blocking(move || {
        let (mut stream, _) = listener.accept().expect("a client comes");
        let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
        while !heard.ends_with(b"}") {
            let read = stream.read(&mut buffer).expect("it sends");
            assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&buffer[..read]);
        }
        // As the Go server answers.
        let body = "{\"val\":\"value from client 2\",\"version\":1,\"err\":\"\"}";
        let answer = format!(
            "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2020 12:00:00 GMT\r\nContent-Length: {}\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).expect("it listens");
        String::from_utf8(heard).expect("UTF-8")
    });
    let (status, lines) = ended(client("2", member.endpoint(), &address, "lease")).await;
    assert_eq!(status, Some(0), "{lines:?}");
    let lease = i64::from_str_radix(&version(&lines), 16).expect("hex");
    let body = format!(
        "{{\"op\":\"write\",\"key\":\"key0\",\"val\":\"value from client 2\",\"version\":{lease}}}"
    );
    let expected = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\
         Content-Type: application/json\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(capture.await.expect("captured"), expected);
}

/// Nobody to talk to: one line, status 1, and the lock is given back.
#[tokio::test]
async fn nobody_answers() {
    let member = Member::start().await;
    let (status, lines) = ended(client("2", "127.0.0.1:1", "127.0.0.1:1", "revision")).await;
    assert_eq!((status, lines.len()), (Some(1), 2), "{lines:?}");
    assert!(lines[1].starts_with("failed to reach etcd: 127.0.0.1:1: "), "{lines:?}");
    for number in ["1", "2"] {
        let program = client(number, member.endpoint(), "127.0.0.1:1", "revision");
        let (status, lines) = ended(program).await;
        let last = lines.last().expect("lines");
        assert_eq!(status, Some(1), "{lines:?}");
        assert!(last.starts_with("failed to send a request to storage: "), "{lines:?}");
    }
    assert!(member.queue("/lock/").await.is_empty());
}

/// Endpoints of which two are dead, as the default ones are beside a single member: in each of some
/// runs the living one is found, and `lock` finds it too.
#[tokio::test]
async fn dead_endpoints_do_no_harm() {
    let member = Member::start().await;
    let storage = Storage::start(&[]).await;
    let endpoints = format!("127.0.0.1:1,{},127.0.0.1:2", member.endpoint());
    for _ in 0..5 {
        let (status, lines) = ended(client("2", &endpoints, &storage.address, "revision")).await;
        assert_eq!(status, Some(0), "{lines:?}");
    }
    let mut lock = leasehold(["lock", "job", "--", "true"]);
    let program = Program::spawn(lock.env("ETCDCTL_ENDPOINTS", &endpoints));
    let (status, lines) = program.ends().await;
    assert_eq!(status, Some(0), "{lines:?}");
}

/// Bad requests are told in one line with status 2, before anybody is asked.
#[tokio::test]
async fn bad_requests() {
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["client"], "<1|2>"),
        (vec!["client", "3"], "'3'"),
        (vec!["client", "1", "--token", "uuid"], "'uuid'"),
        (vec!["client", "1", "--ttl", "0"], "'0'"),
        (vec!["client", "1", "--storage", "https://s:1"], "expected host:port"),
        (vec!["client", "1", "--user", "root"], "ETCDCTL_PASSWORD"),
        (vec!["client", "1", "--cert", "c.pem"], "--key"),
        (vec!["client", "1", "--cacert", "no-such.pem"], "no-such.pem"),
        (vec!["explore"], "runs in simulation only"),
    ];
    for (arguments, expected) in cases {
        let (status, lines) = Program::start(&arguments).ends().await;
        assert_eq!((status, lines.len()), (Some(2), 1), "{arguments:?}: {lines:?}");
        assert!(lines[0].contains(expected), "{arguments:?}: {lines:?}");
    }
}

/// The stamp is local time: that of `date` in the same time zone.
#[tokio::test]
async fn stamps_are_local_time() {
    let zone = "XXX-05:30";
    let now = || {
        let date =
            std::process::Command::new("date").env("TZ", zone).arg("+%Y/%m/%d %H:%M:%S").output();
        String::from_utf8(date.expect("date can be run").stdout).expect("UTF-8")
    };
    let before = now();
    let mut command = leasehold(["client", "2", "--endpoints", "127.0.0.1:1"]);
    let (_, lines) = Program::spawn(command.env("TZ", zone)).ends().await;
    let after = now();
    let stamp = &lines[0][..19];
    assert!(before.trim() <= stamp && stamp <= after.trim(), "{before} {stamp} {after}");
}
