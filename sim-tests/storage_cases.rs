//! The recorded cases of `contrib/lock`'s storage against ours, at the level of the protocol.
//!
//! Where the Go server gave a well-formed 200 with a JSON body, ours gives the same answer with the
//! guard `equal`. Where it exited, or answered nothing, ours says what is wrong. Cases about HTTP
//! itself (methods, chunks, request lines) are the server's, and are not judged here.

use leasehold::{
    history::RowResult,
    storage::{GuardKind, Request, Response, StateMachine, Store},
};
use serde_json::Value;

const CASES: &str = include_str!("data/contrib-storage-cases.json");

/// Cases whose outcome depends on the framing of the HTTP request and not on its body.
const HTTP_ONLY: [&str; 9] = [
    "path //a/../b (mux cleans: 301)",
    "HEAD with a JSON body",
    "OPTIONS *",
    "bad chunk",
    "no Host header (HTTP/1.1)",
    "garbage request line",
    "HTTP/2 preface",
    "two pipelined requests (first answer shown)",
    "Expect: 100-continue",
];

/// The recording shows bytes as in a Python literal: `\n`, `\\`, `\'`, `\xff`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b'r') => out.push(b'\r'),
            Some(b't') => out.push(b'\t'),
            Some(b'x') => {
                let digit = |byte: Option<u8>| (byte.unwrap() as char).to_digit(16).unwrap() as u8;
                let high = digit(bytes.next());
                out.push(high * 16 + digit(bytes.next()));
            }
            Some(other) => out.push(other),
            None => panic!("a lone backslash in {text}"),
        }
    }
    out
}

/// The body of a step; the abbreviated ones are made again at their full size.
fn body(case: &str, step: &Value) -> Vec<u8> {
    let text = step["body"].as_str().unwrap();
    let filler = "x".repeat(10_000_000);
    match case {
        "deep nesting 10001 in an extra field" => {
            let (open, close) = ("[".repeat(10_001), "]".repeat(10_001));
            format!("{{\"op\":\"read\",\"key\":\"k\",\"x\":{open}{close}}}").into_bytes()
        }
        "huge val 10 MB" if text.contains("write") => {
            format!("{{\"op\":\"write\",\"key\":\"k\",\"val\":\"{filler}\",\"version\":1}}").into()
        }
        "huge key 10 MB" => {
            format!("{{\"op\":\"write\",\"key\":\"{filler}\",\"val\":\"v\",\"version\":1}}").into()
        }
        "10 MB of junk" => filler.into_bytes(),
        _ => unescape(text),
    }
}

/// Status and body that our storage answers.
fn answer(store: &mut Store, body: &[u8]) -> (u64, Vec<u8>) {
    match Request::decode(body) {
        Ok(request) => {
            let applied = store.apply(&request);
            let status = if applied.result == RowResult::Rejected { 400 } else { 200 };
            (status, applied.response.encode())
        }
        Err(error) => (400, Response::error(error.to_string()).encode()),
    }
}

/// Each recorded answer is ours, byte for byte, and what ended the Go server is told the reason.
#[test]
fn recorded_cases() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let (mut same, mut told) = (0, 0);
    for case in &cases {
        let name = case["case"].as_str().unwrap();
        if HTTP_ONLY.contains(&name) {
            continue;
        }
        let mut store = Store::of_kind(GuardKind::Equal);
        let mut exited = false;
        for step in case["steps"].as_array().unwrap() {
            let (status, given) = answer(&mut store, &body(name, step));
            let expected = unescape(step["response_body"].as_str().unwrap());
            if step["status"] == 200 && !expected.is_empty() {
                same += 1;
                assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&given));
                if name.starts_with("huge val") {
                    assert_eq!(given.len(), 0x98_969f, "{name}");
                } else {
                    let (given, expected) =
                        (String::from_utf8_lossy(&given), String::from_utf8_lossy(&expected));
                    assert_eq!(given, expected, "{name}");
                }
            } else if !exited {
                // After its exit the Go server answered nothing; ours lives on.
                told += 1;
                assert_eq!(status, 400, "{name}: {}", String::from_utf8_lossy(&given));
                let response = Response::decode(&given).unwrap();
                assert_eq!((response.val.as_str(), response.version), ("", -1), "{name}");
                assert!(!response.err.is_empty(), "{name}");
                exited = true;
            }
        }
    }
    assert!(same >= 60 && told >= 30, "{same} answers compared, {told} refusals");
}
