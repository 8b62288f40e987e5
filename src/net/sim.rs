//! The simulated network.

mod connect;
mod link;
mod message;
mod pipe;
mod tcp;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use madsim::{
    plugin::{self, Simulator},
    rand::GlobalRng,
    task::NodeId,
    time::TimeHandle,
};

pub(crate) use self::message::{MessageListener, MessageReceiver, MessageSender, MessageStream};
pub use self::tcp::{TcpListener, TcpStream};
use self::{connect::Accepting, link::Link, pipe::Pipe};

/// Random numbers for latencies: `below(n)` gives a number in `0..n`.
pub(crate) type Below = Box<dyn FnMut(u64) -> u64 + Send>;

/// Told of each delivery: source, destination, connection, size or 0, true time in nanoseconds.
pub(crate) type OnDelivery = Arc<dyn Fn(NodeId, NodeId, u64, u64, u64) + Send + Sync>;

/// The network of a run.
pub(crate) struct NetSim {
    time: TimeHandle,
    inner: Mutex<Inner>,
}

struct Inner {
    addresses: BTreeMap<IpAddr, NodeId>,
    listeners: BTreeMap<(NodeId, u16), Accepting>,
    links: BTreeMap<(NodeId, NodeId), Link>,
    below: Option<Below>,
    latency: (Duration, Duration),
    on_delivery: Option<OnDelivery>,
    next_id: u64,
    /// The pipes that lead to each node, to count what waits for it.
    inbound: BTreeMap<NodeId, Vec<Weak<Pipe>>>,
}

impl Simulator for NetSim {
    fn new(_rand: &GlobalRng, time: &TimeHandle, _config: &madsim::Config) -> Self {
        let inner = Inner {
            addresses: BTreeMap::new(),
            listeners: BTreeMap::new(),
            links: BTreeMap::new(),
            below: None,
            latency: (Duration::from_millis(1), Duration::from_millis(1)),
            on_delivery: None,
            next_id: 0,
            inbound: BTreeMap::new(),
        };
        NetSim { time: time.clone(), inner: Mutex::new(inner) }
    }

    /// A dead process listens no more; its connections end when its tasks are dropped.
    fn reset_node(&self, id: NodeId) {
        let mut inner = self.lock();
        let dead: Vec<Accepting> =
            inner.listeners.extract_if(.., |(node, _), _| *node == id).map(|(_, a)| a).collect();
        drop(inner);
        // Connections that nobody has accepted end with it, and an end is sent over this network.
        drop(dead);
    }
}

impl NetSim {
    /// The network of the running simulation.
    pub(crate) fn current() -> Arc<Self> {
        plugin::simulator::<NetSim>()
    }

    /// Sets the source of random numbers, the range of latencies and who is told of deliveries.
    pub(crate) fn configure(
        &self,
        below: Below,
        latency: (Duration, Duration),
        on_delivery: OnDelivery,
    ) {
        let mut inner = self.lock();
        inner.below = Some(below);
        inner.latency = latency;
        inner.on_delivery = Some(on_delivery);
    }

    /// Gives a node its address.
    pub(crate) fn set_address(&self, node: NodeId, address: IpAddr) {
        self.lock().addresses.insert(address, node);
    }

    /// How many messages have arrived at the node and have not been read: it stands still.
    pub(crate) fn unread(&self, node: NodeId) -> u64 {
        let now = self.time.elapsed();
        let pipes = self.lock().inbound.get(&node).cloned().unwrap_or_default();
        pipes.iter().filter_map(Weak::upgrade).map(|pipe| pipe.unread(now)).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Inner {
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Remembers a new pipe, and forgets the ones that are gone.
    fn add_inbound(&mut self, node: NodeId, pipe: Weak<Pipe>) {
        let pipes = self.inbound.entry(node).or_default();
        pipes.retain(|pipe| pipe.strong_count() > 0);
        pipes.push(pipe);
    }

    /// The two directions of a connection.
    fn directions(&self, pipe: &Pipe) -> Vec<Arc<Pipe>> {
        let (a, b, id) = pipe.connection();
        let ends = [a, b].into_iter().filter_map(|node| self.inbound.get(&node));
        ends.flatten().filter_map(Weak::upgrade).filter(|pipe| pipe.connection().2 == id).collect()
    }

    fn draw(&mut self, from: Duration, to: Duration) -> Duration {
        let span = to.saturating_sub(from).as_nanos() as u64;
        let extra = match &mut self.below {
            Some(below) if span > 0 => below(span + 1),
            _ => 0,
        };
        from + Duration::from_nanos(extra)
    }

    /// How long a message from `src` to `dst` takes now, not counting a cut.
    fn latency(&mut self, src: NodeId, dst: NodeId, now: Duration) -> Duration {
        let (from, to) = self.latency;
        let base = self.draw(from, to);
        match self.links.get_mut(&(src, dst)) {
            Some(link) => base + link.count_delay(now),
            None => base,
        }
    }
}
