//! Each family does what its name says, and heals: seen from the nodes, not from its counter.
//!
//! Faults are begun and ended by hand on a cluster without a workload, so that a test sees the
//! world before, during and after.

mod etcd;
mod network;
mod node;
mod storage;

use std::{future::Future, sync::Arc, time::Duration};

use super::{Begun, family_of};
use crate::{
    cluster::{Cluster, ClusterOptions, sim},
    etcd as client,
    history::{NodeName, Recorder},
    plan::{Fault, FaultKind},
    seed::Seed,
    storage::{
        Client as StorageClient, ClientOptions, GuardKind, Request, Response, StorageError, Store,
    },
    time::{Instant, sleep},
};

const CLIENT: NodeName = NodeName::Client(1);
const ETCD: NodeName = NodeName::Etcd(1);

/// Ends a fault and gives its effect.
type End = Box<dyn FnOnce(&Cluster) -> u64>;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Runs a story in a fresh cluster of two clients, with one millisecond a message.
fn tell<T, F>(seed: u64, story: impl FnOnce(Cluster) -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    sim::run(Seed(seed), move || async move {
        let options = ClusterOptions {
            quirks: Default::default(),
            clients: 2,
            latency: (ms(1), ms(1)),
            storage: Arc::new(|| Box::new(Store::of_kind(GuardKind::Monotonic))),
            wrap_disk: None,
        };
        let cluster = Cluster::start(Seed(seed), options, Recorder::default());
        sleep(ms(20)).await;
        let told = story(cluster.clone()).await;
        cluster.shut_down().await;
        told
    })
    .expect("the run has no harness error")
}

/// Begins a fault by hand; `length_ms` is what its plan would say.
fn begin(cluster: &Cluster, length_ms: u64, kind: FaultKind) -> End {
    let fault = Fault { start_ms: 0, length_ms, kind };
    match (family_of(&fault.kind).begin)(cluster, 0, &fault) {
        Begun::Active(end) => end,
        Begun::Skipped(why) => panic!("{fault} was skipped: {why}"),
        Begun::Armed => panic!("{fault} waits for a point"),
    }
}

/// Whether a fault is refused, and why.
fn skipped(cluster: &Cluster, kind: FaultKind) -> Option<&'static str> {
    match (family_of(&kind).begin)(cluster, 0, &Fault { start_ms: 0, length_ms: 1000, kind }) {
        Begun::Skipped(why) => Some(why),
        Begun::Active(_) | Begun::Armed => None,
    }
}

/// One request to the storage over a connection of its own: the answer, and how long it took.
async fn ask(
    cluster: &Cluster,
    from: NodeName,
    request: Request,
) -> (Result<Response, StorageError>, Duration) {
    let url = cluster.storage_url();
    let asked = cluster.spawn(from, async move {
        let options = ClientOptions { attempt_timeout: ms(20_000), ..ClientOptions::default() };
        let mut client = StorageClient::new(&url, options).expect("the URL is right");
        let began = Instant::now();
        let answer = client.call(&request).await;
        (answer, began.elapsed())
    });
    asked.await.expect("the client's node is not killed")
}

/// Writes under a token, which must rise.
async fn write(cluster: &Cluster, value: &str, token: i64) -> (bool, Duration) {
    let (answer, took) = ask(cluster, CLIENT, Request::write("k", value, token)).await;
    (answer.is_ok_and(|answer| answer.err.is_empty()), took)
}

/// What the storage has under the key; none if it has nothing.
async fn stored(cluster: &Cluster) -> Option<String> {
    let (answer, _) = ask(cluster, NodeName::Client(2), Request::read("k")).await;
    let answer = answer.expect("the storage answers");
    answer.err.is_empty().then_some(answer.val)
}

/// Does something with a client of etcd on a node.
async fn with_etcd<T, F>(
    cluster: &Cluster,
    from: NodeName,
    work: impl FnOnce(client::Client) -> F + Send + 'static,
) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let endpoints = cluster.etcd_endpoints();
    let asked = cluster.spawn(from, async move {
        let client = client::Client::connect(&endpoints, None).await.expect("etcd listens");
        work(client).await
    });
    asked.await.expect("the client's node is not killed")
}
