//! The errors of a client, with the variants of etcd-client.

use tonic::Status;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument makes no sense, or what was asked is not simulated.
    #[error("invalid arguments: {0}")]
    InvalidArgs(String),
    /// An endpoint is no URI.
    #[error("invalid uri: {0}")]
    InvalidUri(String),
    /// The network failed.
    #[error("io error: {0}")]
    IoError(#[from] std::io::Error),
    /// The member refused, or could not be reached: the code tells which.
    #[error("grpc request error: {0}")]
    GRpcStatus(#[from] Status),
    /// A watch could not be made or used.
    #[error("watch error: {0}")]
    WatchError(String),
    /// Bytes are no UTF-8.
    #[error("utf8 error: {0}")]
    Utf8Error(#[from] std::str::Utf8Error),
    /// A lease could not be kept alive.
    #[error("lease keep alive error: {0}")]
    LeaseKeepAliveError(String),
    /// An election failed.
    #[error("election error: {0}")]
    ElectError(String),
    /// A header value is not allowed.
    #[error("invalid metadata value: {0}")]
    InvalidMetadataValue(String),
    /// The set of endpoints cannot be changed.
    #[error("endpoint error: {0}")]
    EndpointError(String),
    /// The set of endpoints is not this client's.
    #[error("endpoints not managed by this client")]
    EndpointsNotManaged,
    /// Our own fault.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    /// What the simulated member does not have.
    pub(super) fn not_simulated(what: &str) -> Self {
        Error::InvalidArgs(format!("not simulated: {what}"))
    }
}
