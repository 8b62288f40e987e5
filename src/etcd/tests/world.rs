//! A world for the tests of the facade: a member, a client's node, a network between them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use madsim::{
    runtime::{Handle, NodeHandle, Runtime},
    task::JoinHandle,
};
use tonic::Code;

use crate::{
    etcd::{
        Client, Compare, CompareOp, ConnectOptions, Error, GetOptions, LeaseGrantOptions,
        PutOptions, SortOrder, SortTarget, Txn, TxnOp,
        quirk::Quirk,
        server::{CommitLog, MemberOptions, MemberState, serve},
    },
    history::{Commit, LeaseChange, LeaseEvent},
    net::NetSim,
    time::{sim::ClockSim, sleep},
};

/// Where the member listens.
pub(super) const ENDPOINT: &str = "http://10.0.0.1:2379";

/// Seconds.
pub(super) fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// What the member did.
#[derive(Default)]
pub(super) struct Log {
    commits: Mutex<Vec<Commit>>,
    leases: Mutex<Vec<LeaseEvent>>,
}

impl CommitLog for Log {
    fn committed(&self, commit: &Commit) {
        self.commits.lock().expect("no panic in a log").push(commit.clone());
    }

    fn lease(&self, event: &LeaseEvent) {
        self.leases.lock().expect("no panic in a log").push(event.clone());
    }
}

impl Log {
    pub(super) fn commits(&self) -> Vec<Commit> {
        self.commits.lock().expect("no panic in a log").clone()
    }

    /// What became of leases; promotions of the member, which are of no lease, are left out.
    pub(super) fn leases(&self) -> Vec<LeaseEvent> {
        let mut leases = self.leases.lock().expect("no panic in a log").clone();
        leases.retain(|event| !matches!(event.change, LeaseChange::Promoted { .. }));
        leases
    }
}

/// A member and a client's node.
pub(super) struct World {
    pub(super) member: NodeHandle,
    pub(super) client: NodeHandle,
    pub(super) state: Arc<MemberState>,
    pub(super) log: Arc<Log>,
}

impl World {
    fn new(options: MemberOptions) -> Self {
        let node = |ip: [u8; 4]| {
            let node = Handle::current().create_node().build();
            NetSim::current().set_address(node.id(), ip.into());
            node
        };
        let world = World {
            member: node([10, 0, 0, 1]),
            client: node([10, 0, 0, 2]),
            state: Arc::new(MemberState::new(options)),
            log: Arc::default(),
        };
        world.serve();
        world
    }

    pub(super) fn serve(&self) -> JoinHandle<std::io::Result<()>> {
        let (state, log) = (self.state.clone(), self.log.clone());
        // A handle from before a kill would spawn on the dead process.
        let node = Handle::current().get_node(self.member.id()).expect("the node exists");
        node.spawn(serve(state, log))
    }
}

impl World {
    /// Kills the member.
    pub(super) fn kill(&self) {
        Handle::current().kill(self.member.id());
    }

    /// Kills the member, and starts it again after some time.
    pub(super) async fn restart_after(&self, down: Duration) {
        self.kill();
        sleep(down).await;
        Handle::current().restart(self.member.id());
        self.serve();
        sleep(s(0.01)).await;
    }
}

/// A client of the member.
pub(super) async fn client() -> Client {
    Client::connect([ENDPOINT], None).await.expect("the endpoint is well formed")
}

/// A client that insists on a leader.
pub(super) async fn strict_client() -> Client {
    let options = ConnectOptions::new().with_require_leader(true);
    Client::connect([ENDPOINT], Some(options)).await.expect("the endpoint is well formed")
}

/// Grants a lease with this id.
pub(super) async fn grant(client: &mut Client, id: i64, ttl_s: i64) {
    let options = LeaseGrantOptions::new().with_id(id);
    client.lease_grant(ttl_s, Some(options)).await.expect("granted");
}

/// Puts a key on a lease.
pub(super) async fn put_on(client: &mut Client, key: &str, lease: i64) {
    let options = PutOptions::new().with_lease(lease);
    client.put(key, "v", Some(options)).await.expect("put");
}

/// Whether a key is there.
pub(super) async fn exists(client: &mut Client, key: &str) -> bool {
    client.get(key, None).await.expect("an answer").count() == 1
}

/// The seconds that are left to a lease.
pub(super) async fn ttl(client: &mut Client, id: i64) -> i64 {
    client.lease_time_to_live(id, None).await.expect("an answer").ttl()
}

/// The current revision.
pub(super) async fn revision(client: &mut Client) -> i64 {
    let answer = client.get("none", None).await.expect("an answer");
    answer.header().expect("a header").revision()
}

/// Code and text of an error.
pub(super) fn told(error: Error) -> (Code, String) {
    match error {
        Error::GRpcStatus(status) => (status.code(), status.message().to_owned()),
        other => panic!("no status: {other}"),
    }
}

/// A queue key of a lock: put if it is absent, and read it.
pub(super) fn enqueue(name: &str, lease: i64) -> Txn {
    let key = format!("{name}/{lease:x}");
    Txn::new()
        .when([Compare::create_revision(key.clone(), CompareOp::Equal, 0)])
        .and_then([TxnOp::put(key.clone(), "", Some(PutOptions::new().with_lease(lease)))])
        .or_else([TxnOp::get(key, None)])
}

/// Runs the body in a world.
pub(super) fn run<T: Send + 'static>(body: impl AsyncFnOnce(&World) -> T + Send + 'static) -> T {
    run_with(MemberOptions::default(), body)
}

/// Runs the body in a world whose member has these quirks.
pub(super) fn run_with_quirks<T: Send + 'static>(
    quirks: &[Quirk],
    body: impl AsyncFnOnce(&World) -> T + Send + 'static,
) -> T {
    let quirks = quirks.iter().copied().collect();
    run_with(MemberOptions { quirks, ..MemberOptions::default() }, body)
}

/// Runs the body in a world with this member.
pub(super) fn run_with<T: Send + 'static>(
    options: MemberOptions,
    body: impl AsyncFnOnce(&World) -> T + Send + 'static,
) -> T {
    let body = move || async move {
        let world = World::new(options);
        sleep(s(0.01)).await;
        let result = body(&world).await;
        let handle = Handle::current();
        handle.kill(world.client.id());
        handle.kill(world.member.id());
        madsim::time::sleep(s(0.01)).await;
        result
    };
    // The layer that makes runtimes for everybody is above this one.
    let thread = std::thread::spawn(move || {
        let runtime = Runtime::with_seed_and_config(1, madsim::Config::default());
        runtime.add_simulator::<ClockSim>();
        runtime.add_simulator::<NetSim>();
        runtime.block_on(body())
    });
    thread.join().expect("the run does not panic")
}

/// Runs the body on the client's node with a client.
pub(super) fn with_client(body: impl AsyncFnOnce(Client) -> Result<(), Error> + Send + 'static) {
    run(async |_| {
        let client = Client::connect([ENDPOINT], None).await.expect("the endpoint is well formed");
        body(client).await.expect("the member answers");
    });
}

/// The first-created key of a prefix.
pub(super) fn first_created() -> GetOptions {
    GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend).with_limit(1)
}
