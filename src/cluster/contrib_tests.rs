//! `contrib/lock`'s story, told by the real programs in a simulated cluster.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{Cluster, ClusterOptions, sim};
use crate::{
    contrib::{self, Options, Role, Version},
    etcd,
    history::{NodeName, Recorder},
    seed::Seed,
    storage::{GuardKind, Store},
    time::sleep,
};

type Lines = Arc<Mutex<Vec<String>>>;
/// How a client ended: its exit status and what it printed.
type Ended = (u8, Vec<String>);

async fn play(cluster: &Cluster, node: u8, role: Role, version: Version) -> Ended {
    let options = Options { storage: cluster.storage_url(), version, ..Options::new(role) };
    let endpoints = cluster.etcd_endpoints();
    let lines = Lines::default();
    let shown = lines.clone();
    let prompt = sleep(Duration::from_secs(6));
    let program = async move {
        let connecting = etcd::Client::connect(&endpoints, None);
        let output = |line: &str| shown.lock().unwrap().push(line.to_owned());
        contrib::run(&options, connecting, output, prompt).await
    };
    let status = cluster.spawn(NodeName::Client(node), program).await.expect("nobody kills it");
    let lines = lines.lock().unwrap().clone();
    (status, lines)
}

/// Client 1 keeps its lease alive while it waits, unless its node stops: here it is paused.
fn story(kind: GuardKind, version: Version) -> (Ended, Ended, Ended) {
    let told = sim::run(Seed(1), move || async move {
        let options = ClusterOptions {
            quirks: Default::default(),
            clients: 2,
            latency: (Duration::from_millis(1), Duration::from_millis(1)),
            storage: Arc::new(move || Box::new(Store::of_kind(kind))),
            wrap_disk: None,
        };
        let cluster = Cluster::start(Seed(1), options, Recorder::default());
        sleep(Duration::from_millis(100)).await;
        let paused = async {
            sleep(Duration::from_secs(1)).await;
            let handle = madsim::runtime::Handle::current();
            let id = cluster.id(NodeName::Client(1));
            handle.pause(id);
            let second = play(&cluster, 2, Role::Second, version).await;
            handle.resume(id);
            second
        };
        let first = play(&cluster, 1, Role::First, version);
        let (first, second) = tokio::join!(first, paused);
        let third = play(&cluster, 2, Role::Second, version).await;
        (first, second, third)
    });
    told.unwrap()
}

/// The original's story, word for word, and what it hides: client 2 a second time is refused by
/// `equal` though it holds the lock, and exits with status 1.
#[test]
fn the_story_as_the_original_tells_it() {
    let (first, second, third) = story(GuardKind::Equal, Version::Lease);
    let version = |lines: &[String]| lines[2].rsplit(' ').next().unwrap().to_owned();
    let (old, new) = (version(&first.1), version(&second.1));
    let expected = [
        "client 1 starts".to_owned(),
        "created etcd client and session".to_owned(),
        format!("acquired lock, version: {old}"),
        format!(
            "please manually revoke the lease using 'etcdctl lease revoke {old}' or wait for it \
             to expire, then start executing client 2 and hit any key..."
        ),
        "resuming client 1".to_owned(),
        format!(
            "expected fail to write to storage with old lease version: error: given version \
             ({old}) is different from the existing version ({new})"
        ),
    ];
    assert_eq!(first, (0, expected.to_vec()));
    assert_eq!(second.0, 0);
    assert_eq!(second.1[3], "this is client 2, continuing");
    assert_eq!(second.1[4], format!("successfully write a key to storage using lease {new}"));
    assert_eq!(third.0, 1);
    assert!(third.1[4].starts_with("unexpected fail to write to storage: error: given version ("));
}

/// With an order instead of equality, and tokens that have one, the rightful holder gets in.
#[test]
fn the_story_with_monotonic_tokens() {
    let (first, second, third) = story(GuardKind::Monotonic, Version::CreateRevision);
    assert!(first.1[5].contains("error: stale token: given version ("), "{:?}", first.1);
    assert_eq!((first.0, second.0, third.0), (0, 0, 0), "{:?}", third.1);
}
