//! What travels between the simulated client and the simulated member: one connection carries
//! requests by number and streams by number, as HTTP/2 does for gRPC.

use tonic::Status;

use super::model::{
    TimeToLive,
    wire::{
        DeleteReply, DeleteRequest, PutReply, PutRequest, RangeReply, RangeRequest, TxnReply,
        TxnRequest, WatchCreate, WatchReply,
    },
};

/// A unary request.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Range(RangeRequest),
    Put(PutRequest),
    Delete(DeleteRequest),
    Txn(TxnRequest),
    Compact(i64),
    LeaseGrant(i64, i64),
    LeaseRevoke(i64),
    LeaseTimeToLive(i64, bool),
    Leases,
    MemberList,
    Status,
}

/// The answer to a unary request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Range(RangeReply),
    Put(PutReply),
    Delete(DeleteReply),
    Txn(TxnReply),
    Compact(i64),
    LeaseGrant { revision: i64, id: i64, ttl_s: i64 },
    LeaseRevoke { revision: i64 },
    LeaseTimeToLive { revision: i64, id: i64, known: TimeToLive },
    Leases { revision: i64, leases: Vec<i64> },
    MemberList { revision: i64, member_id: u64 },
    Status { revision: i64, member_id: u64 },
}

/// From client to member.
#[derive(Debug)]
pub(crate) enum ClientFrame {
    /// A unary request with its number.
    Request(u64, Request),
    /// A new watcher on a stream.
    Watch(u64, WatchCreate),
    /// A watcher is to end.
    CancelWatch(u64, i64),
    /// How far has this stream come?
    Progress(u64),
    /// A renewal of a lease on a stream.
    KeepAlive(u64, i64),
    /// The client has dropped a stream.
    CloseStream(u64),
}

/// From member to client.
#[derive(Debug)]
pub(crate) enum ServerFrame {
    /// The answer to a request.
    Reply(u64, Result<Reply, Status>),
    /// Something for a watch stream.
    Watch(u64, WatchReply),
    /// The answer to a renewal: stream, revision, lease, time to live in seconds (0: gone).
    KeepAlive(u64, i64, i64, i64),
}
