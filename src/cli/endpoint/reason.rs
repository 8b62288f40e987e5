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
    words.join(": ")
}
