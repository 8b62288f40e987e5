//! The model of one etcd member: pure and synchronous; time comes in as an argument.
//!
//! [`Model::handle`] takes a request and answers it. What else follows from it (rows of the commit
//! log, changes of leases, messages on streams) is an [`Output`], in order; whoever owns the model
//! takes the outputs after each call. The model knows no network, no clock and no task.
//!
//! All times are on the member's monotonic clock.

pub(crate) mod error;
pub(crate) mod id;
pub(crate) mod lease;
pub(crate) mod mvcc;
pub(crate) mod range;
pub(crate) mod request;
pub(crate) mod response;
mod txn;
mod watch;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;

use crate::history::{Cause, Commit, KeyChange, KeyEvent, LeaseChange, LeaseEvent};

use self::{
    error::Refusal,
    id::IdGenerator,
    lease::{Lessor, Renewal},
    mvcc::Store,
    range::Range,
    request::{DeleteRangeRequest, PutRequest, RangeRequest, Request},
    response::{
        CompactionResponse, DeleteResponse, Event, EventType, GetResponse, LeaseGrantResponse,
        LeaseKeepAliveResponse, LeaseLeasesResponse, LeaseRevokeResponse, LeaseStatus,
        LeaseTimeToLiveResponse, Member, MemberListResponse, PutResponse, Response, ResponseHeader,
        StatusResponse,
    },
    watch::Watchers,
};

/// The name of a stream, or of a unary call: the connection, and the client's number for it there.
pub(crate) type StreamId = (u64, u64);

/// What a call of the model leads to, apart from its answer.
#[derive(Debug)]
pub(crate) enum Output {
    /// A row of the commit log.
    Commit(Commit),
    /// A change of a lease.
    Lease(LeaseEvent),
    /// A message on a stream.
    Message(StreamId, Response),
}

/// Who the member is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) cluster_id: u64,
    pub(crate) member_id: u64,
    pub(crate) name: String,
    pub(crate) client_url: String,
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
    /// Renewals of leases that have run out; each waits for the revocation of its lease.
    waiting: BTreeMap<i64, Vec<StreamId>>,
    commits: u64,
    outputs: Vec<Output>,
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
            waiting: BTreeMap::new(),
            commits: 0,
            outputs: Vec::new(),
        }
    }

    /// The process starts (again): store and leases are as they were, streams are gone. Leases live
    /// on for their TTL and `extend` more, as after an election.
    pub(crate) fn start(&mut self, now: Duration, wall_ms: i64, extend: Duration) {
        self.raft_term += 1;
        self.ids = IdGenerator::new(self.identity.member_id, wall_ms);
        self.watchers = Watchers::default();
        self.waiting.clear();
        self.outputs.clear();
        self.lessor.promote(now, extend);
    }

    /// Takes what has followed from the calls so far, in order.
    pub(crate) fn take_outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// Answers a request. None: the answer is a message of the stream, now or later.
    pub(crate) fn handle(
        &mut self,
        now: Duration,
        from: StreamId,
        request: Request,
    ) -> Option<Result<Response, Refusal>> {
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
            Request::KeepAlive(id) => return self.keep_alive(now, from, id).map(Ok),
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
        self.waiting.retain(|_, streams| {
            streams.retain(|waiting| *waiting != stream);
            !streams.is_empty()
        });
    }

    fn header(&self) -> ResponseHeader {
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

    /// Every proposal to the consensus takes an id and an index.
    fn propose(&mut self) {
        self.ids.next();
        self.raft_index += 1;
    }

    /// Ends a write: a row of the commit log, and the watchers are told.
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

/// Keys and values.
impl Model {
    /// Answers a range request.
    pub(crate) fn range(&mut self, request: &RangeRequest) -> Result<GetResponse, Refusal> {
        txn::check_range(request)?;
        if !request.serializable {
            // A linearizable read asks the leader for its index under an id of its own.
            self.ids.next();
        }
        self.read(request)
    }

    fn read(&self, request: &RangeRequest) -> Result<GetResponse, Refusal> {
        let found = self.store.range(request)?;
        Ok(GetResponse {
            header: Some(self.header()),
            kvs: found.kvs,
            more: found.more,
            count: found.count,
        })
    }

    fn put(&mut self, now: Duration, request: PutRequest) -> Result<PutResponse, Refusal> {
        txn::check_put(&request)?;
        self.propose();
        self.check_put_lease(&request)?;
        self.check_put_previous(&request)?;
        let response = self.apply_put(request);
        self.commit(now, Cause::Put);
        Ok(response)
    }

    fn check_put_lease(&self, put: &PutRequest) -> Result<(), Refusal> {
        match put.lease {
            0 => Ok(()),
            lease => self.lessor.get(lease).map(|_| ()).ok_or(Refusal::LeaseNotFound),
        }
    }

    fn check_put_previous(&self, put: &PutRequest) -> Result<(), Refusal> {
        let needed = put.ignore_value || put.ignore_lease;
        if needed && self.store.get(&put.key).is_none() {
            return Err(Refusal::KeyNotFound);
        }
        Ok(())
    }

    fn apply_put(&mut self, put: PutRequest) -> PutResponse {
        let before = self.store.get(&put.key);
        let value = match before {
            Some(kv) if put.ignore_value => kv.value.clone(),
            _ => Bytes::from(put.value),
        };
        let lease = match before {
            Some(kv) if put.ignore_lease => kv.lease,
            _ => put.lease,
        };
        let key = before.map_or_else(|| Bytes::from(put.key), |kv| kv.key.clone());
        let prev_kv = self.store.put(key.clone(), value, lease);
        let old_lease = prev_kv.as_ref().map_or(0, |kv| kv.lease);
        if old_lease != lease {
            self.lessor.detach(old_lease, &key);
            self.lessor.attach(lease, &key);
        }
        PutResponse {
            header: Some(self.header()),
            prev_kv: if put.prev_kv { prev_kv } else { None },
        }
    }

    fn delete_range(
        &mut self,
        now: Duration,
        request: &DeleteRangeRequest,
    ) -> Result<DeleteResponse, Refusal> {
        txn::check_delete(request)?;
        self.propose();
        let response = self.apply_delete(request);
        self.commit(now, Cause::Delete);
        Ok(response)
    }

    fn apply_delete(&mut self, request: &DeleteRangeRequest) -> DeleteResponse {
        let range = Range::new(&request.key, &request.range_end);
        let keys: Vec<Bytes> = self.store.live(&range).map(|kv| kv.key.clone()).collect();
        let mut prev_kvs = Vec::new();
        for key in &keys {
            let Some(prev) = self.store.delete(key) else { continue };
            self.lessor.detach(prev.lease, key);
            if request.prev_kv {
                prev_kvs.push(prev);
            }
        }
        DeleteResponse { header: Some(self.header()), deleted: keys.len() as i64, prev_kvs }
    }

    fn txn(
        &mut self,
        now: Duration,
        request: request::TxnRequest,
    ) -> Result<response::TxnResponse, Refusal> {
        txn::check(&request)?;
        if request.is_write() {
            self.propose();
        } else {
            self.ids.next();
        }
        let response = self.execute_txn(request)?;
        self.commit(now, Cause::Txn);
        Ok(response)
    }

    fn compact(&mut self, revision: i64) -> Result<CompactionResponse, Refusal> {
        self.propose();
        self.store.compact(revision)?;
        Ok(CompactionResponse { header: Some(self.header()) })
    }

    /// The owner of a lock: key and lease of the live key of least create revision directly under
    /// `name/`.
    pub(crate) fn owner(&self, name: &str) -> Option<(String, i64)> {
        let prefix = format!("{name}/");
        let range = Range::new(prefix.as_bytes(), &range::prefix_end(prefix.as_bytes()));
        let owner = self.store.live(&range).min_by_key(|kv| kv.create_revision)?;
        Some((String::from_utf8_lossy(&owner.key).into_owned(), owner.lease))
    }
}

/// Leases.
impl Model {
    fn grant(&mut self, now: Duration, ttl_s: i64, id: i64) -> Result<LeaseGrantResponse, Refusal> {
        let id = if id == 0 { self.ids.next_lease() } else { id };
        self.propose();
        let ttl = self.lessor.grant(now, id, ttl_s)?;
        self.lease_event(now, id, LeaseChange::Granted { ttl_s: ttl });
        let error = String::new();
        Ok(LeaseGrantResponse { header: Some(self.header()), id, ttl, error })
    }

    /// Revokes a lease on request.
    pub(crate) fn revoke(
        &mut self,
        now: Duration,
        id: i64,
    ) -> Result<LeaseRevokeResponse, Refusal> {
        self.propose();
        self.end_lease(now, id, LeaseChange::Revoked, Cause::Revoke(id))?;
        Ok(LeaseRevokeResponse { header: Some(self.header()) })
    }

    /// Revokes the leases that have run out, each in a revision of its own. To be called every
    /// 500 ms (`revokeExpiredLeases` in `lessor.go`).
    pub(crate) fn expire(&mut self, now: Duration) {
        for id in self.lessor.run_out(now) {
            self.propose();
            let ended = self.end_lease(now, id, LeaseChange::Expired, Cause::Expiry(id));
            debug_assert!(ended.is_ok(), "a lease that has run out is known");
        }
    }

    /// Deletes the keys of a lease, sorted, in one revision (none if there are no keys), and tells
    /// the renewals that waited for this.
    fn end_lease(
        &mut self,
        now: Duration,
        id: i64,
        change: LeaseChange,
        cause: Cause,
    ) -> Result<(), Refusal> {
        let lease = self.lessor.remove(id).ok_or(Refusal::LeaseNotFound)?;
        self.lease_event(now, id, change);
        for key in &lease.keys {
            self.store.delete(key);
        }
        self.commit(now, cause);
        for stream in self.waiting.remove(&id).unwrap_or_default() {
            let gone = self.keep_alive_response(id, 0);
            self.send(stream, gone);
        }
        Ok(())
    }

    fn keep_alive(&mut self, now: Duration, stream: StreamId, id: i64) -> Option<Response> {
        match self.lessor.renew(now, id) {
            Renewal::Renewed(ttl_s) => {
                self.lease_event(now, id, LeaseChange::Renewed);
                Some(self.keep_alive_response(id, ttl_s))
            }
            // A dead lease is no error: it is answered with a TTL of 0.
            Renewal::Unknown => Some(self.keep_alive_response(id, 0)),
            Renewal::RunOut => {
                self.waiting.entry(id).or_default().push(stream);
                None
            }
        }
    }

    fn keep_alive_response(&self, id: i64, ttl: i64) -> Response {
        Response::KeepAlive(LeaseKeepAliveResponse { header: Some(self.header()), id, ttl })
    }

    fn time_to_live(&self, now: Duration, id: i64, keys: bool) -> LeaseTimeToLiveResponse {
        let header = Some(self.header());
        let Some(lease) = self.lessor.get(id) else {
            let (ttl, granted_ttl) = (-1, 0);
            return LeaseTimeToLiveResponse { header, id, ttl, granted_ttl, keys: Vec::new() };
        };
        // Whole seconds, cut off; a lease that ran out less than a second ago shows 0.
        let left = lease.expiry.as_nanos() as i128 - now.as_nanos() as i128;
        let ttl = (left / 1_000_000_000) as i64;
        let keys = match keys {
            true => lease.keys.iter().map(|key| key.to_vec()).collect(),
            false => Vec::new(),
        };
        LeaseTimeToLiveResponse { header, id, ttl, granted_ttl: lease.ttl_s, keys }
    }

    fn leases(&self) -> LeaseLeasesResponse {
        let leases = self.lessor.by_expiry().map(|id| LeaseStatus { id }).collect();
        LeaseLeasesResponse { header: Some(self.header()), leases }
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
            version: "3.5.30".to_owned(),
            // What an empty store takes up on a disk; sizes are not modelled.
            db_size: 20 * 1024,
            leader: self.identity.member_id,
            raft_index: self.raft_index.max(1),
            raft_term: self.raft_term,
            errors: Vec::new(),
        }
    }
}
