//! A member on a simulated node: connections, the look for expired leases, what survives a kill.
//!
//! The shell around the model is thin: it reads the member's clock, hands requests in and messages
//! out. [`MemberState`] is what is durable (a real member writes it to its disk before it answers);
//! connections and streams belong to the tasks of the node and end with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use crate::{
    history::{Commit, LeaseEvent},
    net::{MessageListener, MessageSender, MessageStream},
    time::{sim::LocalClock, sleep, wall_ms},
};

use super::{
    model::{Answer, Identity, Model, Output, StreamId, request::Request},
    protocol::{ClientMessage, ServerMessage},
};

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
    /// Leases live longer by this after a restart (etcd: 10 ticks of 100 ms).
    pub election_timeout: Duration,
    /// The etcd that it behaves as.
    pub version: EtcdVersion,
}

impl Default for MemberOptions {
    fn default() -> Self {
        MemberOptions {
            name: "default".to_owned(),
            address: "10.0.0.1:2379".to_owned(),
            member_id: 0x8e9e_05c5_2164_694d,
            cluster_id: 0xcdf8_1819_4e3a_8c32,
            election_timeout: Duration::from_secs(1),
            version: EtcdVersion::default(),
        }
    }
}

/// What a member keeps over a kill: the store and the leases. The harness holds it.
pub struct MemberState {
    options: MemberOptions,
    inner: Mutex<Inner>,
}

struct Inner {
    model: Model,
    /// The process that serves, while it lives.
    process: Weak<Process>,
    connections: BTreeMap<u64, Weak<MessageSender>>,
    next_connection: u64,
    requests: u64,
}

/// One life of the member's process; its tasks own it.
struct Process {
    /// The member's monotonic clock.
    clock: LocalClock,
    log: Arc<dyn CommitLog>,
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
        let inner = Inner {
            model: Model::new(identity),
            process: Weak::new(),
            connections: BTreeMap::new(),
            next_connection: 0,
            requests: 0,
        };
        MemberState { options, inner: Mutex::new(inner) }
    }

    /// The member's id.
    pub fn member_id(&self) -> u64 {
        self.options.member_id
    }

    /// How many requests the member has answered, over all its lives.
    pub fn requests(&self) -> u64 {
        self.lock().requests
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn start(&self, process: &Arc<Process>) {
        let mut inner = self.lock();
        inner.process = Arc::downgrade(process);
        inner.connections.clear();
        inner.model.start(process.clock.now(), wall_ms(), self.options.election_timeout);
    }

    fn expire(&self, process: &Process) {
        let mut inner = self.lock();
        inner.model.expire(process.clock.now());
        inner.pass_on(process);
    }
}

impl Inner {
    /// Hands on what has followed from the last call of the model, in order.
    fn pass_on(&mut self, process: &Process) {
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

    fn handle(&mut self, process: &Process, message: ClientMessage) {
        let ClientMessage { id, request } = message;
        tracing::trace!(connection = self.id, id, ?request, "request");
        match request {
            Request::KeepAlive(_)
            | Request::WatchCreate(_)
            | Request::WatchCancel(_)
            | Request::WatchProgress
            | Request::Observe(_) => {
                self.streams.insert(id);
            }
            Request::CloseStream if !self.streams.remove(&id) => return,
            _ => {}
        }
        let answer = self.state.lock().handle(process, (self.id, id), request);
        if let Some(answer) = answer {
            let _ = self.sender.send(ServerMessage { id, answer });
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
        for stream in std::mem::take(&mut self.streams) {
            inner.model.close((self.id, stream));
        }
    }
}

async fn serve_connection(state: Arc<MemberState>, process: Arc<Process>, stream: MessageStream) {
    let (sender, mut receiver) = stream.split();
    let mut connection = Connection::open(state, sender);
    loop {
        match receiver.recv::<ClientMessage>().await {
            Ok(Some(message)) => connection.handle(&process, message),
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(connection = connection.id, %error, "connection broke");
                break;
            }
        }
    }
    connection.end(&process);
}
