//! The simulated cluster: one etcd member, one storage, n clients, and the hands on them.
//!
//! [`sim::run`] is the one place that makes runtimes. [`Cluster`] starts, kills, pauses and cuts
//! nodes by name and records what it does; it decides nothing and judges nothing.

#[cfg(test)]
mod abuse_tests;
#[cfg(test)]
mod contrib_tests;
#[cfg(test)]
mod durability_tests;
#[cfg(test)]
mod fuzz_tests;
mod host;
#[cfg(test)]
mod net_tests;
pub(crate) mod quiet;
#[cfg(test)]
mod recipe_tests;
#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod session_tests;
pub(crate) mod sim;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
mod time_tests;
mod truth;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    future::Future,
    net::{IpAddr, Ipv4Addr},
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use madsim::{
    runtime::{Handle, NodeHandle},
    task::{JoinHandle, NodeId},
};

use crate::{
    etcd::{
        quirk::Quirk,
        server::{self as etcd_server, MemberOptions, MemberState},
    },
    history::{EventKind, NodeName, Recorder},
    net::{NetSim, TcpListener},
    seed::{Seed, Stream},
    storage,
    system::{MakeStorage, WrapDisk},
    time::{
        sim::{ClockSim, true_ns},
        sleep,
    },
};

use self::{host::Host, truth::Truth};

/// The name of the lock that protects the storage; its queue is the keys `/lock/…` in etcd.
pub(crate) const LOCK_NAME: &str = "/lock";
/// What that lock protects, by the storage's name for it.
pub(crate) const DOMAIN: &str = "lock";
const ETCD_PORT: u16 = 2379;
const STORAGE_PORT: u16 = 8080;

/// What the cluster is made of.
pub(crate) struct ClusterOptions {
    /// How many clients.
    pub(crate) clients: u8,
    /// How long a message takes when nothing disturbs it.
    pub(crate) latency: (Duration, Duration),
    /// The storage's state machine.
    pub(crate) storage: MakeStorage,
    /// Historic bugs that the etcd member is given back.
    pub(crate) quirks: BTreeSet<Quirk>,
    /// What lies between the storage and its disk, if anything.
    pub(crate) wrap_disk: Option<WrapDisk>,
}

/// A running cluster. Cloning gives another handle of the same cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    inner: Rc<Inner>,
}

struct Inner {
    handle: Handle,
    recorder: Recorder,
    nodes: BTreeMap<NodeName, NodeId>,
    member: Arc<MemberState>,
    host: Arc<Host>,
    net: Arc<NetSim>,
    clocks: Arc<ClockSim>,
    /// The network's random numbers: how many were drawn belongs into the run hash.
    draws: Arc<Mutex<Stream>>,
    /// How many faults hold a node; it goes on when there is none left.
    held: RefCell<BTreeMap<NodeName, u32>>,
    down: RefCell<BTreeMap<NodeName, bool>>,
}

impl Cluster {
    /// Makes the nodes and starts the servers.
    pub(crate) fn start(seed: Seed, options: ClusterOptions, recorder: Recorder) -> Cluster {
        let handle = Handle::current();
        let net = NetSim::current();
        let mut names = vec![NodeName::Etcd(1), NodeName::Storage, NodeName::Nemesis];
        names.extend((1..=options.clients).map(NodeName::Client));
        let mut nodes = BTreeMap::new();
        for name in names {
            let node = handle.create_node().name(name.to_string()).build();
            net.set_address(node.id(), address(name));
            ClockSim::current().set_name(node.id(), name.to_string());
            nodes.insert(name, node.id());
        }
        let stream = seed.stream("net");
        let draws = configure_net(&net, stream, options.latency, &nodes, &recorder);
        let truth = Arc::new(Truth::new(recorder.clone(), NodeName::Storage));
        let host = Host::new(seed, options.storage, options.wrap_disk, truth);
        let cluster = Cluster {
            inner: Rc::new(Inner {
                handle,
                recorder: recorder.clone(),
                nodes,
                member: Arc::new(MemberState::new(member_options(options.quirks))),
                host: Arc::new(host),
                net,
                clocks: ClockSim::current(),
                draws,
                held: RefCell::default(),
                down: RefCell::default(),
            }),
        };
        for node in cluster.inner.nodes.keys() {
            cluster.note_rate(*node);
        }
        cluster.start_etcd();
        cluster.start_storage();
        cluster
    }

    /// Starts the member's process; what its state holds is there again.
    fn start_etcd(&self) {
        let truth = Arc::new(Truth::new(self.inner.recorder.clone(), NodeName::Etcd(1)));
        let member = self.inner.member.clone();
        self.spawn(NodeName::Etcd(1), async move {
            if let Err(error) = etcd_server::serve(member, truth).await {
                panic!("the etcd member cannot serve: {error}");
            }
        });
    }

    fn start_storage(&self) {
        let host = self.inner.host.clone();
        self.spawn(NodeName::Storage, async move {
            let service = host.open().await;
            let address = format!("{}:{STORAGE_PORT}", address(NodeName::Storage));
            match TcpListener::bind(&address).await {
                Ok(listener) => {
                    host.listens();
                    storage::server::serve(listener, service, std::future::pending()).await;
                }
                Err(error) => panic!("the storage cannot listen on {address}: {error}"),
            }
        });
    }

    /// The endpoints of etcd, as a client is given them.
    pub(crate) fn etcd_endpoints(&self) -> Vec<String> {
        vec![format!("http://{}:{ETCD_PORT}", address(NodeName::Etcd(1)))]
    }

    /// The storage's URL.
    pub(crate) fn storage_url(&self) -> String {
        format!("http://{}:{STORAGE_PORT}", address(NodeName::Storage))
    }

    /// The record of the run.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Records that something happened on a node, now.
    pub(crate) fn record(&self, node: NodeName, kind: EventKind) -> u64 {
        self.inner.recorder.record(true_ns(), node, kind)
    }

    /// Runs a future on a node.
    pub(crate) fn spawn<F>(&self, node: NodeName, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.node_handle(node).spawn(future)
    }

    fn node_handle(&self, node: NodeName) -> NodeHandle {
        self.inner.handle.get_node(self.id(node)).expect("the cluster made this node")
    }

    /// Records the rate of a node's monotonic clock as it is now.
    pub(crate) fn note_rate(&self, node: NodeName) {
        let permille = self.clocks().rate_permille(self.id(node));
        self.record(node, EventKind::Rate { permille });
    }

    /// Records the state of one direction of a link as it is now.
    pub(crate) fn note_link(&self, from: NodeName, to: NodeName) {
        let (open, delay) = self.net().link_state(self.id(from), self.id(to));
        let delay_ms = delay.as_millis() as u64;
        self.record(from, EventKind::Link { from, to, open, delay_ms });
    }

    /// The runtime's name of a node.
    ///
    /// # Panics
    /// If there is no such node: a plan is validated against the topology before it runs.
    pub(crate) fn id(&self, node: NodeName) -> NodeId {
        self.inner.nodes[&node]
    }

    /// All nodes but this one.
    pub(crate) fn others(&self, node: NodeName) -> Vec<NodeName> {
        self.inner.nodes.keys().copied().filter(|name| *name != node).collect()
    }

    /// The clients' nodes.
    pub(crate) fn clients(&self) -> Vec<NodeId> {
        let clients = self.inner.nodes.iter();
        let clients = clients.filter(|(name, _)| matches!(name, NodeName::Client(_)));
        clients.map(|(_, id)| *id).collect()
    }

    /// The network.
    pub(crate) fn net(&self) -> &NetSim {
        &self.inner.net
    }

    /// The clocks.
    pub(crate) fn clocks(&self) -> &ClockSim {
        &self.inner.clocks
    }

    /// Waits until the storage listens: after a kill it reads its disk first.
    pub(crate) async fn storage_listens(&self) {
        while !self.inner.host.serves() {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// The etcd member's durable state.
    pub(crate) fn member(&self) -> &MemberState {
        &self.inner.member
    }

    /// The storage's machine.
    pub(crate) fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Stops a node's tasks. Faults may overlap: each `pause` needs a `resume` of its own.
    pub(crate) fn pause(&self, node: NodeName) {
        self.count_pause(node);
        self.inner.handle.pause(self.id(node));
    }

    /// Counts a pause that has been done already, at a code point.
    pub(crate) fn count_pause(&self, node: NodeName) {
        let count = {
            let mut held = self.inner.held.borrow_mut();
            let count = held.entry(node).or_default();
            *count += 1;
            *count
        };
        if count == 1 {
            self.record(node, EventKind::Stop);
        }
    }

    /// Takes one pause back; the node goes on when none is left.
    pub(crate) fn resume(&self, node: NodeName) {
        let count = {
            let mut held = self.inner.held.borrow_mut();
            let count = held.entry(node).or_default();
            *count = count.saturating_sub(1);
            *count
        };
        if count == 0 {
            self.record(node, EventKind::Go);
            self.inner.handle.resume(self.id(node));
        }
    }

    /// Kills a node's process: its tasks are dropped, its connections end. The storage's machine
    /// loses its power with it.
    pub(crate) fn kill(&self, node: NodeName) {
        self.inner.down.borrow_mut().insert(node, true);
        self.inner.handle.kill(self.id(node));
        if node == NodeName::Storage {
            self.inner.host.crash();
        }
        self.record(node, EventKind::Killed);
    }

    /// Ends the storage's process; its machine goes on, and so does what is in its cache.
    pub(crate) fn die(&self, node: NodeName) {
        self.inner.down.borrow_mut().insert(node, true);
        self.inner.handle.kill(self.id(node));
        self.inner.host.die();
        self.record(node, EventKind::Killed);
    }

    /// Lets a killed node run again: a client's with nothing on it, a server's with its process.
    pub(crate) fn restart(&self, node: NodeName) {
        self.inner.handle.restart(self.id(node));
        self.inner.down.borrow_mut().insert(node, false);
        self.record(node, EventKind::Restarted);
        match node {
            NodeName::Etcd(_) => self.start_etcd(),
            NodeName::Storage => self.start_storage(),
            NodeName::Client(_) | NodeName::Nemesis => {}
        }
        if self.inner.held.borrow().get(&node).is_some_and(|count| *count > 0) {
            self.inner.handle.pause(self.id(node));
        }
    }

    /// Whether the node's process is dead.
    pub(crate) fn is_down(&self, node: NodeName) -> bool {
        self.inner.down.borrow().get(&node).copied().unwrap_or(false)
    }

    /// How many requests the servers have answered so far: etcd's and the storage's.
    pub(crate) fn requests(&self) -> (u64, u64) {
        (self.inner.member.requests(), self.inner.host.applied())
    }

    /// Kills every node. A run must end with this, or the runtime keeps their memory.
    pub(crate) async fn shut_down(&self) {
        for id in self.inner.nodes.values() {
            self.inner.handle.kill(*id);
        }
        madsim::time::sleep(Duration::from_millis(10)).await;
        let draws = self.inner.draws.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.inner.recorder.mix("draws net", &[draws.draws()]);
        self.inner.recorder.mix("draws disk", &[self.inner.host.draws()]);
    }
}

fn member_options(quirks: BTreeSet<Quirk>) -> MemberOptions {
    MemberOptions {
        quirks,
        address: format!("{}:{ETCD_PORT}", address(NodeName::Etcd(1))),
        ..MemberOptions::default()
    }
}

fn address(node: NodeName) -> IpAddr {
    let (net, host) = match node {
        NodeName::Nemesis => (0, 1),
        NodeName::Etcd(n) => (1, n),
        NodeName::Storage => (2, 1),
        NodeName::Client(n) => (3, n),
    };
    Ipv4Addr::new(10, 0, net, host).into()
}

/// Gives the network its random numbers, and the run hash its deliveries. The stream is given back
/// so that its draws can be counted at the end.
fn configure_net(
    net: &NetSim,
    stream: Stream,
    latency: (Duration, Duration),
    nodes: &BTreeMap<NodeName, NodeId>,
    recorder: &Recorder,
) -> Arc<Mutex<Stream>> {
    let stream = Arc::new(Mutex::new(stream));
    let drawn = stream.clone();
    let below =
        Box::new(move |n| drawn.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).below(n));
    let recorder = recorder.clone();
    // The order of names stands for the nodes: the runtime's ids are its own affair.
    let places: BTreeMap<NodeId, u64> = nodes.values().copied().zip(0..).collect();
    let told = Arc::new(move |src: NodeId, dst: NodeId, connection, size, at| {
        let place = |id| places.get(&id).copied().unwrap_or(u64::MAX);
        recorder.mix("delivery", &[place(src), place(dst), connection, size, at]);
    });
    net.configure(below, latency, told);
    stream
}
