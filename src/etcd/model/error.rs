//! The refusals of a member, with etcd's own messages and gRPC codes.

use tonic::{Code, Status};

use super::size::MESSAGE_BYTES_MAX;

/// Why a request was refused. A refused request has no effect at all, save that one which timed
/// out may have had it in etcd.
///
/// Messages and codes as in etcd's `api/v3rpc/rpctypes/error.go`; those of the lock and the
/// election service as in `client/v3/concurrency`, without a code.
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
    /// 3.4 and 3.5 crash instead; newer releases answer this.
    #[error("etcdserver: invalid sort option")]
    InvalidSortOption,
    #[error("etcdserver: request is too large")]
    RequestTooLarge,
    /// gRPC itself refuses to read the message.
    #[error("grpc: received message larger than max ({size} vs. {max})", max = MESSAGE_BYTES_MAX)]
    MessageTooLarge {
        /// Of the message, in bytes.
        size: usize,
    },
    #[error("etcdserver: no leader")]
    Leaderless,
    #[error("etcdserver: request timed out")]
    TimedOut,
    #[error("mutex: session is expired")]
    SessionExpired,
    #[error("election: no leader")]
    NoLeader,
    #[error("election: not leader")]
    NotLeader,
    #[error("\"leader\" field must be provided")]
    MissingLeader,
    /// What the lock or the election service was refused. It passes on the text and not the code.
    #[error("{0}")]
    InService(&'static Refusal),
}

/// What the requests of the services can be refused with.
static IN_SERVICE: [Refusal; 3] =
    [Refusal::EmptyKey, Refusal::LeaseNotFound, Refusal::RequestTooLarge];

impl Refusal {
    /// The gRPC code that etcd sends with it.
    pub(crate) fn code(self) -> Code {
        match self {
            Refusal::EmptyKey
            | Refusal::KeyNotFound
            | Refusal::ValueProvided
            | Refusal::LeaseProvided
            | Refusal::TooManyOps
            | Refusal::DuplicateKey
            | Refusal::InvalidSortOption
            | Refusal::RequestTooLarge => Code::InvalidArgument,
            Refusal::Compacted | Refusal::FutureRevision | Refusal::LeaseTtlTooLarge => {
                Code::OutOfRange
            }
            Refusal::LeaseNotFound => Code::NotFound,
            Refusal::LeaseExists => Code::FailedPrecondition,
            Refusal::MessageTooLarge { .. } => Code::ResourceExhausted,
            Refusal::Leaderless | Refusal::TimedOut => Code::Unavailable,
            Refusal::SessionExpired
            | Refusal::NoLeader
            | Refusal::NotLeader
            | Refusal::MissingLeader
            | Refusal::InService(_) => Code::Unknown,
        }
    }

    /// The same as the lock or the election service reports it.
    pub(crate) fn in_service(self) -> Self {
        let known = IN_SERVICE.iter().find(|refusal| **refusal == self);
        known.map_or(self, Refusal::InService)
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Status::new(refusal.code(), refusal.to_string())
    }
}
