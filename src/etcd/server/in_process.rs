//! The member without a network: for tests of other models of etcd, and for benches.
//!
//! The same model that [`serve`](super::serve) puts behind a node, called directly: no runtime, no
//! tasks, and a clock that moves only when it is told to. Requests are built with the option types
//! of the client facade, answers and refusals are its response types and its [`Error`]. There is
//! nothing here that could lose a request or answer it twice.

use std::{collections::VecDeque, time::Duration};

use tonic::Status;

use crate::etcd::{
    CompactionResponse, DeleteOptions, DeleteResponse, Error, GetOptions, GetResponse,
    LeaseGrantOptions, LeaseGrantResponse, LeaseKeepAliveResponse, LeaseLeasesResponse,
    LeaseRevokeResponse, LeaseTimeToLiveOptions, LeaseTimeToLiveResponse, PutOptions, PutResponse,
    Txn, TxnResponse, WatchOptions, WatchResponse,
    model::{Model, Output, StreamId, request::Request, response::Response},
};

use super::{EXPIRY_TICK, MemberOptions, MemberState};

/// The one watch stream.
const WATCH: StreamId = (1, 1);
/// The connection of the renewals: each has a stream of its own, as on one of them each would wait
/// for the one before.
const KEEP_ALIVE: u64 = 2;

/// A member that is called directly.
///
/// It starts as an empty store at revision 1 and looks for expired leases every 500 ms of its own
/// time, as a member does.
///
/// ```
/// use std::time::Duration;
/// use leasehold::etcd::{Compare, CompareOp, EventType, PutOptions, Txn, TxnOp, WatchOptions};
/// use leasehold::etcd::server::{InProcess, InProcessMessage};
///
/// # fn main() -> Result<(), leasehold::etcd::Error> {
/// let mut member = InProcess::default();
/// let lease = member.lease_grant(5, None)?.id();
/// let absent = Compare::create_revision("lock/a", CompareOp::Equal, 0);
/// let take = TxnOp::put("lock/a", "", Some(PutOptions::new().with_lease(lease)));
/// assert!(member.txn(Txn::new().when([absent]).and_then([take]))?.succeeded());
///
/// let watcher = member.watch("lock/", Some(WatchOptions::new().with_prefix()))?;
/// member.advance(Duration::from_secs(6));
/// let messages = member.take_messages();
/// let [InProcessMessage::Watch(told)] = &messages[..] else { panic!("{messages:?}") };
/// assert_eq!(told.watch_id(), watcher);
/// assert_eq!(told.events()[0].event_type(), EventType::Delete);
/// assert_eq!(member.get("lock/a", None)?.count(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InProcess {
    model: Model,
    now: Duration,
    next_tick: Duration,
    /// Counts the renewals.
    renewals: u64,
    messages: VecDeque<InProcessMessage>,
}

/// A message that comes on a stream, and not as the answer of a call.
#[derive(Debug, Clone)]
pub enum InProcessMessage {
    /// What a watcher is told.
    Watch(WatchResponse),
    /// The late answer to a renewal: the lease had run out and is now revoked.
    KeepAlive(LeaseKeepAliveResponse),
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new(MemberOptions::default())
    }
}

macro_rules! answer {
    ($answer:expr, $kind:ident) => {
        match $answer? {
            Response::$kind(response) => Ok(response),
            other => Err(unexpected(&other)),
        }
    };
}

impl InProcess {
    /// A member that has just started, at time 0 of its clock.
    pub fn new(options: MemberOptions) -> Self {
        let election_timeout = options.election_timeout;
        let inner = MemberState::new(options).inner.into_inner();
        let mut model = inner.unwrap_or_else(|poisoned| poisoned.into_inner()).model;
        model.start(Duration::ZERO, 0, election_timeout);
        let (now, next_tick, messages) = (Duration::ZERO, EXPIRY_TICK, VecDeque::new());
        InProcess { model, now, next_tick, renewals: 0, messages }
    }

    /// The time of the member's monotonic clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Lets time pass: leases that run out in it are revoked at the member's next look for them.
    pub fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while self.next_tick <= until {
            self.now = self.next_tick;
            self.next_tick += EXPIRY_TICK;
            self.model.expire(self.now);
            self.collect();
        }
        self.now = until;
    }

    /// Takes the messages of the streams that have come so far, in order.
    pub fn take_messages(&mut self) -> Vec<InProcessMessage> {
        self.messages.drain(..).collect()
    }

    /// How many past and present states of keys the member keeps: after a compaction of everything
    /// as many as there are keys. A deletion counts as a state until it is compacted away.
    pub fn history_len(&self) -> usize {
        self.model.history_len()
    }

    /// How many events the member keeps, for watchers from a past revision: after a compaction at
    /// the current revision only those of that revision.
    pub fn events_len(&self) -> usize {
        self.model.events_len()
    }

    /// Puts a key, as [`KvClient::put`](crate::etcd::KvClient::put).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message.
    pub fn put(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        options: Option<PutOptions>,
    ) -> Result<PutResponse, Error> {
        let request = options.unwrap_or_default().into_request(key.into(), value.into());
        answer!(self.call(Request::Put(request)), Put)
    }

    /// Gets keys, as [`KvClient::get`](crate::etcd::KvClient::get).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message.
    pub fn get(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<GetOptions>,
    ) -> Result<GetResponse, Error> {
        let request = options.unwrap_or_default().into_request(key.into());
        answer!(self.call(Request::Range(request)), Range)
    }

    /// Deletes keys, as [`KvClient::delete`](crate::etcd::KvClient::delete).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message.
    pub fn delete(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<DeleteOptions>,
    ) -> Result<DeleteResponse, Error> {
        let request = options.unwrap_or_default().into_request(key.into());
        answer!(self.call(Request::DeleteRange(request)), DeleteRange)
    }

    /// Executes a transaction, as [`KvClient::txn`](crate::etcd::KvClient::txn).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message; then it had no effect at all.
    pub fn txn(&mut self, txn: Txn) -> Result<TxnResponse, Error> {
        answer!(self.call(Request::Txn(txn.into_request())), Txn)
    }

    /// Forgets the history before a revision, as
    /// [`KvClient::compact`](crate::etcd::KvClient::compact).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message.
    pub fn compact(&mut self, revision: i64) -> Result<CompactionResponse, Error> {
        answer!(self.call(Request::Compact(revision)), Compact)
    }

    /// Grants a lease of `ttl` seconds, as [`LeaseClient::grant`](crate::etcd::LeaseClient::grant).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message.
    pub fn lease_grant(
        &mut self,
        ttl: i64,
        options: Option<LeaseGrantOptions>,
    ) -> Result<LeaseGrantResponse, Error> {
        let id = options.unwrap_or_default().id();
        answer!(self.call(Request::LeaseGrant { ttl_s: ttl, id }), LeaseGrant)
    }

    /// Revokes a lease, as [`LeaseClient::revoke`](crate::etcd::LeaseClient::revoke).
    ///
    /// # Errors
    /// A refusal, with etcd's code and message.
    pub fn lease_revoke(&mut self, id: i64) -> Result<LeaseRevokeResponse, Error> {
        answer!(self.call(Request::LeaseRevoke(id)), LeaseRevoke)
    }

    /// Renews a lease; a dead one is answered with TTL 0. None: the lease has run out and is not
    /// revoked yet, then the answer comes as a message.
    ///
    /// # Errors
    /// None that etcd gives.
    pub fn lease_keep_alive(&mut self, id: i64) -> Result<Option<LeaseKeepAliveResponse>, Error> {
        self.renewals += 1;
        let stream = (KEEP_ALIVE, self.renewals);
        let answer = self.model.handle(self.now, stream, Request::KeepAlive(id));
        self.collect();
        match answer.transpose().map_err(refused)? {
            None => Ok(None),
            Some(Response::KeepAlive(response)) => Ok(Some(response)),
            Some(other) => Err(unexpected(&other)),
        }
    }

    /// The time left to a lease, as
    /// [`LeaseClient::time_to_live`](crate::etcd::LeaseClient::time_to_live).
    ///
    /// # Errors
    /// None that etcd gives: the TTL of an unknown lease is -1.
    pub fn lease_time_to_live(
        &mut self,
        id: i64,
        options: Option<LeaseTimeToLiveOptions>,
    ) -> Result<LeaseTimeToLiveResponse, Error> {
        let keys = options.unwrap_or_default().keys();
        answer!(self.call(Request::LeaseTimeToLive { id, keys }), LeaseTimeToLive)
    }

    /// All leases, as [`LeaseClient::leases`](crate::etcd::LeaseClient::leases).
    ///
    /// # Errors
    /// None that etcd gives.
    pub fn leases(&mut self) -> Result<LeaseLeasesResponse, Error> {
        answer!(self.call(Request::Leases), Leases)
    }

    /// Makes a watcher and gives its id. Whatever it is told comes as messages, that its start is
    /// compacted too.
    ///
    /// # Errors
    /// `WatchError` with etcd's reason if the watcher is refused.
    pub fn watch(
        &mut self,
        key: impl Into<Vec<u8>>,
        options: Option<WatchOptions>,
    ) -> Result<i64, Error> {
        let request = options.unwrap_or_default().into_request(key.into());
        let before = self.messages.len();
        if let Some(answer) = self.model.handle(self.now, WATCH, Request::WatchCreate(request)) {
            answer.map_err(refused)?;
        }
        self.collect();
        let created = self.messages.iter().skip(before).position(
            |message| matches!(message, InProcessMessage::Watch(response) if response.created()),
        );
        match created.and_then(|at| self.messages.remove(before + at)) {
            Some(InProcessMessage::Watch(response)) if response.canceled() => {
                Err(Error::WatchError(response.cancel_reason().to_owned()))
            }
            Some(InProcessMessage::Watch(response)) => Ok(response.watch_id()),
            _ => Err(Error::WatchError("the watcher was not answered".to_owned())),
        }
    }

    /// Ends a watcher; its last message says `canceled`. An unknown one gets no message.
    pub fn cancel_watch(&mut self, watch_id: i64) {
        let answer = self.model.handle(self.now, WATCH, Request::WatchCancel(watch_id));
        debug_assert!(answer.is_none(), "a watch is answered on its stream");
        self.collect();
    }

    fn call(&mut self, request: Request) -> Result<Response, Error> {
        let answer = self.model.handle(self.now, (1, 0), request);
        self.collect();
        match answer {
            Some(answer) => answer.map_err(refused),
            None => Err(Error::Internal("a call was not answered at once".to_owned())),
        }
    }

    fn collect(&mut self) {
        for output in self.model.take_outputs() {
            match output {
                Output::Message(_, Response::Watch(response)) => {
                    self.messages.push_back(InProcessMessage::Watch(response));
                }
                Output::Message(_, Response::KeepAlive(response)) => {
                    self.messages.push_back(InProcessMessage::KeepAlive(response));
                }
                _ => {}
            }
        }
    }
}

fn refused(refusal: impl Into<Status>) -> Error {
    Error::GRpcStatus(refusal.into())
}

fn unexpected(response: &Response) -> Error {
    Error::Internal(format!("the member answered another question: {response:?}"))
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::etcd::{Compare, CompareOp, TxnOp};

    fn revision(member: &mut InProcess) -> i64 {
        let header = member.get("x", None).expect("it can be read").take_header();
        header.expect("there is a header").revision()
    }

    /// Memory grows with the live history only: after a compaction of everything there is one state
    /// for each key, whatever happened before, and nothing of the deleted keys.
    #[test]
    fn compaction_frees_what_cannot_be_read() {
        let mut member = InProcess::default();
        let lease = member.lease_grant(2, None).expect("it is new").id();
        for n in 0..10_000 {
            let on_lease = (n % 7 == 0).then(|| PutOptions::new().with_lease(lease));
            member.put(format!("key/{}", n % 100), n.to_string(), on_lease).expect("a put");
        }
        let prefix = Some(DeleteOptions::new().with_prefix());
        member.delete("key/5", prefix).expect("a delete");
        member.advance(Duration::from_secs(3));
        assert!(member.leases().expect("a list").leases().is_empty(), "the lease has run out");
        assert!(member.history_len() > 10_000 && member.events_len() > 10_000);

        let keys =
            member.get("key/", Some(GetOptions::new().with_prefix())).expect("a get").count();
        assert!(keys > 0 && keys < 90);
        for _ in 0..2 {
            let now = revision(&mut member);
            member.compact(now).expect("a new revision");
            assert_eq!(member.history_len(), keys as usize);
            assert!(member.events_len() <= 100, "those of one revision");
            // A key that lives on keeps one state, over any number of rounds.
            for n in 0..1_000 {
                member.put("key/1", n.to_string(), None).expect("a put");
            }
            assert_eq!(member.history_len(), keys as usize + 1_000);
        }
    }

    /// A refusal has etcd's code and message, and leaves no trace.
    #[test]
    fn refusals_are_those_of_etcd() {
        let mut member = InProcess::default();
        let options = Some(PutOptions::new().with_lease(77));
        let Err(Error::GRpcStatus(status)) = member.put("key", "value", options) else {
            panic!("there is no such lease");
        };
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "etcdserver: requested lease not found");
        assert_eq!(revision(&mut member), 1);
        let empty = member.watch("b", Some(WatchOptions::new().with_range("a")));
        assert!(matches!(empty, Err(Error::WatchError(_))), "{empty:?}");
    }

    /// The first message of a watcher of the past is its history, and a cancelled one says so.
    #[test]
    fn watchers_are_told_in_messages() {
        let mut member = InProcess::default();
        let absent = Compare::version("key", CompareOp::Equal, 0);
        let txn = Txn::new().when([absent]).and_then([TxnOp::put("key", "value", None)]);
        assert!(member.txn(txn).expect("a txn").succeeded());
        let watcher = member.watch("key", Some(WatchOptions::new().with_start_revision(1)));
        let watcher = watcher.expect("it is a key");
        member.advance(Duration::from_secs(1));
        let messages = member.take_messages();
        let [InProcessMessage::Watch(past)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((past.watch_id(), past.events().len()), (watcher, 1));
        member.cancel_watch(watcher);
        let messages = member.take_messages();
        let [InProcessMessage::Watch(end)] = &messages[..] else { panic!("{messages:?}") };
        assert!(end.canceled());
        member.put("key", "again", None).expect("a put");
        assert!(member.take_messages().is_empty());
    }

    /// A renewal of a lease that has run out is answered when it is revoked, with TTL 0.
    #[test]
    fn a_late_renewal_is_answered_in_a_message() {
        let mut member = InProcess::default();
        member.advance(Duration::from_millis(100));
        let lease = member.lease_grant(2, None).expect("it is new").id();
        assert_eq!(member.lease_keep_alive(lease).expect("known").map(|a| a.ttl()), Some(2));
        member.advance(Duration::from_millis(2_100));
        assert!(member.lease_keep_alive(lease).expect("known").is_none());
        member.advance(Duration::from_secs(1));
        let messages = member.take_messages();
        let [InProcessMessage::KeepAlive(answer)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!((answer.id(), answer.ttl()), (lease, 0));
        let gone = member.lease_time_to_live(lease, None).expect("an answer");
        assert_eq!(gone.ttl(), -1);
    }
}
