//! Faults of single requests: lost before the effect, reply lost after it, delivered twice.
//!
//! They are done where the request reaches the member, so the effect is certain and the client's
//! view is what a client of a real etcd gets: its connection breaks, and with it every call and
//! stream on it. A tool of the harness; an injected fault that never met a request shows that by
//! its count.

use std::collections::BTreeMap;

use crate::etcd::model::request::Request;

use super::MemberState;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// A range.
    Range,
    /// A put.
    Put,
    /// A delete range.
    DeleteRange,
    /// A transaction.
    Txn,
    /// A compaction.
    Compact,
    /// A lease grant.
    LeaseGrant,
    /// A lease revoke, by a client.
    LeaseRevoke,
    /// A question for a lease's time to live.
    LeaseTimeToLive,
    /// A question for all leases.
    Leases,
    /// One renewal on a keep-alive stream.
    KeepAlive,
    /// A new watcher, on a new stream or an open one.
    WatchCreate,
    /// The end of a watcher.
    WatchCancel,
    /// A request for progress.
    WatchProgress,
    /// The member list.
    MemberList,
    /// The member's status.
    Status,
    /// The client's end of a stream.
    CloseStream,
    /// A lock of the lock service.
    Lock,
    /// An unlock of the lock service.
    Unlock,
    /// A campaign of the election service.
    Campaign,
    /// A proclamation of the election service.
    Proclaim,
    /// A question for the leader of an election.
    Leader,
    /// A stream of leaders.
    Observe,
    /// A resignation of the election service.
    Resign,
    /// The client's word that it waits no more for a lock or a campaign.
    Cancel,
    /// The member's own proposal to revoke a lease that has run out. Lost, it is made again 3 s
    /// later (`expiredLeaseRetryInterval` in `lease/lessor.go`); the other faults change nothing,
    /// as a revoked lease cannot be revoked again.
    Expiry,
}

impl RequestKind {
    /// The kind of a request.
    pub(super) fn of(request: &Request) -> Self {
        match request {
            Request::Range(_) => RequestKind::Range,
            Request::Put(_) => RequestKind::Put,
            Request::DeleteRange(_) => RequestKind::DeleteRange,
            Request::Txn(_) => RequestKind::Txn,
            Request::Compact(_) => RequestKind::Compact,
            Request::LeaseGrant { .. } => RequestKind::LeaseGrant,
            Request::LeaseRevoke(_) => RequestKind::LeaseRevoke,
            Request::LeaseTimeToLive { .. } => RequestKind::LeaseTimeToLive,
            Request::Leases => RequestKind::Leases,
            Request::KeepAlive(_) => RequestKind::KeepAlive,
            Request::WatchCreate(_) => RequestKind::WatchCreate,
            Request::WatchCancel(_) => RequestKind::WatchCancel,
            Request::WatchProgress => RequestKind::WatchProgress,
            Request::MemberList => RequestKind::MemberList,
            Request::Status => RequestKind::Status,
            Request::CloseStream => RequestKind::CloseStream,
            Request::Lock { .. } => RequestKind::Lock,
            Request::Unlock(_) => RequestKind::Unlock,
            Request::Campaign { .. } => RequestKind::Campaign,
            Request::Proclaim { .. } => RequestKind::Proclaim,
            Request::Leader(_) => RequestKind::Leader,
            Request::Observe(_) => RequestKind::Observe,
            Request::Resign(_) => RequestKind::Resign,
            Request::Cancel => RequestKind::Cancel,
        }
    }
}

/// What becomes of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Harm {
    /// The connection breaks before the member sees the request: no effect, unknown to the client.
    Lost,
    /// The member does it, and the connection breaks before the reply is out: an effect, unknown
    /// to the client. One that waits for a leader goes with its connection, as in etcd.
    ReplyLost,
    /// The transport delivers it twice, as after a resend: the effect happens twice. A call gets
    /// the second answer, because the first is the one whose loss caused the resend; on a stream
    /// both answers arrive.
    Twice,
}

/// A fault to be injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFault {
    /// Which requests count.
    pub kind: RequestKind,
    /// What is done to them.
    pub harm: Harm,
    /// So many of them pass unharmed first.
    pub skip: u64,
    /// So many are harmed then.
    pub count: u64,
}

impl RequestFault {
    /// Harms the next request of this kind.
    pub const fn next(kind: RequestKind, harm: Harm) -> Self {
        RequestFault { kind, harm, skip: 0, count: 1 }
    }
}

/// The name of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestFaultId(u64);

/// The faults that were injected into a member.
#[derive(Debug, Default)]
pub(super) struct RequestFaults {
    next_id: u64,
    /// Each with what it has passed over and what it has harmed.
    all: BTreeMap<RequestFaultId, (RequestFault, u64, u64)>,
    /// How many requests of each kind came, harmed or not.
    received: BTreeMap<RequestKind, u64>,
}

impl RequestFaults {
    /// What becomes of the next request of this kind. The oldest fault that fits takes it; the
    /// others do not count it.
    pub(super) fn meet(&mut self, kind: RequestKind) -> Option<Harm> {
        *self.received.entry(kind).or_default() += 1;
        for (fault, passed, harmed) in self.all.values_mut() {
            if fault.kind != kind || *harmed >= fault.count {
                continue;
            }
            if *passed < fault.skip {
                *passed += 1;
                continue;
            }
            *harmed += 1;
            return Some(fault.harm);
        }
        None
    }
}

/// Faults of requests.
impl MemberState {
    /// Harms requests to come, until as many have been harmed as the fault says. It stays over a
    /// restart of the member.
    pub fn inject(&self, fault: RequestFault) -> RequestFaultId {
        let faults = &mut self.lock().faults;
        faults.next_id += 1;
        let id = RequestFaultId(faults.next_id);
        faults.all.insert(id, (fault, 0, 0));
        id
    }

    /// How many requests of this kind have reached the member over its connections, over all its
    /// lives: also those that were then lost, and each that was done twice once.
    pub fn received(&self, kind: RequestKind) -> u64 {
        self.lock().faults.received.get(&kind).copied().unwrap_or(0)
    }

    /// How many requests the fault has harmed; 0 for one that was withdrawn.
    pub fn harmed(&self, id: RequestFaultId) -> u64 {
        self.lock().faults.all.get(&id).map_or(0, |(_, _, harmed)| *harmed)
    }

    /// Takes a fault back; gives how many requests it has harmed.
    pub fn withdraw(&self, id: RequestFaultId) -> u64 {
        self.lock().faults.all.remove(&id).map_or(0, |(_, _, harmed)| harmed)
    }
}
