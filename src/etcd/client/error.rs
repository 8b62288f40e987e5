//! The error of the client facade: etcd-client's, without the variants of its transport.

use std::str::Utf8Error;

use tonic::{Status, metadata::errors::InvalidMetadataValue};

/// What the methods of the client give.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of the etcd client, as in etcd-client 0.18. Its `TransportError` never occurs here:
/// etcd-client itself reports an unreachable member as `GRpcStatus` with code Unavailable, and a
/// connection that broke under a call with code Unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid arguments.
    #[error("invalid arguments: {0}")]
    InvalidArgs(String),
    /// Invalid URI.
    #[error("invalid uri: {0}")]
    InvalidUri(#[from] hyper::http::uri::InvalidUri),
    /// IO error.
    #[error("io error: {0}")]
    IoError(#[from] std::io::Error),
    /// Transport error: never.
    #[error("transport error: {0}")]
    TransportError(#[from] TransportError),
    /// A status of gRPC: a refusal of the member, or an unknown outcome (time-out, lost
    /// connection). Something that is not simulated is Unimplemented.
    #[error("grpc request error: {0}")]
    GRpcStatus(#[from] Status),
    /// Watch error.
    #[error("watch error: {0}")]
    WatchError(String),
    /// A key or value is not UTF-8.
    #[error("utf8 error: {0}")]
    Utf8Error(#[from] Utf8Error),
    /// The lease of a new keep-alive is gone, or its stream is closed.
    #[error("lease keep alive error: {0}")]
    LeaseKeepAliveError(String),
    /// Election error.
    #[error("election error: {0}")]
    ElectError(String),
    /// Invalid header value.
    #[error("invalid metadata value: {0}")]
    InvalidMetadataValue(#[from] InvalidMetadataValue),
    /// Endpoint error.
    #[error("endpoint error: {0}")]
    EndpointError(String),
    /// The endpoints are not managed by this client.
    #[error("endpoints not managed by this client")]
    EndpointsNotManaged,
    /// Internal error.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Stands for `tonic::transport::Error`, which belongs to a transport that is not here. There are
/// no values of it; it is there so that a `match` on [`Error`] compiles in both builds.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {}

/// The answer for what this simulation does not have.
pub(super) fn not_simulated(what: &str) -> Error {
    Error::GRpcStatus(Status::unimplemented(format!("not simulated: {what}")))
}
