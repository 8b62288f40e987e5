//! What an error of etcd-client means, in words: what etcd said, what lies under a "transport
//! error", and which flag might help.

use std::error::Error as _;

use tonic::{Code, Status};

use crate::{concurrency::LockError, etcd::Error};

/// What etcd says to a request without a token when it wants one, and what would help.
const HINTS: [(&str, &str); 3] = [
    ("etcdserver: user name is empty", "etcd wants a user, see --user"),
    ("etcdserver: authentication is not enabled", "leave out --user"),
    ("etcdserver: permission denied", "the user's roles do not allow it"),
];

/// What a program shows of itself when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// Nothing, and everything is in the clear.
    Plain,
    /// The connection is encrypted, and the client has no certificate.
    Nothing,
    /// The connection is encrypted, and the client has a certificate.
    Certificate,
}

/// The words of a connection that the other side ended in the midst of it: with TLS 1.3 a client
/// that is not let in often learns no more.
const DROPPED: [&str; 4] = ["closed", "broken pipe", "reset", "fatal alert"];

/// The error of connecting, in one line.
pub(super) fn of_connecting(error: &Error, shows: Shows) -> String {
    let reason = reason(error);
    let hint = if reason.contains("invalid peer certificate") {
        "the server's certificate, see --cacert"
    } else if reason.contains("KeyMismatch") {
        "--key is not the key of --cert"
    } else if DROPPED.iter().any(|word| reason.contains(word)) {
        match shows {
            Shows::Plain => "if etcd wants encryption: https://, or --cacert",
            Shows::Nothing => "if etcd wants a certificate: --cert and --key",
            Shows::Certificate => "etcd may not trust the certificate of --cert",
        }
    } else {
        return reason;
    };
    format!("{reason} ({hint})")
}

/// Whether waiting will not help: certificates and keys that do not fit. A connection that is just
/// dropped may be one to an etcd that is being started again.
pub(super) fn is_lasting(error: &Error) -> bool {
    let reason = reason(error);
    ["invalid peer certificate", "KeyMismatch", "fatal alert"].iter().any(|w| reason.contains(w))
}

/// Whether etcd itself answered, and said no.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error {
        // What is unavailable may be there a moment later: no leader, too many requests.
        Error::GRpcStatus(status) => {
            status.message().starts_with("etcdserver: ") && status.code() != Code::Unavailable
        }
        _ => false,
    }
}

/// The error in one line.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::GRpcStatus(status) => of_status(status),
        Error::TransportError(error) => chain(error.to_string(), error.source()),
        other => other.to_string(),
    }
}

/// What is said of a lock call or a session that failed.
pub(in crate::cli) fn of_lock(error: &LockError) -> String {
    match error {
        LockError::Etcd(error) => format!("etcd: {}", reason(error)),
        other => other.to_string(),
    }
}

fn of_status(status: &Status) -> String {
    let message = status.message();
    match HINTS.iter().find(|(said, _)| *said == message) {
        Some((_, hint)) => format!("{message} ({hint})"),
        None if message.is_empty() => chain(status.code().to_string(), status.source()),
        None => chain(message.to_owned(), status.source()),
    }
}

/// The error and what caused it, each once: tonic's outermost words are never the reason.
fn chain(first: String, mut source: Option<&(dyn std::error::Error + 'static)>) -> String {
    let mut words = vec![first];
    while let Some(error) = source {
        let text = error.to_string();
        if !words.iter().any(|said| said.contains(&text)) {
            words.push(text);
        }
        source = error.source();
    }
    if words.len() > 1 {
        words.retain(|words| words != "transport error");
    }
    words.join(": ")
}
