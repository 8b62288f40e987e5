//! The wire format: the JSON of the storage in etcd's `contrib/lock`, written straight to bytes.
//!
//! A request is `{op,key,val,version}` with the optional fields `domain` and `seq`, an answer is
//! `{val,version,err}`. Answers are escaped as Go's `encoding/json` does it, because old clients
//! compare bytes; 64-bit integers are exact. Reading requests is in `decode`.

use serde::Deserialize;

use super::decode;
use crate::history::{OpKind, RequestId};

/// The body is no request; the text names the field, the value and what to send instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProtocolError {
    message: String,
}

impl ProtocolError {
    /// An error with this text.
    pub(super) fn new(message: impl Into<String>) -> Self {
        ProtocolError { message: message.into() }
    }
}

/// A request to the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Read or write.
    pub op: OpKind,
    /// The key.
    pub key: String,
    /// The new value of a write; of no meaning for a read.
    pub val: String,
    /// The token. Absent means 0 to a guard that takes any version.
    pub version: Option<i64>,
    /// What one lock protects; empty (or absent) is the storage's one default domain.
    pub domain: String,
    /// The number within the holding, together with `version` the request's id.
    pub seq: Option<u64>,
}

impl Request {
    /// A read in the old protocol: no token, no domain, no number.
    pub fn read(key: impl Into<String>) -> Self {
        Request {
            op: OpKind::Read,
            key: key.into(),
            val: String::new(),
            version: None,
            domain: String::new(),
            seq: None,
        }
    }

    /// A write in the old protocol.
    pub fn write(key: impl Into<String>, val: impl Into<String>, version: i64) -> Self {
        let read = Request::read(key);
        Request { op: OpKind::Write, val: val.into(), version: Some(version), ..read }
    }

    /// The request's id, if it carries both a token and a number.
    pub fn id(&self) -> Option<RequestId> {
        Some(RequestId { token: self.version?, seq: self.seq? })
    }

    /// Reads a request from the body of an HTTP request.
    ///
    /// # Errors
    /// When the body is no JSON object, a field has the wrong type, or the operation is unknown.
    pub fn decode(body: &[u8]) -> Result<Self, ProtocolError> {
        decode::request(body)
    }

    /// Appends the request as JSON. Fields that are absent are left out, so that a request without
    /// domain and number is byte for byte what an old client sends.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.op {
            OpKind::Read => b"{\"op\":\"read\",\"key\":",
            OpKind::Write => b"{\"op\":\"write\",\"key\":",
        });
        string(out, &self.key);
        out.extend_from_slice(b",\"val\":");
        string(out, &self.val);
        if let Some(version) = self.version {
            out.extend_from_slice(b",\"version\":");
            integer(out, version < 0, version.unsigned_abs());
        }
        if !self.domain.is_empty() {
            out.extend_from_slice(b",\"domain\":");
            string(out, &self.domain);
        }
        if let Some(seq) = self.seq {
            out.extend_from_slice(b",\"seq\":");
            integer(out, false, seq);
        }
        out.push(b'}');
    }
}

/// The storage's answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Response {
    /// The value that was read or written; empty with an error.
    pub val: String,
    /// Its version; -1 with an error.
    pub version: i64,
    /// Why not; empty means success.
    pub err: String,
}

/// The text that tells a missing key, as `contrib/lock` words it.
pub const KEY_NOT_FOUND: &str = "key not found";

impl Response {
    /// The answer to a request that succeeded.
    pub fn ok(val: String, version: i64) -> Self {
        Response { val, version, err: String::new() }
    }

    /// The answer to a request that failed.
    pub fn error(err: impl Into<String>) -> Self {
        Response { val: String::new(), version: -1, err: err.into() }
    }

    /// Whether this is the answer to a read of a key that is not there.
    pub fn is_not_found(&self) -> bool {
        self.version == -1 && self.err == KEY_NOT_FOUND
    }

    /// Reads an answer from the body of an HTTP answer.
    ///
    /// # Errors
    /// When it is no answer of this protocol.
    pub fn decode(body: &[u8]) -> Result<Self, ProtocolError> {
        serde_json::from_slice(body).map_err(|error| ProtocolError::new(error.to_string()))
    }

    /// The answer as JSON, without a newline.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.val.len() + self.err.len() + 56);
        out.extend_from_slice(b"{\"val\":");
        string(&mut out, &self.val);
        out.extend_from_slice(b",\"version\":");
        integer(&mut out, self.version < 0, self.version.unsigned_abs());
        out.extend_from_slice(b",\"err\":");
        string(&mut out, &self.err);
        out.push(b'}');
        out
    }
}

/// Appends a decimal number.
fn integer(out: &mut Vec<u8>, negative: bool, mut magnitude: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (magnitude % 10) as u8;
        magnitude /= 10;
        if magnitude == 0 {
            break;
        }
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a quoted string with the escapes of Go's `encoding/json` (`encode.go`, HTML on).
fn string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        // U+2028 and U+2029 end a line in JavaScript: E2 80 A8 and E2 80 A9.
        let separator = byte == 0xe2
            && bytes.get(at + 1) == Some(&0x80)
            && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9));
        let special = byte < 0x20 || matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
        if !special && !separator {
            at += 1;
            continue;
        }
        out.extend_from_slice(&bytes[plain..at]);
        if separator {
            out.extend_from_slice(b"\\u202");
            out.push(HEX[usize::from(bytes[at + 2] & 0xf)]);
            at += 3;
        } else {
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                _ => {
                    out.extend_from_slice(b"\\u00");
                    out.push(HEX[usize::from(byte >> 4)]);
                    out.push(HEX[usize::from(byte & 0xf)]);
                }
            }
            at += 1;
        }
        plain = at;
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers carry Go's escapes and exact integers: an old client compares these very bytes.
    #[test]
    fn answers_are_escaped_as_go_does_it() {
        let answer = Response::ok("<a>&\u{2028}\u{2029}\"\\\n\u{1}é\u{1f511}".into(), i64::MIN);
        let expected = "{\"val\":\"\\u003ca\\u003e\\u0026\\u2028\\u2029\\\"\\\\\\n\\u0001\
                        é\u{1f511}\",\"version\":-9223372036854775808,\"err\":\"\"}";
        assert_eq!(String::from_utf8(answer.encode()).unwrap(), expected);
        assert_eq!(Response::decode(&answer.encode()).unwrap(), answer);
    }

    /// What a client writes is what the server reads, with and without the optional fields.
    #[test]
    fn requests_round_trip() {
        let old = Request::write("k<", "v\u{2028}", i64::MAX);
        let numbered = Request { domain: "d".into(), seq: Some(u64::MAX), ..old.clone() };
        for request in [Request::read("k"), old.clone(), numbered] {
            let mut body = Vec::new();
            request.encode(&mut body);
            assert_eq!(Request::decode(&body).unwrap(), request);
        }
        let mut body = Vec::new();
        Request::write("k", "v", 7).encode(&mut body);
        assert_eq!(body, b"{\"op\":\"write\",\"key\":\"k\",\"val\":\"v\",\"version\":7}");
    }
}
