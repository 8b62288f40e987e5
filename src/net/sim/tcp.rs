//! Byte streams, as hyper wants them.

use std::{
    fmt,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    NetSim,
    connect::{Ends, Listener},
    pipe::Payload,
};

/// A listening TCP socket.
pub struct TcpListener(Listener);

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TcpListener").field(&self.0.address()).finish()
    }
}

impl TcpListener {
    /// Listens on `address`, as `IP:PORT`, of the running node.
    pub async fn bind(address: &str) -> io::Result<Self> {
        Listener::bind(address).map(TcpListener)
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let ends = poll_fn(|cx| self.0.poll_accept(cx)).await?;
        let peer = ends.peer;
        Ok((TcpStream::new(ends), peer))
    }

    /// The address that it listens on.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.address())
    }
}

/// A TCP connection.
pub struct TcpStream {
    ends: Ends,
    read: Bytes,
    write: BytesMut,
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TcpStream").field(&self.ends.peer).finish()
    }
}

impl TcpStream {
    /// Connects to `address`, as `IP:PORT`. It waits while a cut lies on the way.
    pub async fn connect(address: &str) -> io::Result<Self> {
        NetSim::current().connect(address).await.map(TcpStream::new)
    }

    fn new(ends: Ends) -> Self {
        TcpStream { ends, read: Bytes::new(), write: BytesMut::new() }
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.read.is_empty() {
            match self.ends.receiver.poll_next(cx) {
                Poll::Ready(Some(Payload::Bytes(bytes))) => self.read = bytes,
                Poll::Ready(Some(Payload::Reset)) => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Poll::Ready(Some(_)) => {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
        let size = self.read.len().min(buf.remaining());
        buf.put_slice(&self.read[..size]);
        self.read.advance(size);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    /// An empty flush sends nothing: hyper flushes often, and a message each would be a delivery.
    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let bytes = self.write.split().freeze();
        Poll::Ready(self.ends.sender.send(Payload::Bytes(bytes)))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.as_mut().poll_flush(cx);
        // Half close: what the peer still sends can be read.
        let _ = self.ends.sender.send(Payload::End);
        flushed
    }
}
