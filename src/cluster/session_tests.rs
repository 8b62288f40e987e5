//! The session's deadline against late replies.
//!
//! Here and not beside the session, because that does not know that it is simulated.

use std::{sync::Arc, time::Duration};

use super::{Cluster, ClusterOptions, sim};
use crate::{
    concurrency::{Session, SessionOptions},
    etcd,
    history::{NodeName, Recorder},
    seed::Seed,
    storage::{GuardKind, Store},
    time::{Instant, sleep},
};

/// Replies take this much longer than requests.
const LATE: Duration = Duration::from_millis(40);

/// Grant and renewal are answered late; the deadline counts from when each was sent. One that
/// counted from the reply would be later by all of that time.
#[test]
fn the_deadline_counts_from_the_sending() {
    let (granted, renewed) = sim::run(Seed(1), || async {
        let options = ClusterOptions {
            quirks: Default::default(),
            clients: 1,
            latency: (Duration::from_millis(1), Duration::from_millis(2)),
            storage: Arc::new(|| Box::new(Store::of_kind(GuardKind::Monotonic))),
            wrap_disk: None,
        };
        let cluster = Cluster::start(Seed(1), options, Recorder::default());
        sleep(Duration::from_millis(5)).await;
        let client = NodeName::Client(1);
        let (etcd, node) = (cluster.id(NodeName::Etcd(1)), cluster.id(client));
        cluster.net().add_delay(etcd, node, LATE);
        let endpoints = cluster.etcd_endpoints();
        let work = cluster.spawn(client, async move {
            let mut client = etcd::Client::connect(&endpoints, None).await.expect("an address");
            // The connection is there before the grant is sent.
            client.status().await.expect("a member");
            let sent = Instant::now();
            let options = SessionOptions { ttl_s: 2, ..SessionOptions::default() };
            let session = Session::new(&client, options).await.expect("granted");
            let granted = session.deadline() - sent;
            sleep(Duration::from_secs(1)).await;
            (granted, session.deadline() - sent)
        });
        let deadlines = work.await.expect("not aborted");
        cluster.shut_down().await;
        deadlines
    })
    .expect("the run has no harness error");
    let (ttl, slack) = (Duration::from_secs(2), LATE / 2);
    assert!(granted <= ttl + slack, "granted: {granted:?}");
    // The renewal is sent at a third of the TTL.
    let expected = ttl + ttl / 3;
    assert!(renewed.abs_diff(expected) <= slack, "renewed: {renewed:?}, expected {expected:?}");
}
