//! Sessions, locks and elections in simulation: the scenarios that one member can show.
//!
//! Here and not beside the recipes, because those do not know that they are simulated. Each test
//! is named after the field failure whose story it tells, and runs with the harness: true time,
//! several client nodes, the member's own record to compare with.

mod election;

use std::{future::Future, rc::Rc, time::Duration};

use super::{Cluster, ClusterOptions, sim};
use crate::{
    concurrency::{Session, SessionOptions},
    etcd::{Client, GetOptions},
    history::{NodeName, Recorder},
    seed::Seed,
    storage::{GuardKind, Store},
    time::sleep,
};

/// How many seeds a race gets.
const SEEDS: u64 = 200;

/// A cluster of one member and some clients.
struct World {
    cluster: Cluster,
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
            clients: 3,
            latency: (ms(1), ms(5)),
            storage: Box::new(Store::of_kind(GuardKind::Monotonic)),
        };
        let world = Rc::new(World { cluster: Cluster::start(seed, options, Recorder::default()) });
        sleep(ms(5)).await;
        let told = story(world.clone()).await;
        world.cluster.shut_down().await;
        told
    })
    .expect("the run has no harness error")
}

/// Whether both outcomes of a race were seen over the seeds, and how often each.
fn race(story: impl Fn(u64) -> bool) -> (usize, usize) {
    let outcomes: Vec<bool> = (0..SEEDS).map(story).collect();
    let yes = outcomes.iter().filter(|outcome| **outcome).count();
    (yes, outcomes.len() - yes)
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
}
