//! The recorded cases of `contrib/lock`'s storage against `leasehold storage --guard equal`, over
//! real sockets: request lines, methods, chunks and half-closed connections included.
//!
//! Where the Go server gave a well-formed 200 with a JSON body, ours gives the same. Where it exited
//! or answered nothing, ours answers with a 4xx that says why. In no case does it end.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use serde_json::Value;

use super::program::Storage;
use crate::contrib_case::{self, unescape};

/// Methods and paths that the Go server's multiplexer answers by itself. Ours answers all alike.
const MULTIPLEXED: [&str; 2] = ["path //a/../b (mux cleans: 301)", "OPTIONS *"];

/// The bytes of a step.
fn request(case: &str, step: &Value) -> Vec<u8> {
    let (line, body) = (step["request_line"].as_str().unwrap(), contrib_case::body(case, step));
    if line == "hello" {
        return b"hello\r\n\r\n".to_vec();
    }
    let mut head = format!("{line}\r\n");
    let chunked = step["headers"].to_string().contains("chunked");
    if !case.starts_with("no Host") && !line.starts_with("PRI") {
        head += "Host: localhost:8080\r\n";
    }
    let bare = case == "GET, no body" || case == "POST, no Content-Length, no body";
    if !chunked && !bare && !line.starts_with("PRI") {
        let length = match case {
            "client half-closes before Content-Length bytes" => body.len() + 10,
            _ if case.starts_with("two pipelined") => text(&body).find('}').unwrap() + 1,
            _ => body.len(),
        };
        head += &format!("Content-Length: {length}\r\n");
    }
    for header in step["headers"].as_array().unwrap() {
        head += &format!("{}\r\n", header.as_str().unwrap());
    }
    [head.as_bytes(), b"\r\n", &body].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the server answers until it closes, or until the one answer that is expected is there.
fn exchange(address: &str, case: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    // A server that has seen enough may answer and close before all is written.
    let _ = stream.write_all(bytes);
    if case.starts_with("client half-closes") || case.starts_with("POST, no Content-Length") {
        stream.shutdown(Shutdown::Write).unwrap();
    }
    let (mut heard, mut buffer) = (Vec::new(), [0; 65536]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return heard,
            Ok(read) => heard.extend_from_slice(&buffer[..read]),
        }
        if answer(&heard, case.starts_with("HEAD")).is_some() {
            return heard;
        }
    }
}

/// Status, head and body of the first answer, if it is whole; an interim one is passed over.
fn answer(heard: &[u8], headless: bool) -> Option<(u64, String, Vec<u8>)> {
    let end = heard.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = text(&heard[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    if status == 100 {
        return answer(&heard[end..], headless);
    }
    let length = head.split("content-length: ").nth(1)?.split('\r').next()?.parse().ok()?;
    let length: usize = if headless { 0 } else { length };
    let body = heard[end..].get(..length)?.to_vec();
    Some((status, head, body))
}

/// Judges one step; whether the Go server's answer was given.
fn judge(case: &str, step: &Value, heard: &[u8]) -> bool {
    let headless = case.starts_with("HEAD");
    if case == "HTTP/2 preface" && heard.is_empty() {
        // hyper closes without a word: a client of HTTP/2 would not understand the 400 either.
        return false;
    }
    let (status, head, body) =
        answer(heard, headless).unwrap_or_else(|| panic!("{case}: {}", text(heard)));
    let expected = unescape(step["response_body"].as_str().unwrap());
    let same = step["status"] == 200 && expected.first() == Some(&b'{');
    let same = same || case.starts_with("huge val") || case.starts_with("Expect") || headless;
    if same || MULTIPLEXED.contains(&case) {
        assert_eq!(status, 200, "{case}: {}", text(&body));
        assert!(head.contains("content-type: text/plain; charset=utf-8\r\n"), "{case}: {head}");
        match case {
            "HEAD with a JSON body" => assert_eq!(body, b"", "{case}"),
            _ if case.starts_with("huge val") => assert_eq!(body.len(), 0x98_969f, "{case}"),
            // Recorded with the head of the final answer.
            _ if case.starts_with("Expect") => {
                assert!(text(heard).starts_with("HTTP/1.1 100 Continue\r\n\r\n"), "{case}");
                assert!(text(&expected).ends_with(&text(&body)), "{case}");
            }
            _ if MULTIPLEXED.contains(&case) => assert!(body.starts_with(b"{"), "{case}"),
            _ => assert_eq!(text(&body), text(&expected), "{case}"),
        }
        return true;
    }
    assert!((400..500).contains(&status), "{case}: {status} {}", text(&body));
    // What is no HTTP at all is answered by the HTTP library, with the status alone.
    if case != "garbage request line" {
        let told: Value = serde_json::from_slice(&body)
            .unwrap_or_else(|error| panic!("{case}: {error}: {}", text(heard)));
        assert_eq!((&told["val"], &told["version"]), (&"".into(), &(-1).into()), "{case}");
        assert_ne!(told["err"], "", "{case}");
    }
    false
}

/// Each recorded case against a fresh process, which lives on and stops in an orderly way.
#[tokio::test]
async fn recorded_cases_over_sockets() {
    let (mut same, mut told) = (0, 0);
    for case in contrib_case::all() {
        let name = case["case"].as_str().unwrap().to_owned();
        let storage = Storage::start(&["--guard", "equal"]).await;
        let mut ended_there = false;
        for step in case["steps"].as_array().unwrap() {
            let (bytes, address) = (request(&name, step), storage.address.clone());
            let which = name.clone();
            let heard = tokio::task::spawn_blocking(move || exchange(&address, &which, &bytes));
            let heard = heard.await.unwrap();
            if ended_there {
                // The Go server had ended; ours still answers.
                assert!(text(&heard).starts_with("HTTP/1.1 200"), "{name}: {}", text(&heard));
            } else if judge(&name, step, &heard) {
                same += 1;
            } else {
                told += 1;
                ended_there = case["go_server_exits"] == true;
            }
        }
        storage.program.signal("-TERM");
        assert_eq!(storage.program.ends().await.0, Some(0), "{name}");
    }
    assert!(same >= 70 && told >= 35, "{same} answers compared, {told} refusals");
}
