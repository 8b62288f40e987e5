//! The recorded cases of `contrib/lock`'s storage: what was sent, and what the Go server said.
//!
//! Read by the tests of both builds. What is expected of ours is theirs to say.

use serde_json::Value;

const CASES: &str = include_str!("data/contrib-storage-cases.json");

/// All cases, as they were recorded.
pub fn all() -> Vec<Value> {
    serde_json::from_str(CASES).expect("the recording is JSON")
}

/// The recording shows bytes as in a Python literal: `\n`, `\\`, `\'`, `\xff`.
pub fn unescape(text: &str) -> Vec<u8> {
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
pub fn body(case: &str, step: &Value) -> Vec<u8> {
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
