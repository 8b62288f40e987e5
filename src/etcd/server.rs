//! A member on a simulated node: connections, the look for expired leases, what survives a kill.
//!
//! The shell around the model is thin: it reads the member's clock, hands requests in and messages
//! out. [`MemberState`] is what is durable (a real member writes it to its disk before it answers);
//! connections and streams belong to the tasks of the node and end with them. Durable is whatever
//! was applied, answered or not: the loss of unsynced writes of a disk is not modelled.

mod in_process;
mod leader;
mod outside;
mod request_fault;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    history::{Commit, LeaseChange, LeaseEvent},
    net::{MessageListener, MessageSender, MessageStream},
    time::{sim::LocalClock, sleep, wall_ms},
};

use self::{
    leader::Leaderless,
    outside::{Compacting, LostRenewals},
    request_fault::RequestFaults,
};
use super::{
    model::{Answer, Identity, Model, Output, StreamId, request::Request},
    protocol::{ClientMessage, ServerMessage},
    quirk::{PROMOTE_EVERY, Quirk, Quirks},
};

pub use self::in_process::{InProcess, InProcessMessage};
pub use self::outside::LossId;
pub use self::request_fault::{Harm, RequestFault, RequestFaultId, RequestKind};
pub use super::model::version::{EtcdVersion, UnknownVersion};

/// How often a member looks for expired leases (`runLoop` in `server/lease/lessor.go`).
const EXPIRY_TICK: Duration = Duration::from_millis(500);

/// Told what the member did, at the moment it does it: truth, and not anybody's opinion.
pub trait CommitLog: Send + Sync {
    /// A revision of the store.
    fn committed(&self, commit: &Commit);
    /// A lease was granted or renewed, or it ended.
    fn lease(&self, event: &LeaseEvent);
}

/// Keeps no log.
impl CommitLog for () {
    fn committed(&self, _: &Commit) {}
    fn lease(&self, _: &LeaseEvent) {}
}

/// Who the member is and how it behaves.
#[derive(Debug, Clone)]
pub struct MemberOptions {
    /// Its name in the member list.
    pub name: String,
    /// Where it listens for clients: `IP:PORT` of its node.
    pub address: String,
    /// Its id; the last two bytes are the first two of the lease ids that it chooses.
    pub member_id: u64,
    /// The id of its cluster.
    pub cluster_id: u64,
    /// The pulse of the cluster. An election time-out counts in whole heartbeats.
    pub heartbeat: Duration,
    /// Leases live longer by this after a restart, and none is granted for less than one and a
    /// half of it, in whole seconds rounded up.
    pub election_timeout: Duration,
    /// Historic bugs that it has.
    pub quirks: BTreeSet<Quirk>,
    /// The etcd that it behaves as.
    pub version: EtcdVersion,
}

impl Default for MemberOptions {
    fn default() -> Self {
        let Identity { cluster_id, member_id, name, version, .. } = Identity::default();
        MemberOptions {
            name,
            address: "10.0.0.1:2379".to_owned(),
            member_id,
            cluster_id,
            heartbeat: Duration::from_millis(100),
            election_timeout: Duration::from_secs(1),
            quirks: BTreeSet::new(),
            version,
        }
    }
}

impl MemberOptions {
    /// Heartbeats of an election time-out (`ElectionTicks`): the rest of a heartbeat is cut off.
    fn election_ticks(&self) -> u32 {
        let ticks = self.election_timeout.as_nanos() / self.heartbeat.as_nanos().max(1);
        u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
    }

    /// The election time-out in whole heartbeats (`ElectionTimeout` in `config/config.go`).
    fn election(&self) -> Duration {
        self.heartbeat.saturating_mul(self.election_ticks())
    }

    /// The shortest TTL that is granted, in seconds (`minTTL` in `etcdserver/server.go`).
    fn ttl_min_s(&self) -> i64 {
        let ticks = self.election_ticks().saturating_mul(3) / 2;
        let least = self.heartbeat.saturating_mul(ticks);
        least.as_nanos().div_ceil(1_000_000_000).max(1) as i64
    }
}

/// What a member keeps over a kill: the store and the leases. The harness holds it.
pub struct MemberState {
    options: MemberOptions,
    inner: Mutex<Inner>,
    leader_lost: Notify,
}

struct Inner {
    model: Model,
    /// The process that serves, while it lives.
    process: Weak<Process>,
    connections: BTreeMap<u64, Weak<MessageSender>>,
    next_connection: u64,
    requests: u64,
    faults: RequestFaults,
    lost_renewals: LostRenewals,
    compacting: Compacting,
    /// What waits while nobody leads.
    leaderless: Option<Leaderless>,
    /// Open streams that insist on a leader.
    strict_streams: BTreeSet<StreamId>,
    /// Streams that the member has ended; what the client still sends on one is dropped.
    broken_streams: BTreeSet<StreamId>,
}

/// One life of the member's process; its tasks own it.
struct Process {
    /// The member's monotonic clock.
    clock: LocalClock,
    log: Arc<dyn CommitLog>,
}

impl Process {
    /// Every lease starts anew: told before anything that follows from it.
    fn note_promotion(&self, extend: Duration) {
        let change = LeaseChange::Promoted { extend_ms: extend.as_millis() as u64 };
        let member_ns = self.clock.now().as_nanos() as u64;
        self.log.lease(&LeaseEvent { lease: 0, change, member_ns });
    }
}

impl fmt::Debug for MemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberState").field("requests", &self.requests()).finish_non_exhaustive()
    }
}

impl MemberState {
    /// An empty store at revision 1.
    pub fn new(options: MemberOptions) -> Self {
        let identity = Identity {
            cluster_id: options.cluster_id,
            member_id: options.member_id,
            name: options.name.clone(),
            client_url: format!("http://{}", options.address),
            version: options.version,
        };
        let mut model = Model::new(identity);
        model.configure(options.ttl_min_s(), Quirks::new(&options.quirks));
        let inner = Inner {
            model,
            process: Weak::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            requests: 0,
            faults: RequestFaults::default(),
            lost_renewals: LostRenewals::default(),
            compacting: Compacting::default(),
            leaderless: None,
            strict_streams: BTreeSet::new(),
            broken_streams: BTreeSet::new(),
        };
        MemberState { options, inner: Mutex::new(inner), leader_lost: Notify::new() }
    }

    /// The member's id.
    pub fn member_id(&self) -> u64 {
        self.options.member_id
    }

    /// How many requests the member has answered, over all its lives.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// How often a quirk of the member had an effect, over all its lives.
    pub fn quirk_effects(&self, quirk: Quirk) -> u64 {
        self.lock().model.quirks_mut().effects(quirk)
    }

    /// Key and lease of the owner of a lock: the key of least create revision directly under
    /// `name/`. The lease is 0 if the key has none.
    pub fn owner(&self, name: &str) -> Option<(String, i64)> {
        self.lock().model.owner(name)
    }

    /// Revokes a lease from outside, as an operator would. False if there is no such lease, or no
    /// process that could do it.
    pub fn revoke(&self, lease: i64) -> bool {
        let mut inner = self.lock();
        let Some(process) = inner.process.upgrade() else { return false };
        let revoked = inner.model.revoke(process.clock.now(), lease).is_ok();
        inner.pass_on(&process);
        revoked
    }

    /// How much is kept for open streams.
    #[cfg(test)]
    pub(super) fn stream_state_len(&self) -> usize {
        self.lock().model.stream_state_len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn start(&self, process: &Arc<Process>) {
        let mut inner = self.lock();
        inner.process = Arc::downgrade(process);
        inner.connections.clear();
        inner.leaderless = None;
        inner.strict_streams.clear();
        inner.broken_streams.clear();
        inner.model.start(process.clock.now(), wall_ms(), self.options.election());
        inner.pass_on(process);
        process.note_promotion(self.options.election());
    }

    fn expire(&self, process: &Process) {
        let mut inner = self.lock();
        let now = process.clock.now();
        for id in inner.model.run_out(now) {
            if inner.faults.meet(RequestKind::Expiry) == Some(Harm::Lost) {
                inner.model.postpone(now, id);
            }
        }
        inner.model.expire(now);
        inner.pass_on(process);
    }
}

impl Inner {
    /// Hands on what has followed from the last call of the model, in order.
    fn pass_on(&mut self, process: &Process) {
        self.hand_on(process);
        if self.compact_again(process) {
            self.hand_on(process);
        }
    }

    fn hand_on(&mut self, process: &Process) {
        for output in self.model.take_outputs() {
            match output {
                Output::Commit(commit) => {
                    tracing::debug!(revision = commit.revision, cause = ?commit.cause, "committed");
                    process.log.committed(&commit);
                }
                Output::Lease(event) => {
                    tracing::debug!(lease = event.lease, change = ?event.change, "lease");
                    process.log.lease(&event);
                }
                Output::Message(stream, response) => self.send(stream, Ok(response)),
                Output::Answer(call, answer) => self.send(call, answer),
            }
        }
    }

    fn send(&self, (connection, id): StreamId, answer: Answer) {
        let sender = self.connections.get(&connection).and_then(Weak::upgrade);
        if let Some(sender) = sender {
            // A peer that is gone is noticed where its connection is read.
            let _ = sender.send(ServerMessage { id, answer });
        }
    }

    fn handle(&mut self, process: &Process, from: StreamId, request: Request) -> Option<Answer> {
        self.requests += 1;
        let answer = self.model.handle(process.clock.now(), from, request);
        self.pass_on(process);
        answer
    }
}

/// Serves on the current node until the node is killed. The state outlives it.
///
/// # Errors
/// If the address cannot be listened on, or listening ends.
pub async fn serve(state: Arc<MemberState>, log: Arc<dyn CommitLog>) -> io::Result<()> {
    let listener = MessageListener::bind(&state.options.address).await?;
    let process = Arc::new(Process { clock: LocalClock::here(), log });
    state.start(&process);
    tracing::info!(address = %state.options.address, "member serves");
    tokio::spawn(expire(state.clone(), process.clone()));
    tokio::spawn(leader::monitor(state.clone(), process.clone()));
    if state.options.quirks.contains(&Quirk::Promote) {
        tokio::spawn(promote_for_ever(state.clone()));
    }
    loop {
        let stream = listener.accept().await?;
        tokio::spawn(serve_connection(state.clone(), process.clone(), stream));
    }
}

async fn expire(state: Arc<MemberState>, process: Arc<Process>) {
    loop {
        sleep(EXPIRY_TICK).await;
        state.expire(&process);
    }
}

async fn promote_for_ever(state: Arc<MemberState>) {
    loop {
        sleep(PROMOTE_EVERY).await;
        if state.promote() {
            state.lock().model.quirks_mut().count(Quirk::Promote, 1);
        }
    }
}

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Broken,
}

/// One connection: its end closes its streams.
struct Connection {
    state: Arc<MemberState>,
    id: u64,
    sender: Arc<MessageSender>,
    streams: BTreeSet<u64>,
}

impl Connection {
    fn open(state: Arc<MemberState>, sender: MessageSender) -> Self {
        let sender = Arc::new(sender);
        let mut inner = state.lock();
        inner.next_connection += 1;
        let id = inner.next_connection;
        inner.connections.insert(id, Arc::downgrade(&sender));
        drop(inner);
        Connection { state, id, sender, streams: BTreeSet::new() }
    }

    fn handle(&mut self, process: &Process, message: ClientMessage) -> Goes {
        let state = self.state.clone();
        let mut inner = state.lock();
        if let Request::KeepAlive(lease) = message.request
            && inner.lost_renewals.meets(lease)
        {
            return Goes::On;
        }
        let (id, harm) = (message.id, inner.faults.meet(RequestKind::of(&message.request)));
        let answer = match harm {
            Some(Harm::Lost) => return Goes::Broken,
            Some(Harm::ReplyLost) => {
                // Nothing that follows from the request gets out on this connection either.
                inner.connections.remove(&self.id);
                self.take(&mut inner, process, message);
                return Goes::Broken;
            }
            // There is no resending the end of a stream.
            Some(Harm::Twice) if !matches!(message.request, Request::CloseStream) => {
                // The first answer of a call is lost, on a stream it is not; see `Harm::Twice`.
                let on_stream = matches!(message.request, Request::KeepAlive(_));
                let first = self.take(&mut inner, process, message.clone());
                if let Some(answer) = first.filter(|_| on_stream) {
                    let _ = self.sender.send(ServerMessage { id, answer });
                }
                self.take(&mut inner, process, message)
            }
            None | Some(Harm::Twice) => self.take(&mut inner, process, message),
        };
        if let Some(answer) = answer {
            let _ = self.sender.send(ServerMessage { id, answer });
        }
        Goes::On
    }

    /// Does a request, or holds it back while nobody leads. Gives the answer if there is one now.
    fn take(
        &mut self,
        inner: &mut Inner,
        process: &Process,
        message: ClientMessage,
    ) -> Option<Answer> {
        let ClientMessage { id, request, require_leader } = message;
        tracing::trace!(connection = self.id, id, ?request, "request");
        let from = (self.id, id);
        if inner.broken_streams.contains(&from) {
            return None;
        }
        let opens = match request {
            Request::KeepAlive(_)
            | Request::WatchCreate(_)
            | Request::WatchCancel(_)
            | Request::WatchProgress
            | Request::Observe(_) => self.streams.insert(id),
            Request::CloseStream if !self.streams.remove(&id) => return None,
            _ => false,
        };
        match inner.hold(process.clock.now(), from, request, require_leader) {
            Ok(request) => {
                if opens && require_leader {
                    inner.strict_streams.insert(from);
                }
                inner.handle(process, from, request)
            }
            Err(refusal) => refusal.map(Err),
        }
    }
}

impl Connection {
    /// The client has gone: the calls of it that wait are given up. Not so when the process itself
    /// is killed, which drops the connection without this.
    fn end(&self, process: &Process) {
        let mut inner = self.state.lock();
        inner.model.cancel_all(process.clock.now(), self.id);
        inner.pass_on(process);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut inner = self.state.lock();
        inner.connections.remove(&self.id);
        inner.forget_held(self.id);
        for stream in std::mem::take(&mut self.streams) {
            inner.strict_streams.remove(&(self.id, stream));
            inner.broken_streams.remove(&(self.id, stream));
            inner.model.close((self.id, stream));
        }
    }
}

async fn serve_connection(state: Arc<MemberState>, process: Arc<Process>, stream: MessageStream) {
    let (sender, mut receiver) = stream.split();
    let mut connection = Connection::open(state, sender);
    loop {
        match receiver.recv::<ClientMessage>().await {
            Ok(Some(message)) => {
                if connection.handle(&process, message) == Goes::Broken {
                    break;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(connection = connection.id, %error, "connection broke");
                break;
            }
        }
    }
    connection.end(&process);
}
