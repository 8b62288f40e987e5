//! The recorded cases of `contrib/lock`'s storage against ours, at the level of the protocol.
//!
//! Where the Go server gave a well-formed 200 with a JSON body, ours gives the same answer with the
//! guard `equal`. Where it exited, or answered nothing, ours says what is wrong. Cases about HTTP
//! itself (methods, chunks, request lines) are the server's, and are not judged here.

use leasehold::{
    history::RowResult,
    storage::{GuardKind, Request, Response, StateMachine, Store},
};

use crate::contrib_case::{self, unescape};

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
    let cases = contrib_case::all();
    let (mut same, mut told) = (0, 0);
    for case in &cases {
        let name = case["case"].as_str().unwrap();
        if HTTP_ONLY.contains(&name) {
            continue;
        }
        let mut store = Store::of_kind(GuardKind::Equal);
        let mut exited = false;
        for step in case["steps"].as_array().unwrap() {
            let (status, given) = answer(&mut store, &contrib_case::body(name, step));
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
