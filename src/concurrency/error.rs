//! How a session or a lock call can fail, and whether a failure proves that nothing happened.
//!
//! All judgement about etcd's errors is in [`class`]; nothing else in this layer looks into one.
//! The status codes are those of etcd's `api/v3rpc/rpctypes/error.go`.

use std::time::Duration;

use tonic::Code;

use crate::etcd;

/// Whether an error proves that the call had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definiteness {
    /// The call certainly had no effect.
    Definite,
    /// The call may have had its effect, or have it later.
    Indefinite,
}

/// Why a session or lock call failed.
///
/// A caller that gets an error from `lock` or `try_lock` does not hold the lock, whatever the
/// error. The first three texts are those of etcd's `concurrency` package.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// `try_lock`: another session owns the lock. The attempt left nothing in the queue.
    #[error("mutex: Locked by another session")]
    Locked,
    /// The session is over: its lease or the caller's queue key is gone, its deadline on the own
    /// clock has passed, or it was closed or orphaned.
    #[error("mutex: session is expired")]
    SessionExpired,
    /// This handle holds nothing: never locked, already unlocked, or unlocked through another
    /// handle of the session. No request was sent.
    #[error("mutex: lock has already been released")]
    Released,
    /// No definite answer within this time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Etcd refused, or its answer was lost.
    #[error("etcd: {0}")]
    Etcd(#[from] Box<etcd::Error>),
    /// Etcd answered something that does not fit the request.
    #[error("etcd's answer does not fit the request: {0}")]
    Answer(&'static str),
}

impl LockError {
    /// Whether this error proves that the call had no effect. For `lock` the effect is a queue key
    /// that stays although the caller gave up; for `unlock` that the key is gone.
    pub fn definiteness(&self) -> Definiteness {
        match self {
            LockError::Locked | LockError::SessionExpired | LockError::Released => {
                Definiteness::Definite
            }
            LockError::TimedOut(_) | LockError::Answer(_) => Definiteness::Indefinite,
            LockError::Etcd(error) => match class(error) {
                Class::LeaseGone | Class::Refused => Definiteness::Definite,
                Class::Unknown => Definiteness::Indefinite,
            },
        }
    }

    /// Whether this error proves that the call had no effect.
    pub fn is_definite(&self) -> bool {
        self.definiteness() == Definiteness::Definite
    }
}

/// Why a call of an election failed. The texts are those of etcd's `concurrency/election.go`.
#[derive(Debug, thiserror::Error)]
pub enum ElectionError {
    /// This handle does not lead: it never won, has resigned, or its key is gone.
    #[error("election: not leader")]
    NotLeader,
    /// What can also fail for a lock.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl ElectionError {
    /// Whether this error proves that the call had no effect. For `campaign` the effect is a
    /// candidacy that stays although the caller gave up, for `proclaim` the new value.
    pub fn definiteness(&self) -> Definiteness {
        match self {
            ElectionError::NotLeader => Definiteness::Definite,
            ElectionError::Lock(error) => error.definiteness(),
        }
    }
}

/// What an error of etcd means for the one who sent the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The lease of the request does not exist (any more). No effect.
    LeaseGone,
    /// Refused without effect; asking again would not help.
    Refused,
    /// Nobody knows whether it happened. An idempotent request may be sent again.
    Unknown,
}

/// Judges an error of etcd.
pub(super) fn class(error: &etcd::Error) -> Class {
    match error {
        etcd::Error::GRpcStatus(status) => match status.code() {
            // Of all that this layer asks, only a lease can be "not found".
            Code::NotFound => Class::LeaseGone,
            Code::InvalidArgument
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::ResourceExhausted => Class::Refused,
            // "no leader" and "leader changed" share Unavailable, and the second may have happened.
            _ => Class::Unknown,
        },
        etcd::Error::InvalidArgs(_)
        | etcd::Error::InvalidUri(_)
        | etcd::Error::InvalidMetadataValue(_)
        | etcd::Error::EndpointsNotManaged => Class::Refused,
        _ => Class::Unknown,
    }
}

/// Whether etcd does not know the request's token any more: it was not used for a while (300 s by
/// default), its member was started again, or users were changed. The request had no effect, and
/// works with a new one. The texts are those of `rpctypes/error.go`; Go's client does the same in
/// `retry_interceptor.go`.
pub(super) fn wants_new_token(error: &etcd::Error) -> bool {
    let etcd::Error::GRpcStatus(status) = error else { return false };
    matches!(
        status.message(),
        "etcdserver: invalid auth token" | "etcdserver: revision of auth store is old"
    )
}

/// Judges an error of *opening* a keep-alive stream. There the client crate has only one use for
/// its keep-alive error: the first reply said TTL <= 0, so the lease is gone (etcd-client #87). On
/// an open stream the same error means a closed stream.
pub(super) fn class_of_opening(error: &etcd::Error) -> Class {
    match error {
        etcd::Error::LeaseKeepAliveError(_) => Class::LeaseGone,
        other => class(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: Code) -> etcd::Error {
        etcd::Error::GRpcStatus(tonic::Status::new(code, "x"))
    }

    /// Only a refusal proves "no effect"; whatever may come from a lost answer must not.
    #[test]
    fn lost_answers_are_indefinite() {
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled, Code::Unknown] {
            let error = LockError::from(Box::new(status(code)));
            assert_eq!(error.definiteness(), Definiteness::Indefinite, "{code:?}");
        }
        for code in [Code::InvalidArgument, Code::PermissionDenied, Code::NotFound] {
            let error = LockError::from(Box::new(status(code)));
            assert_eq!(error.definiteness(), Definiteness::Definite, "{code:?}");
        }
    }

    /// The client crate uses one variant for two things; which is meant depends on the call.
    #[test]
    fn keep_alive_error_means_gone_only_when_opening() {
        let error = etcd::Error::LeaseKeepAliveError("lease not found".into());
        assert_eq!(class_of_opening(&error), Class::LeaseGone);
        assert_eq!(class(&error), Class::Unknown);
    }
}
