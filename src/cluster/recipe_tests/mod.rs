//! Sessions, locks and elections in simulation: the scenarios that one member can show.
//!
//! Here and not beside the recipes, because those do not know that they are simulated. Each test
//! is named after the field failure whose story it tells, and runs with the harness: true time,
//! several client nodes, the member's own record to compare with. A race is run with many seeds
//! that draw its moments, and both of its orders have to be seen.
//!
//! Not here, because they need several members: S03, X04, L01 to L03, W04. Not here, because they
//! are not about recipes: M14 and what the lock service makes of M02 and M13 (`etcd::tests::lock`),
//! X03 (`leasehold lock`, among the real tests). X07 cannot happen: the name of a queue key is that
//! of its lease, so a key is never moved to another lease.

mod election;
mod election_race;
mod elsewhere;
mod handle_race;
mod holding_race;
mod loss;
mod mutex;
mod mutex_race;
mod proclaim;
mod session;
mod session_race;

use std::{
    future::Future,
    rc::Rc,
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use madsim::task::JoinHandle;

use super::{Cluster, ClusterOptions, sim};
use crate::{
    concurrency::{FencingToken, LockError, Mutex, Session, SessionOptions},
    etcd::{
        Client, GetOptions,
        server::{Harm, RequestFault, RequestKind},
    },
    history::{Commit, EventKind, KeyChange, LeaseChange, NodeName, Recorder},
    point::{Pending, PointSim},
    seed::Seed,
    storage::{GuardKind, Store},
    time::{sim::true_ns, sleep},
};

/// How many seeds a race gets.
const SEEDS: u64 = 200;

/// A cluster of one member and some clients.
struct World {
    cluster: Cluster,
    record: StdMutex<Record>,
}

/// What the member has recorded so far, with the true time of each entry since the start.
#[derive(Default)]
struct Record {
    commits: Vec<(Duration, Commit)>,
    leases: Vec<(Duration, i64, LeaseChange)>,
}

/// A call of `lock` that runs on a client's node.
type Locking = JoinHandle<Result<FencingToken, LockError>>;

/// Whether the call was told that its session is over.
fn is_expired<T>(outcome: &Result<T, LockError>) -> bool {
    matches!(outcome, Err(LockError::SessionExpired))
}

/// Whether the call was told that its time is up.
fn is_timed_out<T>(outcome: &Result<T, LockError>) -> bool {
    matches!(outcome, Err(LockError::TimedOut(_)))
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Runs a story in a world of its own.
fn tell<T, F>(seed: u64, story: impl FnOnce(Rc<World>) -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let seed = Seed(seed);
    sim::run(seed, move || async move {
        let options = ClusterOptions {
            quirks: Default::default(),
            clients: 3,
            latency: (ms(1), ms(5)),
            storage: Arc::new(|| Box::new(Store::of_kind(GuardKind::Monotonic))),
            wrap_disk: None,
        };
        let cluster = Cluster::start(seed, options, Recorder::default());
        let world = Rc::new(World { cluster, record: StdMutex::default() });
        resume_stopped();
        sleep(ms(5)).await;
        let told = story(world.clone()).await;
        world.cluster.shut_down().await;
        told
    })
    .expect("the run has no harness error")
}

/// Resumes nodes that were stopped at a code point, when their pause is over.
fn resume_stopped() {
    let handle = madsim::runtime::Handle::current();
    let (told, mut stops) = tokio::sync::mpsc::unbounded_channel();
    PointSim::current().on_stop(Arc::new(move |node, pending, _| {
        // The listener lives as long as the world.
        let _ = told.send((node, pending.length));
    }));
    madsim::task::spawn(async move {
        while let Some((node, length)) = stops.recv().await {
            let handle = handle.clone();
            madsim::task::spawn(async move {
                sleep(length).await;
                handle.resume(node);
            });
        }
    });
}

/// A number below `bound` that this seed draws for its race.
fn draw(seed: u64, bound: u64) -> u64 {
    Seed(seed).stream("race").below(bound)
}

/// Whether both outcomes of a race were seen over the seeds, and how often each.
fn race(story: impl Fn(u64) -> bool) -> (usize, usize) {
    let outcomes: Vec<bool> = (0..SEEDS).map(story).collect();
    let yes = outcomes.iter().filter(|outcome| **outcome).count();
    (yes, outcomes.len() - yes)
}

/// Each order of the race often enough to believe that the window was met from both sides.
fn both((one, other): (usize, usize)) {
    assert!(one > 10 && other > 10, "one order {one} times, the other {other} times");
}

impl World {
    /// Runs something on a client's node, on its clock.
    async fn on<T: Send + 'static>(
        &self,
        client: u8,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.cluster.spawn(NodeName::Client(client), work).await.expect("the node lives")
    }

    /// A session on a client's node, of this TTL in seconds.
    async fn session(&self, client: u8, ttl_s: i64) -> Session {
        let endpoints = self.cluster.etcd_endpoints();
        let options =
            SessionOptions { ttl_s, request_timeout: ms(500), ..SessionOptions::default() };
        self.on(client, async move {
            let client = Client::connect(&endpoints, None).await.expect("an address");
            Session::new(&client, options).await.expect("granted")
        })
        .await
    }

    /// A client of etcd that takes no part.
    async fn outsider(&self) -> Client {
        Client::connect(self.cluster.etcd_endpoints(), None).await.expect("an address")
    }

    /// The keys of a queue, first created first.
    async fn queue(&self, prefix: &str) -> Vec<String> {
        let options = GetOptions::new().with_prefix();
        let mut client = self.outsider().await;
        let reply = client.get(prefix, Some(options)).await.expect("readable");
        let mut kvs = reply.kvs().to_vec();
        kvs.sort_by_key(|kv| kv.create_revision());
        kvs.iter().map(|kv| kv.key_str().expect("UTF-8").to_owned()).collect()
    }

    /// A handle on a lock with a session of its own.
    async fn mutex(&self, client: u8, ttl_s: i64, name: &str) -> Arc<Mutex> {
        let session = self.session(client, ttl_s).await;
        Arc::new(Mutex::new(&session, name))
    }

    /// Begins to wait for a lock.
    fn locking(&self, client: u8, mutex: &Arc<Mutex>) -> Locking {
        let mutex = mutex.clone();
        self.cluster.spawn(NodeName::Client(client), async move { mutex.lock().await })
    }

    /// Waits for a lock this long.
    async fn lock_for(
        &self,
        client: u8,
        mutex: &Arc<Mutex>,
        limit: Duration,
    ) -> Result<FencingToken, LockError> {
        let mutex = mutex.clone();
        self.on(client, async move { mutex.lock_for(limit).await }).await
    }

    /// Takes a lock that is free.
    async fn lock(&self, client: u8, mutex: &Arc<Mutex>) -> FencingToken {
        self.locking(client, mutex).await.expect("no panic").expect("it is free")
    }

    async fn unlock(&self, client: u8, mutex: &Arc<Mutex>) -> Result<(), LockError> {
        let mutex = mutex.clone();
        self.on(client, async move { mutex.unlock().await }).await
    }

    /// Holds back all messages between a client and etcd, in both directions.
    fn cut(&self, client: u8) {
        let (node, etcd) = self.link(client);
        self.cluster.net().cut(node, etcd);
        self.cluster.net().cut(etcd, node);
    }

    fn mend(&self, client: u8) {
        let (node, etcd) = self.link(client);
        self.cluster.net().mend(node, etcd);
        self.cluster.net().mend(etcd, node);
    }

    fn link(&self, client: u8) -> (madsim::task::NodeId, madsim::task::NodeId) {
        (self.cluster.id(NodeName::Client(client)), self.cluster.id(NodeName::Etcd(1)))
    }

    /// Stops a client's node when it next comes to a code point.
    fn pause_at(&self, client: u8, point: &str, length: Duration) {
        let pending = Pending { fault: 0, point: point.to_owned(), occurrence: 1, length };
        PointSim::current().wait_for(self.cluster.id(NodeName::Client(client)), pending);
    }

    /// Harms the next requests of a kind, whoever sends them.
    fn harm(&self, kind: RequestKind, harm: Harm, count: u64) {
        self.cluster.member().inject(RequestFault { count, ..RequestFault::next(kind, harm) });
    }

    fn received(&self, kind: RequestKind) -> u64 {
        self.cluster.member().received(kind)
    }

    /// The key of the lock's owner, as the member sees it now.
    fn owner(&self, name: &str) -> Option<String> {
        self.cluster.member().owner(name).map(|(key, _)| key)
    }

    /// Takes in what the member has recorded since the last look.
    fn look(&self) -> std::sync::MutexGuard<'_, Record> {
        let mut record = self.record.lock().expect("no panic");
        for event in self.cluster.recorder().finish().0.events {
            let at = Duration::from_nanos(event.at_ns);
            match event.kind {
                EventKind::Commit(commit) => record.commits.push((at, commit)),
                EventKind::Lease(event) => record.leases.push((at, event.lease, event.change)),
                _ => {}
            }
        }
        record
    }

    /// When a key was deleted, each time, and in which revision.
    fn deletions(&self, key: &str) -> Vec<(Duration, i64)> {
        let record = self.look();
        let deletes = |commit: &Commit| {
            let mut events = commit.events.iter();
            events.any(|event| event.key == key && event.change == KeyChange::Delete)
        };
        let commits = record.commits.iter().filter(|(_, commit)| deletes(commit));
        commits.map(|(at, commit)| (*at, commit.revision)).collect()
    }

    /// When a revision was made.
    fn committed_at(&self, revision: i64) -> Duration {
        let record = self.look();
        let mut commits = record.commits.iter();
        commits.find(|(_, commit)| commit.revision == revision).expect("it was made").0
    }

    /// The create revisions of a key's incarnations, in order.
    fn incarnations(&self, key: &str) -> Vec<i64> {
        let record = self.look();
        let events = record.commits.iter().flat_map(|(_, commit)| &commit.events);
        let mut revisions: Vec<i64> =
            events.filter(|event| event.key == key).map(|event| event.create_revision).collect();
        revisions.dedup();
        revisions
    }

    /// How often a key was written.
    fn puts(&self, key: &str) -> usize {
        let record = self.look();
        let events = record.commits.iter().flat_map(|(_, commit)| &commit.events);
        events.filter(|event| event.key == key && event.change == KeyChange::Put).count()
    }

    /// When a lease changed in this way, each time.
    fn changes(&self, lease: i64, change: LeaseChange) -> Vec<Duration> {
        let record = self.look();
        let changes = record.leases.iter().filter(|(_, id, what)| (*id, *what) == (lease, change));
        changes.map(|(at, _, _)| *at).collect()
    }

    /// The true time since the start.
    fn now(&self) -> Duration {
        Duration::from_nanos(true_ns())
    }
}
