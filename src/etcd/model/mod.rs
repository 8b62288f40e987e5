//! The model of one etcd member: pure and synchronous; time comes in as an argument.
//!
//! [`Model::handle`] takes a request and answers it. What else follows from it (rows of the commit
//! log, changes of leases, messages on streams) is an [`Output`], in order; whoever owns the model
//! takes the outputs after each call. The model knows no network, no clock and no task.
//!
//! All times are on the member's monotonic clock.

mod election;
pub(crate) mod error;

pub(crate) mod id;
mod index;
mod kv;
mod leader;
pub(crate) mod lease;
mod lessor;
mod lock;
pub(crate) mod mvcc;
mod observe;
pub(crate) mod range;
mod renewal;
pub(crate) mod request;
pub(crate) mod response;
mod service;
mod size;
mod txn;
pub(crate) mod version;
mod watch;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    etcd::quirk::Quirks,
    history::{Cause, Commit, KeyChange, KeyEvent, LeaseChange, LeaseEvent},
};

use self::{
    error::Refusal,
    id::IdGenerator,
    lease::Lessor,
    mvcc::Store,
    observe::Observer,
    renewal::Renewals,
    request::Request,
    response::{
        Event, EventType, Member, MemberListResponse, Response, ResponseHeader, StatusResponse,
    },
    service::Calls,
    version::EtcdVersion,
    watch::Watchers,
};

/// The name of a stream, or of a unary call: the connection, and the client's number for it there.
pub(crate) type StreamId = (u64, u64);

/// What a call is answered.
pub(crate) type Answer = Result<Response, Refusal>;

/// What a call of the model leads to, apart from its answer.
#[derive(Debug)]
pub(crate) enum Output {
    /// A row of the commit log.
    Commit(Commit),
    /// A change of a lease.
    Lease(LeaseEvent),
    /// A message on a stream.
    Message(StreamId, Response),
    /// The answer to a call that had to wait.
    Answer(StreamId, Answer),
}

/// Who the member is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) cluster_id: u64,
    pub(crate) member_id: u64,
    pub(crate) name: String,
    pub(crate) client_url: String,
    /// The etcd that it behaves as.
    pub(crate) version: EtcdVersion,
}

/// The member that recordings, tests and benches ask, unless they say otherwise; its ids are those
/// that etcd itself computes for a single member at its default address.
impl Default for Identity {
    fn default() -> Self {
        Identity {
            cluster_id: 0xcdf8_1819_4e3a_8c32,
            member_id: 0x8e9e_05c5_2164_694d,
            name: "default".to_owned(),
            client_url: "http://10.0.0.1:2379".to_owned(),
            version: EtcdVersion::default(),
        }
    }
}

/// One member's state: a cluster of one.
#[derive(Debug)]
pub(crate) struct Model {
    identity: Identity,
    /// Raised by every start: the member elects itself.
    raft_term: u64,
    /// Counts the proposals.
    raft_index: u64,
    ids: IdGenerator,
    store: Store,
    lessor: Lessor,
    watchers: Watchers,
    calls: Calls,
    observers: BTreeMap<StreamId, Observer>,
    renewals: Renewals,
    commits: u64,
    outputs: Vec<Output>,
    quirks: Quirks,
}

impl Model {
    /// An empty store at revision 1.
    pub(crate) fn new(identity: Identity) -> Self {
        let ids = IdGenerator::new(identity.member_id, 0);
        Model {
            identity,
            raft_term: 1,
            raft_index: 0,
            ids,
            store: Store::default(),
            lessor: Lessor::default(),
            watchers: Watchers::default(),
            calls: Calls::default(),
            observers: BTreeMap::new(),
            renewals: Renewals::default(),
            commits: 0,
            outputs: Vec::new(),
            quirks: Quirks::default(),
        }
    }

    /// The process starts (again): store and leases are as they were, streams are gone. Leases live
    /// on for their TTL and `extend` more, as after an election.
    pub(crate) fn start(&mut self, now: Duration, wall_ms: i64, extend: Duration) {
        self.ids = IdGenerator::new(self.identity.member_id, wall_ms);
        self.watchers = Watchers::default();
        // Nobody cleans up after the calls that waited: their keys live as long as their leases.
        self.calls = Calls::default();
        self.observers.clear();
        self.renewals = Renewals::default();
        self.outputs.clear();
        self.restore(now);
        self.promote(now, extend);
    }

    /// Takes what has followed from the calls so far, in order.
    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Answers a request. None: the answer is a message of the stream, or the call waits.
    pub(crate) fn handle(
        &mut self,
        now: Duration,
        from: StreamId,
        request: Request,
    ) -> Option<Answer> {
        let size = size::request(&request);
        if size > size::MESSAGE_BYTES_MAX {
            return Some(Err(Refusal::MessageTooLarge { size }));
        }
        let answer = match request {
            Request::Range(request) => self.range(&request).map(Response::Range),
            Request::Put(request) => self.put(now, request).map(Response::Put),
            Request::DeleteRange(request) => {
                self.delete_range(now, &request).map(Response::DeleteRange)
            }
            Request::Txn(request) => self.txn(now, request).map(Response::Txn),
            Request::Compact(revision) => self.compact(revision).map(Response::Compact),
            Request::LeaseGrant { ttl_s, id } => {
                self.grant(now, ttl_s, id).map(Response::LeaseGrant)
            }
            Request::LeaseRevoke(id) => self.revoke(now, id).map(Response::LeaseRevoke),
            Request::LeaseTimeToLive { id, keys } => {
                Ok(Response::LeaseTimeToLive(self.time_to_live(now, id, keys)))
            }
            Request::Leases => Ok(Response::Leases(self.leases())),
            Request::MemberList => Ok(Response::MemberList(self.member_list())),
            Request::Status => Ok(Response::Status(self.status())),
            Request::KeepAlive(id) => return self.keep_alive(now, from, id, None).map(Ok),
            Request::WatchCreate(request) => {
                self.watch_create(from, request);
                return None;
            }
            Request::WatchCancel(watch_id) => {
                self.watch_cancel(from, watch_id);
                return None;
            }
            Request::WatchProgress => {
                self.watch_progress(from);
                return None;
            }
            Request::Lock { name, lease } => return self.lock(now, from, &name, lease),
            Request::Campaign { name, value, lease } => {
                return self.campaign(now, from, name, value, lease);
            }
            Request::Unlock(key) => self.unlock(now, &key).map(Response::Unlock),
            Request::Proclaim { leader, value } => {
                self.proclaim(now, leader, value).map(Response::Proclaim)
            }
            Request::Leader(name) => self.leader(&name).map(Response::Leader),
            Request::Resign(leader) => self.resign(now, leader).map(Response::Resign),
            Request::Observe(name) => {
                self.observe(from, &name);
                return None;
            }
            Request::Cancel => {
                self.cancel(now, from);
                return None;
            }
            Request::CloseStream => {
                self.close(from);
                return Some(Ok(Response::StreamEnd));
            }
        };
        Some(answer)
    }

    /// A stream is over, at the wish of the client or with its connection.
    pub(crate) fn close(&mut self, stream: StreamId) {
        self.watchers.close(stream);
        self.observers.remove(&stream);
        self.renewals.close(stream);
    }

    /// How much is kept for streams: watchers, observers, renewals that wait.
    #[cfg(test)]
    pub(crate) fn stream_state_len(&self) -> usize {
        self.watchers.len() + self.observers.len() + self.renewals.len()
    }

    /// How many states of keys are kept, past and present ones.
    pub(crate) fn history_len(&self) -> usize {
        self.store.history_len()
    }

    /// How many events are kept.
    pub(crate) fn events_len(&self) -> usize {
        self.store.events_len()
    }

    /// What an answer that is begun now says of the member.
    pub(crate) fn header(&self) -> ResponseHeader {
        ResponseHeader {
            cluster_id: self.identity.cluster_id,
            member_id: self.identity.member_id,
            revision: self.store.revision(),
            raft_term: self.raft_term,
        }
    }

    fn send(&mut self, stream: StreamId, response: Response) {
        self.outputs.push(Output::Message(stream, response));
    }

    /// Every proposal to the consensus takes an id, and an index unless the request of this size is
    /// too large for it (`processInternalRaftRequestOnce` in `v3_server.go`). Only requests with
    /// keys can be; for others the size is given as 0.
    fn propose(&mut self, size: usize) -> Result<(), Refusal> {
        let id = self.ids.next();
        if size::proposal(size, id) > size::REQUEST_BYTES_MAX {
            return Err(Refusal::RequestTooLarge);
        }
        self.raft_index += 1;
        Ok(())
    }

    /// Ends a write: a row of the commit log; watchers and observers are told, and the calls that
    /// waited for it go on.
    fn commit(&mut self, now: Duration, cause: Cause) {
        let Some(events) = self.store.commit() else { return };
        let events = events.to_vec();
        let header = self.header();
        self.commits += 1;
        self.outputs.push(Output::Commit(Commit {
            index: self.commits,
            revision: header.revision,
            cause,
            member_ns: now.as_nanos() as u64,
            events: events.iter().map(key_event).collect(),
        }));
        let told = self.watchers.notify(header, &events, self.store.compacted());
        for (stream, response) in told {
            self.send(stream, Response::Watch(response));
        }
        self.tell_observers(&events);
        self.wake(&events);
    }

    fn lease_event(&mut self, now: Duration, lease: i64, change: LeaseChange) {
        let member_ns = now.as_nanos() as u64;
        self.outputs.push(Output::Lease(LeaseEvent { lease, change, member_ns }));
    }
}

fn key_event(event: &Event) -> KeyEvent {
    let (change, state) = match event.event_type {
        EventType::Put => (KeyChange::Put, &event.kv),
        EventType::Delete => (KeyChange::Delete, event.prev_kv.as_ref().unwrap_or(&event.kv)),
    };
    KeyEvent {
        change,
        key: String::from_utf8_lossy(&event.kv.key).into_owned(),
        create_revision: state.create_revision,
        lease: state.lease,
    }
}

/// The member itself.
impl Model {
    fn member_list(&self) -> MemberListResponse {
        let member = Member {
            id: self.identity.member_id,
            name: self.identity.name.clone(),
            peer_urls: vec![self.identity.client_url.replace(":2379", ":2380")],
            client_urls: vec![self.identity.client_url.clone()],
            is_learner: false,
        };
        // The cluster service leaves the revision out of its header.
        let header = ResponseHeader { revision: 0, ..self.header() };
        MemberListResponse { header: Some(header), members: vec![member] }
    }

    fn status(&self) -> StatusResponse {
        StatusResponse {
            header: Some(self.header()),
            version: self.identity.version.release().to_owned(),
            // What an empty store takes up on a disk; sizes are not modelled.
            db_size: 20 * 1024,
            leader: self.identity.member_id,
            raft_index: self.raft_index.max(1),
            raft_term: self.raft_term,
            errors: Vec::new(),
        }
    }
}
