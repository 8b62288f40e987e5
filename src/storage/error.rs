//! What goes wrong for a storage client, and whether that proves that nothing happened.
//!
//! All outcomes are decided here and nowhere else: `settle` for an answer, and
//! [`StorageError::definiteness`] for an error.

use std::{io, time::Duration};

use super::protocol::Response;
use crate::history::OpKind;

/// Whether an error proves that the operation had no effect and never will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definiteness {
    /// It had none: *fail* in the history.
    Definite,
    /// It may have had, or may yet have: *unknown* in the history.
    Indefinite,
}

/// An operation at the storage did not succeed.
///
/// `resent` says that an earlier attempt of the same operation may have reached the storage.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The fence refused it: a newer holder is known there.
    #[error("{message}")]
    StaleToken {
        /// The storage's words.
        message: String,
        /// Read or write.
        op: OpKind,
        /// An earlier attempt may have arrived, and may have been applied before it went stale.
        resent: bool,
    },
    /// The storage takes the request for malformed, too large or out of order.
    #[error("rejected with status {status}: {message}")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// The storage's words.
        message: String,
        /// An earlier attempt may have arrived.
        resent: bool,
    },
    /// No answer came before the client gave up.
    #[error("no answer from the storage after {after:?}")]
    TimedOut {
        /// Since the operation began.
        after: Duration,
        /// An attempt may have arrived.
        resent: bool,
    },
    /// No connection could be made.
    #[error("cannot reach the storage at {address}: {source}")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// Why not.
        source: std::sync::Arc<io::Error>,
        /// An earlier attempt may have arrived.
        resent: bool,
    },
    /// The connection broke after the request had been sent.
    #[error("the connection to the storage broke: {message}")]
    Lost {
        /// What the connection says.
        message: String,
    },
    /// The answer is none of this protocol.
    #[error("not an answer of the storage's protocol (status {status}): {message}")]
    Protocol {
        /// The HTTP status.
        status: u16,
        /// What is wrong with it.
        message: String,
    },
    /// An operation of this holding ended unknown, so nothing more may be sent under its token.
    #[error(
        "the holding was given up after an operation of unknown outcome: acquire the lock again"
    )]
    GivenUp,
}

impl StorageError {
    /// Whether this proves that the operation had no effect.
    pub fn definiteness(&self) -> Definiteness {
        let definite = match self {
            // A refused read changed no data whichever attempt it was.
            StorageError::StaleToken { op, resent, .. } => !resent || *op == OpKind::Read,
            StorageError::Rejected { resent, .. }
            | StorageError::TimedOut { resent, .. }
            | StorageError::Unreachable { resent, .. } => !resent,
            StorageError::Lost { .. } | StorageError::Protocol { .. } => false,
            StorageError::GivenUp => true,
        };
        if definite { Definiteness::Definite } else { Definiteness::Indefinite }
    }
}

/// What an answer says: a value (none if the key is not there), or why not.
pub(super) fn settle(
    status: u16,
    body: &[u8],
    op: OpKind,
    resent: bool,
) -> Result<Option<Response>, StorageError> {
    let response = answer(status, body, resent)?;
    if response.err.is_empty() {
        return Ok(Some(response));
    }
    if op == OpKind::Read && response.is_not_found() {
        return Ok(None);
    }
    // The protocol has one way to say "fenced off": status 200 with an error text.
    Err(StorageError::StaleToken { message: response.err, op, resent })
}

/// The answer itself, whatever it says; statuses other than 200 are errors.
pub(super) fn answer(status: u16, body: &[u8], resent: bool) -> Result<Response, StorageError> {
    let decoded = Response::decode(body);
    match (status, decoded) {
        (200, Ok(response)) => Ok(response),
        (400..=499, decoded) => {
            let message = decoded.map_or_else(|error| error.to_string(), |response| response.err);
            Err(StorageError::Rejected { status, message, resent })
        }
        (_, Ok(response)) => Err(StorageError::Protocol { status, message: response.err }),
        (_, Err(error)) => Err(StorageError::Protocol { status, message: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same refusal is a fail for a first attempt and unknown for a resent write.
    #[test]
    fn stale_after_a_resend_is_unknown() {
        let body = Response::error("stale").encode();
        let of = |op, resent| settle(200, &body, op, resent).unwrap_err().definiteness();
        assert_eq!(of(OpKind::Write, false), Definiteness::Definite);
        assert_eq!(of(OpKind::Write, true), Definiteness::Indefinite);
        assert_eq!(of(OpKind::Read, true), Definiteness::Definite);
    }

    /// Statuses and bodies outside the protocol prove nothing, a 4xx of a first attempt does.
    #[test]
    fn other_answers() {
        let rejected = settle(400, b"{", OpKind::Write, false).unwrap_err();
        assert_eq!(rejected.definiteness(), Definiteness::Definite);
        for (status, body) in [(200, "nonsense"), (502, ""), (204, "")] {
            let error = settle(status, body.as_bytes(), OpKind::Write, false).unwrap_err();
            assert_eq!(error.definiteness(), Definiteness::Indefinite, "{status}");
        }
    }
}
