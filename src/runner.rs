//! One run: setup, traffic with faults, heal, settle, final reads.
//!
//! The five phases are the story of every run. What comes out is a record; judging it is the next
//! step and needs nothing of this.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use madsim::task::JoinHandle;

use crate::{
    case::Case,
    cluster::{Cluster, ClusterOptions, DOMAIN, LOCK_NAME, sim},
    fault::Injector,
    history::{EventKind, History, NodeName, Phase, Recorder, hash::RunHash},
    scenario::{ChoiceError, Resolved, resolve},
    storage::{self, ClientOptions},
    system::System,
    time::{Instant, sim::true_ns, sleep, timeout},
    workload::{self, Ids, Process, Witness, Workload},
};

pub use crate::cluster::sim::HarnessError;

/// Clients must be done this long after everything healed: a lease, its queue, and all time-outs.
const SETTLE_MAX: Duration = Duration::from_secs(90);

/// What a run left behind.
#[derive(Debug, Clone)]
pub struct Run {
    /// What was run.
    pub case: Case,
    /// What happened.
    pub history: History,
    /// The hash of all that happened.
    pub hash: RunHash,
    /// How long it was, in simulated time.
    pub simulated: Duration,
    /// Requests that etcd and the storage answered, together.
    pub requests: u64,
}

/// Why a case gave no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The case names something that is not there, or its plan makes no sense.
    #[error(transparent)]
    Case(#[from] ChoiceError),
    /// The harness, or code under test, broke.
    #[error(transparent)]
    Harness(#[from] HarnessError),
}

/// Runs a case as it is.
///
/// # Errors
/// If the case names something that is not there, or a known bug: that one is for [`run_changed`].
pub fn run(case: &Case) -> Result<Run, RunError> {
    if !case.options.bug.is_empty() {
        return Err(ChoiceError::KnownBug { name: case.options.bug.clone() }.into());
    }
    run_changed(case, &|_| {})
}

/// Runs a case with other parts than those that its scenario names.
///
/// # Errors
/// If the case names something that is not there.
pub fn run_changed(case: &Case, change: &dyn Fn(&mut System)) -> Result<Run, RunError> {
    let resolved = resolve(case)?;
    let mut system = System::own(resolved.guard, resolved.workload.recipe, resolved.token);
    change(&mut system);
    let owned = case.clone();
    let done = sim::run(case.seed, move || phases(owned, resolved, system))?;
    Ok(done?)
}

async fn phases(case: Case, resolved: Resolved, system: System) -> Result<Run, HarnessError> {
    let recorder = Recorder::default();
    let phase = |phase| recorder.record(true_ns(), NodeName::Nemesis, EventKind::Phase(phase));

    phase(Phase::Setup);
    let options = ClusterOptions {
        clients: case.options.clients,
        latency: resolved.scenario.latency,
        storage: system.storage.clone(),
        quirks: system.quirks.clone(),
        wrap_disk: system.wrap_disk,
    };
    let cluster = Cluster::start(case.seed, options, recorder.clone());
    let mut clients = Clients::new(&cluster, &case, &system, resolved.workload);
    // Servers bind within their first steps; clients try again if they come too early.
    sleep(Duration::from_millis(5)).await;

    phase(Phase::Traffic);
    let mut injector = Injector::new(cluster.clone(), &case.plan);
    clients.start_all();
    run_traffic(&mut injector, &mut clients, resolved.scenario.traffic).await;

    phase(Phase::Heal);
    clients.ids.stop();
    injector.heal();
    clients.start_missing();

    phase(Phase::Settle);
    let settled = timeout(SETTLE_MAX, async {
        clients.join().await;
        cluster.storage_listens().await;
    });
    let settled = settled.await;

    // A client that hangs leaves the history without its last phase: unknown, never green.
    if settled.is_ok() {
        phase(Phase::FinalReads);
        final_reads(&cluster, &case, &system, &resolved, &clients.ids).await;
    }
    let (etcd, storage) = cluster.requests();
    cluster.shut_down().await;
    let (history, hash) = recorder.finish();
    let simulated = Duration::from_nanos(true_ns());
    Ok(Run { case, history, hash, simulated, requests: etcd + storage })
}

/// Restarted clients get their work back while the plan is executed.
async fn run_traffic(injector: &mut Injector, clients: &mut Clients, length: Duration) {
    const STEP: Duration = Duration::from_millis(500);
    let mut at = Duration::ZERO;
    while at < length {
        at = (at + STEP).min(length);
        injector.run(at).await;
        clients.start_missing();
    }
}

/// Writes what clients do into the record of the run.
struct Recording(Recorder);

impl Witness for Recording {
    fn record(&self, node: NodeName, kind: EventKind) {
        self.0.record(true_ns(), node, kind);
    }

    fn local_ns(&self, at: Instant) -> u64 {
        at.local().as_nanos() as u64
    }

    fn life_over(&self, draws: u64) {
        self.0.mix("draws client", &[draws]);
    }
}

/// The process of a client: what it knows of the cluster, and its random numbers.
fn process(
    cluster: &Cluster,
    case: &Case,
    (client, life): (u8, u32),
    (system, workload): (&System, &Workload),
    ids: &Arc<Ids>,
) -> Process {
    let stream = case.seed.stream(&format!("client-{client}/{life}"));
    Process {
        node: NodeName::Client(client),
        stream,
        etcd_endpoints: cluster.etcd_endpoints(),
        storage_url: cluster.storage_url(),
        lock: LOCK_NAME.to_owned(),
        domain: DOMAIN.to_owned(),
        make_lock: system.lock.clone(),
        is_definite: system.is_definite,
        linger: Duration::ZERO,
        holdings: case.options.holdings,
        ttl_s: case.options.ttl_s,
        thinkers: workload.thinkers,
        readers: case.options.readers,
        announces: true,
        ids: ids.clone(),
        witness: Arc::new(Recording(cluster.recorder().clone())),
    }
}

/// The client processes of a run.
struct Clients {
    cluster: Cluster,
    case: Case,
    system: System,
    workload: &'static Workload,
    ids: Arc<Ids>,
    running: BTreeMap<u8, (u32, JoinHandle<()>)>,
}

impl Clients {
    fn new(cluster: &Cluster, case: &Case, system: &System, workload: &'static Workload) -> Self {
        Clients {
            cluster: cluster.clone(),
            case: case.clone(),
            system: system.clone(),
            workload,
            ids: Arc::new(Ids::after(0)),
            running: BTreeMap::new(),
        }
    }

    fn start_all(&mut self) {
        for client in 1..=self.case.options.clients {
            self.start(client, 1);
        }
    }

    fn start(&mut self, client: u8, life: u32) {
        let parts = (&self.system, self.workload);
        let process = process(&self.cluster, &self.case, (client, life), parts, &self.ids);
        let node = NodeName::Client(client);
        let handle = self.cluster.spawn(node, (self.workload.client)(process));
        self.running.insert(client, (life, handle));
    }

    /// Starts the clients anew whose process was killed and whose node is up again.
    fn start_missing(&mut self) {
        for client in 1..=self.case.options.clients {
            let ended = self.running.get(&client).filter(|(_, handle)| handle.is_finished());
            let life = ended.map(|(life, _)| *life);
            let down = self.cluster.is_down(NodeName::Client(client));
            if let Some(life) = life.filter(|_| !down) {
                self.start(client, life + 1);
            }
        }
    }

    async fn join(&mut self) {
        for (_, handle) in self.running.values_mut() {
            // An aborted life has nothing to say; its history is complete as it is.
            let _ = handle.await;
        }
    }
}

/// Reads every key once more, from a node that no fault has touched.
async fn final_reads(
    cluster: &Cluster,
    case: &Case,
    system: &System,
    resolved: &Resolved,
    ids: &Arc<Ids>,
) {
    let keys = resolved.workload.keys;
    let process = process(cluster, case, (0, 0), (system, resolved.workload), ids);
    let url = cluster.storage_url();
    let reads = async move {
        let Ok(mut storage) = storage::Client::new(&url, ClientOptions::default()) else { return };
        for key in keys {
            workload::final_read(&process, &mut storage, key).await;
        }
    };
    // A read that fails leaves no answer in the history, and the judge says so.
    let _ = cluster.spawn(NodeName::Nemesis, reads).await;
}
