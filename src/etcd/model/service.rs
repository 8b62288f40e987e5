//! What the lock and the election service share: sessions, places in a queue, calls that wait.
//!
//! Both services are clients of the member that runs them (`client/v3/concurrency`); each of their
//! requests is made here as they make it, so ids and proposals count as in etcd. A waiting call is
//! state of the member and not a task: it is looked at after each commit that deletes the key it
//! waits for. If one commit wakes several calls, they go on in the order of their create revisions,
//! then of their streams. Left out: the renewal that a session could send in the instant before the
//! service orphans it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;

use super::{
    Answer, Model, Output, StreamId,
    error::Refusal,
    range::prefix_end,
    request::{
        Compare, CompareOp, CompareTarget, DeleteRangeRequest, Enumerated, PutRequest,
        RangeRequest, RequestOp, SortOrder, SortTarget, TxnRequest,
    },
    response::{CampaignResponse, Event, EventType, KeyValue, Response, TxnOpResponse},
};

/// The TTL of the lease of a call without one (`defaultSessionTTL` in `session.go`).
const SESSION_TTL_S: i64 = 60;

/// A place in the queue of a name.
#[derive(Debug)]
pub(super) struct Place {
    /// The name and a slash: whatever key begins with it takes part in the queue.
    pub(super) prefix: Vec<u8>,
    /// The call's own key; another call with its lease may share it.
    pub(super) key: Vec<u8>,
    /// The create revision of the key when it was looked at.
    pub(super) revision: i64,
}

/// What a call waits for its turn for.
#[derive(Debug)]
pub(super) enum Purpose {
    Lock,
    /// With its answer: nothing in it depends on how the wait ends.
    Campaign(CampaignResponse),
}

/// A call that waits.
#[derive(Debug)]
struct Call {
    place: Place,
    purpose: Purpose,
    /// The key whose deletion it waits for.
    awaited: Bytes,
}

/// The calls that wait, over all connections.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: BTreeMap<StreamId, Call>,
    by_awaited: BTreeMap<Bytes, BTreeSet<(i64, StreamId)>>,
}

impl Calls {
    fn insert(&mut self, stream: StreamId, call: Call) {
        // A request that was delivered twice waits once.
        self.remove(stream);
        let awaiting = self.by_awaited.entry(call.awaited.clone()).or_default();
        awaiting.insert((call.place.revision, stream));
        self.all.insert(stream, call);
    }

    fn remove(&mut self, stream: StreamId) -> Option<Call> {
        let call = self.all.remove(&stream)?;
        if let Some(awaiting) = self.by_awaited.get_mut(&call.awaited) {
            awaiting.remove(&(call.place.revision, stream));
            if awaiting.is_empty() {
                self.by_awaited.remove(&call.awaited);
            }
        }
        Some(call)
    }

    /// The calls of a connection, in the order in which it made them.
    fn of_connection(&self, connection: u64) -> Vec<StreamId> {
        let streams = (connection, 0)..=(connection, u64::MAX);
        self.all.range(streams).map(|(stream, _)| *stream).collect()
    }
}

/// The prefix of a name and the key that a lease has under it. A negative id is written with a
/// sign, as Go's `%x` does.
pub(super) fn key_of(name: &[u8], lease: i64) -> (Vec<u8>, Vec<u8>) {
    let prefix = [name, b"/"].concat();
    let sign = if lease < 0 { "-" } else { "" };
    let own = format!("{sign}{:x}", lease.unsigned_abs());
    let key = [&prefix[..], own.as_bytes()].concat();
    (prefix, key)
}

/// The key of least create revision under a prefix: who holds the lock, who leads.
pub(super) fn first_created(prefix: &[u8]) -> RangeRequest {
    RangeRequest {
        key: prefix.to_vec(),
        range_end: prefix_end(prefix),
        limit: 1,
        sort_order: Enumerated::Known(SortOrder::Ascend),
        sort_target: Enumerated::Known(SortTarget::Create),
        ..RangeRequest::default()
    }
}

pub(super) fn of_key(key: &[u8]) -> RangeRequest {
    RangeRequest { key: key.to_vec(), ..RangeRequest::default() }
}

/// A transaction on the condition that the key was created in this revision; 0 is: does not exist.
pub(super) fn if_created_at(
    key: &[u8],
    revision: i64,
    success: Vec<RequestOp>,
    failure: Vec<RequestOp>,
) -> TxnRequest {
    let (key, range_end) = (key.to_vec(), Vec::new());
    let op = Enumerated::Known(CompareOp::Equal);
    let target = CompareTarget::Create(revision);
    TxnRequest { compare: vec![Compare { key, range_end, op, target }], success, failure }
}

pub(super) fn put(key: &[u8], value: Vec<u8>, lease: i64) -> RequestOp {
    RequestOp::Put(PutRequest { key: key.to_vec(), value, lease, ..PutRequest::default() })
}

pub(super) fn delete(key: &[u8]) -> DeleteRangeRequest {
    DeleteRangeRequest { key: key.to_vec(), ..DeleteRangeRequest::default() }
}

/// The first pair of an answer to a get inside a transaction.
pub(super) fn first_pair(response: Option<&TxnOpResponse>) -> Option<&KeyValue> {
    match response {
        Some(TxnOpResponse::Get(get)) => get.kvs.first(),
        _ => None,
    }
}

impl Model {
    /// The lease of a call: its own, which nobody looks for here, or a new one that nobody renews
    /// and that outlives the call (`NewSession` and `Orphan` in `session.go`).
    pub(super) fn session(&mut self, now: Duration, lease: i64) -> Result<i64, Refusal> {
        match lease {
            0 => Ok(self.grant(now, SESSION_TTL_S, 0)?.id),
            lease => Ok(lease),
        }
    }

    /// Answers the call if nothing is before it, else lets it wait for the last key that is
    /// (`waitDeletes` in `key.go`).
    pub(super) fn take_turn(
        &mut self,
        stream: StreamId,
        place: Place,
        purpose: Purpose,
    ) -> Option<Answer> {
        let before = RangeRequest {
            sort_order: Enumerated::Known(SortOrder::Descend),
            max_create_revision: place.revision - 1,
            ..first_created(&place.prefix)
        };
        let found = match self.range(&before) {
            Ok(found) => found,
            Err(refusal) => return Some(Err(refusal.in_service())),
        };
        if let Some(last) = found.kvs.into_iter().next() {
            self.calls.insert(stream, Call { place, purpose, awaited: last.key });
            return None;
        }
        Some(match purpose {
            Purpose::Lock => self.after_waiting(place, found.header).map(Response::Lock),
            Purpose::Campaign(response) => Ok(Response::Campaign(response)),
        })
    }

    /// Looks at the calls that waited for what has just been deleted.
    pub(super) fn wake(&mut self, events: &[Event]) {
        if self.calls.all.is_empty() {
            return;
        }
        let mut woken = BTreeSet::new();
        for event in events.iter().filter(|event| event.event_type == EventType::Delete) {
            woken.extend(self.calls.by_awaited.remove(&event.kv.key).unwrap_or_default());
        }
        for (_, stream) in woken {
            let Some(Call { place, purpose, .. }) = self.calls.all.remove(&stream) else {
                continue;
            };
            if let Some(answer) = self.take_turn(stream, place, purpose) {
                self.outputs.push(Output::Answer(stream, answer));
            }
        }
    }

    /// The client has given up a call. One that has been answered stays as it is: what it got is
    /// still there.
    pub(super) fn cancel(&mut self, now: Duration, stream: StreamId) {
        if let Some(call) = self.calls.remove(stream) {
            self.clean_up(now, call);
        }
    }

    /// A connection is over: all its calls are given up at once, and cleaned up after in the order
    /// in which they were made.
    pub(crate) fn cancel_all(&mut self, now: Duration, connection: u64) {
        let streams = self.calls.of_connection(connection);
        let calls: Vec<Call> =
            streams.into_iter().filter_map(|stream| self.calls.remove(stream)).collect();
        for call in calls {
            self.clean_up(now, call);
        }
    }

    /// Takes the key of a call away: a lock deletes it, whoever may have created it anew since; a
    /// campaign deletes only what it had found. Nobody is left who could be told of a failure.
    fn clean_up(&mut self, now: Duration, call: Call) {
        let Place { key, revision, .. } = call.place;
        let _ = match call.purpose {
            Purpose::Lock => self.delete_range(now, &delete(&key)).map(|_| ()),
            Purpose::Campaign(_) => self.delete_created_at(now, &key, revision).map(|_| ()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        super::{Answer, Identity, Model, Output, StreamId, request::Request},
        delete,
    };
    use crate::etcd::model::{
        error::Refusal,
        request::PutRequest,
        response::{CampaignResponse, LeaderKey, LockResponse, Response},
    };

    const NOW: Duration = Duration::from_secs(10);

    fn model() -> Model {
        let mut model = Model::new(Identity::default());
        model.start(NOW, 1_000_000, Duration::ZERO);
        for id in 1..=9 {
            ask(&mut model, 1, Request::LeaseGrant { ttl_s: 60, id });
        }
        model
    }

    fn ask(model: &mut Model, call: u64, request: Request) -> Option<Answer> {
        model.handle(NOW, (1, call), request)
    }

    fn lock(lease: i64) -> Request {
        Request::Lock { name: b"l".to_vec(), lease }
    }

    fn woken(model: &mut Model) -> Vec<StreamId> {
        let outputs = model.take_outputs().into_iter();
        outputs
            .filter_map(|o| if let Output::Answer(call, _) = o { Some(call) } else { None })
            .collect()
    }

    /// How many ids the member has used for what `act` does.
    fn ids(model: &mut Model, act: impl FnOnce(&mut Model)) -> u64 {
        let before = model.ids.next();
        act(model);
        model.ids.next() - before - 1
    }

    /// M10: there is no gap between looking at the predecessor and waiting for its end, and no
    /// polling: what does not concern the call costs no read, its turn one.
    #[test]
    fn m10_one_read_for_each_predecessor() {
        let mut model = model();
        assert_eq!(ids(&mut model, |m| assert!(ask(m, 1, lock(1)).is_some())), 1);
        assert_eq!(ids(&mut model, |m| assert!(ask(m, 2, lock(2)).is_none())), 2);
        let unrelated = |m: &mut Model| {
            for key in ["a", "l", "l/1", "l/9"] {
                let put = PutRequest { key: key.into(), ..PutRequest::default() };
                ask(m, 3, Request::Put(put));
            }
        };
        assert_eq!(ids(&mut model, unrelated), 4);
        let unlock = |m: &mut Model| drop(ask(m, 1, Request::Unlock(b"l/1".to_vec())));
        // The deletion, the look for another predecessor, the look at the own key.
        assert_eq!(ids(&mut model, unlock), 3);
        assert_eq!(woken(&mut model), [(1, 2)]);
    }

    /// A session without a lease and a clean-up after a campaign count as etcd's own requests do.
    #[test]
    fn requests_inside_a_service_count() {
        let mut model = model();
        let campaign = |lease| Request::Campaign { name: b"e".to_vec(), value: vec![1], lease };
        // The id of the lease, the grant, the transaction, the look for a predecessor.
        let asked = ids(&mut model, |m| {
            let Some(Ok(Response::Campaign(CampaignResponse { leader, .. }))) =
                ask(m, 1, campaign(0))
            else {
                panic!("it leads at once")
            };
            assert!(leader.is_some_and(|leader| leader.lease > 9));
        });
        assert_eq!(asked, 4);
        assert!(ask(&mut model, 2, campaign(2)).is_none());
        let (index, revision) = (model.raft_index, model.store.revision());
        ask(&mut model, 2, Request::Cancel);
        assert_eq!((model.raft_index, model.store.revision()), (index + 1, revision + 1));
        ask(&mut model, 2, Request::Cancel);
        assert_eq!(model.raft_index, index + 1, "there is nothing left to give up");
    }

    /// Calls that one commit wakes go on in the order of the queue, whatever their numbers.
    #[test]
    fn woken_calls_go_on_in_the_order_of_the_queue() {
        let mut model = model();
        ask(&mut model, 1, lock(1));
        ask(&mut model, 9, lock(2));
        ask(&mut model, 5, lock(3));
        // A call that shares a key with another is at the same place.
        ask(&mut model, 4, lock(2));
        // One that is delivered twice is answered once.
        ask(&mut model, 4, lock(2));
        for key in ["l/2", "l/3"] {
            ask(&mut model, 1, Request::Unlock(key.into()));
        }
        assert_eq!(woken(&mut model), []);
        ask(&mut model, 1, Request::Unlock(b"l/1".to_vec()));
        assert_eq!(woken(&mut model), [(1, 4), (1, 9), (1, 5)]);
    }

    /// A lost connection takes all its calls out of the queue before any of them could be granted.
    #[test]
    fn a_lost_connection_gets_nothing() {
        let mut model = model();
        ask(&mut model, 1, lock(1));
        model.handle(NOW, (2, 1), lock(2));
        model.handle(NOW, (2, 2), lock(3));
        model.handle(NOW, (3, 1), lock(4));
        model.cancel_all(NOW, 2);
        assert_eq!(woken(&mut model), []);
        ask(&mut model, 1, Request::Unlock(b"l/1".to_vec()));
        assert_eq!(woken(&mut model), [(3, 1)]);
        let again = ask(&mut model, 7, lock(4));
        let Some(Ok(Response::Lock(LockResponse { key, .. }))) = again else {
            panic!("it holds the lock")
        };
        assert_eq!(key, b"l/4");
    }

    /// In a queue of several each waits for the one right before it: an unlock costs one look of
    /// one call, however many wait.
    #[test]
    fn each_waits_for_its_own_predecessor() {
        let mut model = model();
        ask(&mut model, 1, lock(1));
        for call in 2..=4 {
            let lease = call as i64;
            assert_eq!(ids(&mut model, |m| assert!(ask(m, call, lock(lease)).is_none())), 2);
        }
        for (owner, next) in [("l/1", 2), ("l/2", 3), ("l/3", 4)] {
            // The deletion, the look for another predecessor, the look at the own key.
            let unlock = |m: &mut Model| drop(ask(m, 1, Request::Unlock(owner.into())));
            assert_eq!(ids(&mut model, unlock), 3, "{owner}");
            assert_eq!(woken(&mut model), [(1, next)]);
        }
    }

    /// A campaign that is given up leaves a key alone that is not the one it had found, and a lock
    /// does not look.
    #[test]
    fn a_cancelled_campaign_spares_a_key_created_anew() {
        let mut model = model();
        let campaign = |lease| Request::Campaign { name: b"e".to_vec(), value: vec![1], lease };
        assert!(ask(&mut model, 1, campaign(1)).is_some());
        assert!(ask(&mut model, 2, campaign(2)).is_none());
        assert!(ask(&mut model, 3, lock(1)).is_some());
        assert!(ask(&mut model, 4, lock(2)).is_none());
        for key in ["e/2", "l/2"] {
            ask(&mut model, 5, Request::DeleteRange(delete(key.as_bytes())));
            let put = PutRequest { key: key.into(), ..PutRequest::default() };
            ask(&mut model, 5, Request::Put(put));
        }
        ask(&mut model, 2, Request::Cancel);
        ask(&mut model, 4, Request::Cancel);
        assert!(model.store.get(b"e/2").is_some() && model.store.get(b"l/2").is_none());
    }

    /// A campaign again that cannot proclaim its value resigns: the key is gone, if it is the one
    /// that was found.
    #[test]
    fn a_failed_second_campaign_resigns() {
        let mut model = model();
        let put = PutRequest { key: "e/4d".into(), ..PutRequest::default() };
        ask(&mut model, 1, Request::Put(put));
        let campaign = Request::Campaign { name: b"e".to_vec(), value: vec![1], lease: 0x4d };
        let refused = ask(&mut model, 2, campaign).expect("at once").expect_err("no such lease");
        assert_eq!(refused, Refusal::LeaseNotFound.in_service());
        assert!(model.store.get(b"e/4d").is_none());
    }

    /// Whoever resigns without a lease gets one all the same, which outlives the call.
    #[test]
    fn a_resignation_without_a_lease_grants_one() {
        let mut model = model();
        let campaign = Request::Campaign { name: b"e".to_vec(), value: vec![1], lease: 1 };
        let Some(Ok(Response::Campaign(won))) = ask(&mut model, 1, campaign) else {
            panic!("it leads at once")
        };
        let leader = won.leader.map(|leader| LeaderKey { lease: 0, ..leader });
        let before = model.leases().leases.len();
        // The id of the lease, the grant, the transaction.
        let resign = |m: &mut Model| drop(ask(m, 1, Request::Resign(leader)));
        assert_eq!(ids(&mut model, resign), 3);
        assert_eq!(model.leases().leases.len(), before + 1);
        assert!(model.store.get(b"e/1").is_none());
    }
}
