//! The connection behind a client: made when needed, shared by its clones, left when it breaks.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, Weak},
};

use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use super::{ConnectOptions, Error};
use crate::{
    etcd::frame::{ClientFrame, Reply, Request, ServerFrame},
    net::{MessageReceiver, MessageSender, MessageStream},
    time::timeout,
};

/// What a stream receives: the end of the connection is an error.
pub(super) type StreamItem = Result<ServerFrame, Status>;

/// How clients reach etcd.
pub(super) struct Connector {
    /// Addresses, as `IP:PORT`.
    endpoints: Vec<String>,
    pub(super) options: ConnectOptions,
    state: Mutex<State>,
    /// Only one task connects; the others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    open: Option<Arc<Connection>>,
    /// Which endpoint is tried next.
    next_endpoint: usize,
}

/// An open connection.
pub(super) struct Connection {
    sender: MessageSender,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    closed: bool,
    next_id: u64,
    requests: BTreeMap<u64, oneshot::Sender<Result<Reply, Status>>>,
    streams: BTreeMap<u64, mpsc::UnboundedSender<StreamItem>>,
}

/// The text that gRPC gives when a connection breaks under a request.
fn broken() -> Status {
    Status::unavailable("transport is closing")
}

fn no_connection(error: &io::Error) -> Error {
    Status::unavailable(format!("connection error: {error}")).into()
}

fn deadline() -> Status {
    Status::deadline_exceeded("context deadline exceeded")
}

impl Connector {
    pub(super) fn new(endpoints: Vec<String>, options: ConnectOptions) -> Self {
        let (state, connecting) = Default::default();
        Connector { endpoints, options, state, connecting }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn open(&self) -> Option<Arc<Connection>> {
        self.state().open.clone().filter(|connection| connection.is_usable())
    }

    /// The open connection, or a new one: each endpoint is tried once.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Error> {
        if let Some(open) = self.open() {
            return Ok(open);
        }
        let _turn = self.connecting.lock().await;
        if let Some(open) = self.open() {
            return Ok(open);
        }
        let mut last = io::ErrorKind::NotFound.into();
        for _ in 0..self.endpoints.len() {
            let endpoint = {
                let mut state = self.state();
                state.next_endpoint += 1;
                &self.endpoints[(state.next_endpoint - 1) % self.endpoints.len()]
            };
            let connect = MessageStream::connect(endpoint);
            let connected = match self.options.connect_timeout {
                Some(limit) => timeout(limit, connect)
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
                None => connect.await,
            };
            match connected {
                Ok(stream) => {
                    let connection = Connection::start(stream);
                    self.state().open = Some(connection.clone());
                    return Ok(connection);
                }
                Err(error) => last = error,
            }
        }
        Err(no_connection(&last))
    }

    /// Sends a unary request and waits for its answer, for as long as the options allow.
    pub(super) async fn call(&self, request: Request) -> Result<Reply, Error> {
        let answer = async {
            let connection = self.connection().await?;
            Ok(connection.call(request).await?)
        };
        match self.options.timeout {
            Some(limit) => timeout(limit, answer).await.unwrap_or_else(|_| Err(deadline().into())),
            None => answer.await,
        }
    }
}

impl Connection {
    fn start(stream: MessageStream) -> Arc<Self> {
        let (sender, receiver) = stream.split();
        let connection = Arc::new(Connection { sender, waiting: Mutex::default() });
        tokio::spawn(read(Arc::downgrade(&connection), receiver));
        connection
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn is_usable(&self) -> bool {
        !self.waiting().closed && !self.sender.is_closed()
    }

    async fn call(&self, request: Request) -> Result<Reply, Status> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(broken());
            }
            waiting.next_id += 1;
            let id = waiting.next_id;
            waiting.requests.insert(id, answer);
            id
        };
        // Whoever stops waiting takes the place back, or it would be kept for ever.
        let _place = Place { connection: self, id };
        self.send(ClientFrame::Request(id, request))?;
        answered.await.unwrap_or_else(|_| Err(broken()))
    }

    pub(super) fn send(&self, frame: ClientFrame) -> Result<(), Status> {
        self.sender.send(frame).map_err(|_| {
            self.close();
            broken()
        })
    }

    /// Opens a stream of frames from the member.
    pub(super) fn open_stream(self: &Arc<Self>) -> Result<Stream, Status> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(broken());
        }
        waiting.next_id += 1;
        let id = waiting.next_id;
        waiting.streams.insert(id, sender);
        drop(waiting);
        Ok(Stream { connection: self.clone(), id, receiver })
    }

    fn dispatch(&self, frame: ServerFrame) {
        let mut waiting = self.waiting();
        match frame {
            ServerFrame::Reply(id, reply) => {
                if let Some(answer) = waiting.requests.remove(&id) {
                    // Nobody waits any more: the caller gave up a moment ago.
                    let _ = answer.send(reply);
                }
            }
            ServerFrame::Watch(id, _) | ServerFrame::KeepAlive(id, ..) => {
                if let Some(stream) = waiting.streams.get(&id) {
                    let _ = stream.send(Ok(frame));
                }
            }
        }
    }

    /// Everything that waits fails.
    fn close(&self) {
        let (requests, streams) = {
            let mut waiting = self.waiting();
            waiting.closed = true;
            (std::mem::take(&mut waiting.requests), std::mem::take(&mut waiting.streams))
        };
        for answer in requests.into_values() {
            let _ = answer.send(Err(broken()));
        }
        for stream in streams.into_values() {
            let _ = stream.send(Err(broken()));
        }
    }
}

struct Place<'c> {
    connection: &'c Connection,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.connection.waiting().requests.remove(&self.id);
    }
}

/// Reads for a connection until either end is gone.
async fn read(connection: Weak<Connection>, mut receiver: MessageReceiver) {
    loop {
        let frame = receiver.recv::<ServerFrame>().await;
        let Some(connection) = connection.upgrade() else { return };
        match frame {
            Ok(Some(frame)) => connection.dispatch(frame),
            Ok(None) | Err(_) => return connection.close(),
        }
    }
}

/// A stream of frames from the member; dropping it closes it there too.
pub(super) struct Stream {
    pub(super) connection: Arc<Connection>,
    pub(super) id: u64,
    receiver: mpsc::UnboundedReceiver<StreamItem>,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Stream {
    /// The next frame; none once the stream is over.
    pub(super) async fn next(&mut self) -> Option<StreamItem> {
        self.receiver.recv().await
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.waiting().streams.remove(&self.id);
        // A connection that is gone has closed its streams already.
        let _ = self.connection.send(ClientFrame::CloseStream(self.id));
    }
}
