//! The refusals of a member, with etcd's own messages and gRPC codes.

use tonic::{Code, Status};

/// Why a request was refused. A refused request has no effect at all, save that one which timed
/// out may have had it in etcd.
///
/// Messages and codes as in etcd's `api/v3rpc/rpctypes/error.go`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("etcdserver: key is not provided")]
    EmptyKey,
    #[error("etcdserver: key not found")]
    KeyNotFound,
    #[error("etcdserver: value is provided")]
    ValueProvided,
    #[error("etcdserver: lease is provided")]
    LeaseProvided,
    #[error("etcdserver: too many operations in txn request")]
    TooManyOps,
    #[error("etcdserver: duplicate key given in txn request")]
    DuplicateKey,
    #[error("etcdserver: mvcc: required revision has been compacted")]
    Compacted,
    #[error("etcdserver: mvcc: required revision is a future revision")]
    FutureRevision,
    #[error("etcdserver: requested lease not found")]
    LeaseNotFound,
    #[error("etcdserver: lease already exists")]
    LeaseExists,
    #[error("etcdserver: too large lease TTL")]
    LeaseTtlTooLarge,
    #[error("etcdserver: no leader")]
    NoLeader,
    #[error("etcdserver: request timed out")]
    TimedOut,
}

impl Refusal {
    /// The gRPC code that etcd sends with it.
    pub(crate) fn code(self) -> Code {
        match self {
            Refusal::EmptyKey
            | Refusal::KeyNotFound
            | Refusal::ValueProvided
            | Refusal::LeaseProvided
            | Refusal::TooManyOps
            | Refusal::DuplicateKey => Code::InvalidArgument,
            Refusal::Compacted | Refusal::FutureRevision | Refusal::LeaseTtlTooLarge => {
                Code::OutOfRange
            }
            Refusal::LeaseNotFound => Code::NotFound,
            Refusal::LeaseExists => Code::FailedPrecondition,
            Refusal::NoLeader | Refusal::TimedOut => Code::Unavailable,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Status::new(refusal.code(), refusal.to_string())
    }
}
