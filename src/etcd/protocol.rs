//! What travels between the client facade and a member: numbered requests and answers.
//!
//! It stands for gRPC: a unary call is one number with one answer, a stream is one number with any
//! messages in both directions, all over one connection.

use super::model::{Answer, request::Request};

/// From a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientMessage {
    /// The client's number for the call or stream.
    pub(crate) id: u64,
    pub(crate) request: Request,
    /// Refuse it, or break its stream, if the member knows no leader: gRPC metadata in etcd
    /// (`hasleader` in `api/v3rpc/rpctypes/md.go`).
    pub(crate) require_leader: bool,
}

/// From a member.
#[derive(Debug)]
pub(crate) struct ServerMessage {
    /// The number that the client gave.
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}
