//! Message channels: what carries the simulated etcd's requests and streams.
//!
//! Each message is a delivery of its own, like a frame of HTTP/2 over one connection.

use std::{
    any::Any,
    fmt,
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use super::{
    NetSim,
    connect::{Ends, Listener},
    pipe::{self, Payload},
};

/// A listening port for message channels.
pub(crate) struct MessageListener(Listener);

impl fmt::Debug for MessageListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageListener").field(&self.0.address()).finish()
    }
}

impl MessageListener {
    /// Listens on `address` (`IP:PORT`) of the running node.
    pub(crate) async fn bind(address: &str) -> io::Result<Self> {
        Listener::bind(address).map(MessageListener)
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&self) -> io::Result<MessageStream> {
        poll_fn(|cx| self.0.poll_accept(cx)).await.map(MessageStream)
    }
}

/// An open connection.
pub(crate) struct MessageStream(Ends);

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageStream").field(&self.0.peer).finish()
    }
}

impl MessageStream {
    /// Connects to `address` (`IP:PORT`). It waits while a cut lies on the way.
    pub(crate) async fn connect(address: &str) -> io::Result<Self> {
        NetSim::current().connect(address).await.map(MessageStream)
    }

    /// The two directions.
    pub(crate) fn split(self) -> (MessageSender, MessageReceiver) {
        (MessageSender(self.0.sender), MessageReceiver(self.0.receiver))
    }
}

/// Sends messages; dropping it is the end of the stream for the peer.
pub(crate) struct MessageSender(pipe::Sender);

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageSender")
    }
}

impl MessageSender {
    /// Sends a message; an error says that the peer is known to be gone.
    pub(crate) fn send<T: Any + Send>(&self, message: T) -> io::Result<()> {
        self.0.send(Payload::Message(Box::new(message)))
    }
}

/// Receives messages.
pub(crate) struct MessageReceiver(pipe::Receiver);

impl fmt::Debug for MessageReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageReceiver")
    }
}

impl MessageReceiver {
    /// The next message; none at the end of the stream. Cancel safe.
    pub(crate) async fn recv<T: Any + Send>(&mut self) -> io::Result<Option<T>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The next message, if it has arrived.
    pub(crate) fn poll_recv<T: Any + Send>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<T>>> {
        self.0.poll_next(cx).map(|payload| match payload {
            None => Ok(None),
            Some(Payload::Message(message)) => match message.downcast::<T>() {
                Ok(message) => Ok(Some(*message)),
                Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "another message type")),
            },
            Some(Payload::Reset) => Err(io::ErrorKind::ConnectionReset.into()),
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "bytes, not messages")),
        })
    }
}
