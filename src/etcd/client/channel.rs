//! The connection of a client: requests and streams over one message channel.
//!
//! A task reads the answers and hands each to the call that waits for it. A lost connection fails
//! what is open, and the next call connects anew, to the next endpoint. Nothing
//! is retried: whether a lost request took effect is for the caller to find out.

use std::{
    collections::BTreeMap,
    fmt,
    future::{Future, poll_fn},
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll},
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use crate::{
    etcd::{
        model::{request::Request, response::Response},
        protocol::{ClientMessage, ServerMessage},
    },
    net::{MessageReceiver, MessageSender, MessageStream},
    time::timeout,
};

use super::error::{Error, Result};

/// What a call or a stream is told.
type Answer = std::result::Result<Response, Status>;

/// Time limits of a channel, and what it asks of a member.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// Of one call, connecting included; of a stream until its first answer.
    pub(super) request: Option<Duration>,
    /// Of connecting to one endpoint.
    pub(super) connect: Option<Duration>,
    /// Whether calls and streams insist on a leader.
    pub(super) require_leader: bool,
}

/// The channel of a client and all its clones.
#[derive(Clone)]
pub(super) struct Channel {
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    state: Mutex<State>,
    /// One at a time connects; the others then find its connection.
    connecting: tokio::sync::Mutex<()>,
}

struct State {
    endpoints: Vec<String>,
    next_endpoint: usize,
    connection: Option<Arc<Connection>>,
}

/// One connection; the peer sees its end when the last call, stream and client has dropped it.
struct Connection {
    require_leader: bool,
    sender: MessageSender,
    waiters: Arc<Mutex<Waiters>>,
}

#[derive(Default)]
struct Waiters {
    next_id: u64,
    open: BTreeMap<u64, Waiter>,
    broken: bool,
}

enum Waiter {
    Call(oneshot::Sender<Answer>),
    /// A stream, and whether it has had an answer.
    Stream(mpsc::UnboundedSender<Answer>, bool),
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("endpoints", &self.lock().endpoints).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A call on a connection that broke. Code and text are what etcd-client 0.18 gave when a real
/// member was killed: of a call, or a stream without an answer, the first; of an open stream the
/// second. So it is not Unavailable, as from Go's client.
fn lost() -> Status {
    Status::unknown("transport error")
}

fn lost_stream() -> Status {
    Status::unknown("h2 protocol error: error reading a body from connection")
}

async fn within<T>(limit: Option<Duration>, future: impl Future<Output = Result<T>>) -> Result<T> {
    match limit {
        None => future.await,
        // Code and text as tonic's own time-out gives them (`status.rs` of tonic 0.14).
        Some(limit) => timeout(limit, future)
            .await
            .unwrap_or_else(|_| Err(Status::cancelled("Timeout expired").into())),
    }
}

impl Channel {
    pub(super) fn new(endpoints: Vec<String>, limits: Limits) -> Self {
        let state = State { endpoints, next_endpoint: 0, connection: None };
        let connecting = tokio::sync::Mutex::default();
        Channel { shared: Arc::new(Shared { limits, state: Mutex::new(state), connecting }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    pub(super) fn add_endpoint(&self, endpoint: String) {
        let mut state = self.lock();
        if !state.endpoints.contains(&endpoint) {
            state.endpoints.push(endpoint);
        }
    }

    pub(super) fn remove_endpoint(&self, endpoint: &str) {
        self.lock().endpoints.retain(|other| other != endpoint);
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn call(&self, request: Request) -> Result<Response> {
        within(self.shared.limits.request, async {
            let connection = self.connection().await?;
            let (sender, receiver) = oneshot::channel();
            let call = OpenCall::new(&connection, Waiter::Call(sender), request)?;
            let answer = receiver.await.unwrap_or_else(|_| Err(lost()));
            drop(call);
            Ok(answer?)
        })
        .await
    }

    /// Opens a stream with its first request and waits for the first answer.
    pub(super) async fn open(&self, request: Request) -> Result<(Response, Stream)> {
        within(self.shared.limits.request, async {
            let connection = self.connection().await?;
            let (sender, answers) = mpsc::unbounded_channel();
            let id = connection.register(Waiter::Stream(sender, false))?;
            let mut stream = Stream { sender: StreamSender { connection, id }, answers };
            stream.send(request)?;
            match stream.next().await {
                Some(first) => Ok((first?, stream)),
                None => Err(lost().into()),
            }
        })
        .await
    }

    fn usable(&self) -> Option<Arc<Connection>> {
        self.lock().connection.clone().filter(|connection| !lock(&connection.waiters).broken)
    }

    async fn connection(&self) -> Result<Arc<Connection>> {
        if let Some(connection) = self.usable() {
            return Ok(connection);
        }
        let _one_at_a_time = self.shared.connecting.lock().await;
        if let Some(connection) = self.usable() {
            return Ok(connection);
        }
        let tries = self.lock().endpoints.len();
        let mut last = Status::unavailable("the client has no endpoints");
        for _ in 0..tries {
            let Some(endpoint) = self.next_endpoint() else { break };
            match within(self.shared.limits.connect, async {
                Ok(MessageStream::connect(&endpoint).await?)
            })
            .await
            {
                Ok(stream) => {
                    let connection = Connection::start(stream, self.shared.limits.require_leader);
                    self.lock().connection = Some(connection.clone());
                    return Ok(connection);
                }
                Err(error) => {
                    tracing::debug!(endpoint, %error, "cannot connect");
                    // Refused or timed out, tonic says no more than this.
                    last = Status::unavailable("tcp connect error");
                }
            }
        }
        Err(last.into())
    }

    fn next_endpoint(&self) -> Option<String> {
        let mut state = self.lock();
        let count = state.endpoints.len();
        let next = state.next_endpoint;
        state.next_endpoint = next.wrapping_add(1);
        state.endpoints.get(next.checked_rem(count)?).cloned()
    }
}

impl Connection {
    fn start(stream: MessageStream, require_leader: bool) -> Arc<Self> {
        let (sender, receiver) = stream.split();
        let waiters = Arc::new(Mutex::new(Waiters::default()));
        tokio::spawn(read_answers(receiver, waiters.clone()));
        Arc::new(Connection { require_leader, sender, waiters })
    }

    fn register(&self, waiter: Waiter) -> Result<u64> {
        let mut waiters = lock(&self.waiters);
        if waiters.broken {
            return Err(lost().into());
        }
        waiters.next_id += 1;
        let id = waiters.next_id;
        waiters.open.insert(id, waiter);
        Ok(id)
    }

    fn send(&self, id: u64, request: Request) -> Result<()> {
        let require_leader = self.require_leader;
        let message = ClientMessage { id, request, require_leader };
        self.sender.send(message).map_err(|_| lost().into())
    }
}

/// A call without its answer; when it is dropped nobody waits for that any more.
struct OpenCall<'a> {
    connection: &'a Connection,
    id: u64,
    /// Whether the member has to know that the call is dropped. A real client tells it of every
    /// call; of one that the member answers at once it would make no difference.
    tell: bool,
}

impl<'a> OpenCall<'a> {
    fn new(connection: &'a Connection, waiter: Waiter, request: Request) -> Result<Self> {
        let id = connection.register(waiter)?;
        let call = OpenCall { connection, id, tell: request.can_wait() };
        connection.send(id, request)?;
        Ok(call)
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let unanswered = lock(&self.connection.waiters).open.remove(&self.id).is_some();
        if unanswered && self.tell {
            // A lost connection tells the member as well.
            let _ = self.connection.send(self.id, Request::Cancel);
        }
    }
}

/// Ends a broken connection even if its task is dropped with its node.
struct EndOfReading(Arc<Mutex<Waiters>>);

impl Drop for EndOfReading {
    fn drop(&mut self) {
        let mut waiters = lock(&self.0);
        waiters.broken = true;
        let open = std::mem::take(&mut waiters.open);
        drop(waiters);
        for waiter in open.into_values() {
            // Whoever has stopped waiting does not mind.
            match waiter {
                Waiter::Call(sender) => drop(sender.send(Err(lost()))),
                Waiter::Stream(sender, false) => drop(sender.send(Err(lost()))),
                Waiter::Stream(sender, true) => drop(sender.send(Err(lost_stream()))),
            }
        }
    }
}

async fn read_answers(mut receiver: MessageReceiver, waiters: Arc<Mutex<Waiters>>) {
    let end = EndOfReading(waiters);
    loop {
        match receiver.recv::<ServerMessage>().await {
            Ok(Some(message)) => hand_over(&mut lock(&end.0), message),
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "connection to the member broke");
                break;
            }
        }
    }
}

fn hand_over(waiters: &mut Waiters, message: ServerMessage) {
    let ServerMessage { id, answer } = message;
    let answer = answer.map_err(Status::from);
    match waiters.open.get_mut(&id) {
        // The caller has given up.
        None => {}
        Some(Waiter::Call(_)) => {
            if let Some(Waiter::Call(sender)) = waiters.open.remove(&id) {
                drop(sender.send(answer));
            }
        }
        Some(Waiter::Stream(..)) if matches!(answer, Ok(Response::StreamEnd)) => {
            waiters.open.remove(&id);
        }
        Some(Waiter::Stream(sender, answered)) => {
            *answered = true;
            let broken = answer.is_err();
            drop(sender.send(answer));
            // An error ends a stream.
            if broken {
                waiters.open.remove(&id);
            }
        }
    }
}

/// The asking half of a stream. The member ends the stream when this is dropped.
pub(super) struct StreamSender {
    connection: Arc<Connection>,
    id: u64,
}

impl StreamSender {
    /// Sends one more request on the stream; an error says that it is over.
    pub(super) fn send(&self, request: Request) -> Result<()> {
        if !lock(&self.connection.waiters).open.contains_key(&self.id) {
            return Err(Error::Internal("channel closed".to_owned()));
        }
        self.connection.send(self.id, request)
    }
}

impl Drop for StreamSender {
    fn drop(&mut self) {
        // A stream that is over already needs no end.
        let _ = self.send(Request::CloseStream);
    }
}

impl fmt::Debug for StreamSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamSender").field(&self.id).finish()
    }
}

/// An open stream; dropping it ends it on both sides.
#[derive(Debug)]
pub(super) struct Stream {
    sender: StreamSender,
    answers: mpsc::UnboundedReceiver<Answer>,
}

impl Stream {
    /// Sends one more request on the stream; an error says that it is over.
    pub(super) fn send(&self, request: Request) -> Result<()> {
        self.sender.send(request)
    }

    /// An asking half of its own, for somebody else.
    pub(super) fn sender(&self) -> StreamSender {
        StreamSender { connection: self.sender.connection.clone(), id: self.sender.id }
    }

    /// The next message; none when the stream has ended in order.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Response>>> {
        self.answers.poll_recv(cx).map(|answer| answer.map(|answer| answer.map_err(Error::from)))
    }

    /// The next message; none when the stream has ended in order.
    pub(super) async fn next(&mut self) -> Option<Result<Response>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.sender.send(Request::CloseStream);
        lock(&self.sender.connection.waiters).open.remove(&self.sender.id);
    }
}
