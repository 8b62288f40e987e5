//! Listening and connecting.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use madsim::{plugin, task::NodeId};

use super::{NetSim, pipe};

/// The two directions of a connection, as one side sees them.
pub(super) struct Ends {
    pub(super) sender: pipe::Sender,
    pub(super) receiver: pipe::Receiver,
    pub(super) peer: SocketAddr,
}

/// A listening port: connections that the kernel has accepted and the process has not yet.
pub(super) struct Accepting {
    id: u64,
    backlog: VecDeque<Ends>,
    acceptor: Option<Waker>,
}

/// A listener; the port is free again when it is dropped.
pub(super) struct Listener {
    net: Arc<NetSim>,
    node: NodeId,
    address: SocketAddr,
    id: u64,
}

impl Listener {
    pub(super) fn bind(address: &str) -> io::Result<Self> {
        let address = parse(address)?;
        let net = NetSim::current();
        let node = plugin::node();
        let mut inner = net.lock();
        let own = inner.addresses.get(&address.ip()) == Some(&node);
        if !own && !address.ip().is_unspecified() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if inner.listeners.contains_key(&(node, address.port())) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let id = inner.next_id();
        let accepting = Accepting { id, backlog: VecDeque::new(), acceptor: None };
        inner.listeners.insert((node, address.port()), accepting);
        drop(inner);
        Ok(Listener { net, node, address, id })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ends>> {
        let mut inner = self.net.lock();
        let accepting = inner
            .listeners
            .get_mut(&(self.node, self.address.port()))
            .filter(|accepting| accepting.id == self.id);
        let Some(accepting) = accepting else {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        };
        match accepting.backlog.pop_front() {
            Some(ends) => Poll::Ready(Ok(ends)),
            None => {
                accepting.acceptor = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut inner = self.net.lock();
        let key = (self.node, self.address.port());
        let dropped = match inner.listeners.get(&key) {
            Some(accepting) if accepting.id == self.id => inner.listeners.remove(&key),
            _ => None,
        };
        // Connections in the backlog tell their peers when they are dropped, which takes the lock.
        drop(inner);
        drop(dropped);
    }
}

fn parse(address: &str) -> io::Result<SocketAddr> {
    address.parse().map_err(|_| {
        let message = format!("address {address:?}: expected IP:PORT, there are no names here");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

impl NetSim {
    /// Waits until the direction is open, then as long as a message takes.
    async fn travel(&self, src: NodeId, dst: NodeId) {
        poll_fn(|cx| {
            let mut inner = self.lock();
            match inner.links.get_mut(&(src, dst)).filter(|link| link.is_cut()) {
                Some(link) => {
                    link.wait(cx.waker());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
        let latency = self.lock().latency(src, dst, self.time.elapsed());
        self.time.sleep(latency).await;
    }

    fn open(self: &Arc<Self>, src: NodeId, dst: NodeId, port: u16) -> Option<Ends> {
        let mut inner = self.lock();
        let id = inner.next_id();
        let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let own = inner.addresses.iter().find(|(_, node)| **node == src);
        let from = SocketAddr::new(own.map_or(unspecified, |(ip, _)| *ip), 0);
        if !inner.listeners.contains_key(&(dst, port)) {
            return None;
        }
        let (to_server, at_server) = pipe::pipe(self, &mut inner, (src, dst), id);
        let (to_client, at_client) = pipe::pipe(self, &mut inner, (dst, src), id);
        let accepting = inner.listeners.get_mut(&(dst, port)).expect("just seen");
        accepting.backlog.push_back(Ends { sender: to_client, receiver: at_server, peer: from });
        if let Some(acceptor) = accepting.acceptor.take() {
            acceptor.wake();
        }
        Some(Ends { sender: to_server, receiver: at_client, peer: from })
    }

    /// Connects from the running node. It waits while a cut lies on the way, and is refused when
    /// nobody listens there.
    pub(super) async fn connect(self: &Arc<Self>, address: &str) -> io::Result<Ends> {
        let address = parse(address)?;
        let src = plugin::node();
        let dst = self.lock().addresses.get(&address.ip()).copied();
        let Some(dst) = dst else {
            let message = format!("no node has the address {}", address.ip());
            return Err(io::Error::new(io::ErrorKind::HostUnreachable, message));
        };
        self.travel(src, dst).await;
        let opened = self.open(src, dst, address.port());
        self.travel(dst, src).await;
        match opened {
            Some(ends) => Ok(Ends { peer: address, ..ends }),
            None => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}
