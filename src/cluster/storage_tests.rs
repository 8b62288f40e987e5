//! The storage's client and server together, over the simulated network.
//!
//! Here and not beside them, because the storage does not know that it is simulated.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use madsim::runtime::{Handle, NodeHandle};

use super::sim;
use crate::{
    history::{ApplyRow, Boundary, RowResult},
    net::{NetSim, TcpListener},
    seed::Seed,
    storage::{
        ApplyLog, Client, ClientOptions, Definiteness, GuardKind, Request, Service, ServiceOptions,
        StorageError, Store, server,
    },
    time::sleep,
};

const URL: &str = "http://10.0.0.9:8080";

/// What the storage did.
#[derive(Default)]
struct Rows(Mutex<Vec<ApplyRow>>, Mutex<Vec<Boundary>>);

impl ApplyLog for Rows {
    fn boundary(&self, boundary: Boundary) {
        self.1.lock().unwrap().push(boundary);
    }

    fn applied(&self, row: ApplyRow) {
        self.0.lock().unwrap().push(row);
    }
}

fn node(name: &str, address: &str) -> NodeHandle {
    let address: IpAddr = address.parse().unwrap();
    let node = Handle::current().create_node().name(name).ip(address).build();
    NetSim::current().set_address(node.id(), address);
    node
}

fn start(kind: GuardKind) -> (NodeHandle, Arc<Rows>) {
    let rows = Arc::new(Rows::default());
    let machine = Box::new(Store::of_kind(kind));
    let service = Arc::new(Service::new(machine, rows.clone(), ServiceOptions::default()));
    let storage = node("storage", "10.0.0.9");
    storage.spawn(async move {
        let listener = TcpListener::bind("10.0.0.9:8080").await.unwrap();
        server::serve(listener, service, std::future::pending()).await;
    });
    (storage, rows)
}

fn results(rows: &Rows) -> Vec<RowResult> {
    rows.0.lock().unwrap().iter().map(|row| row.result).collect()
}

/// A holder enters, writes and reads; an older one is told that it is stale; rows carry the tags
/// and lie between the arrival and the answer of their request.
#[test]
fn holders_are_fenced_over_http() {
    let run = sim::run(Seed(1), || async {
        let (_storage, rows) = start(GuardKind::Monotonic);
        let client = node("client", "10.0.0.1");
        let task = client.spawn(async {
            sleep(Duration::from_millis(10)).await;
            let mut old = Client::new(URL, ClientOptions::default()).unwrap();
            let mut new = Client::new(URL, ClientOptions::default()).unwrap();
            let mut older = old.holding("d", 5);
            assert_eq!(older.enter("k", Some(70)).await.unwrap(), None);
            older.write("k", "a", Some(71)).await.unwrap();
            let mut newer = new.holding("d", 6);
            assert_eq!(newer.enter("k", Some(72)).await.unwrap().as_deref(), Some("a"));
            let stale = older.write("k", "b", None).await.unwrap_err();
            assert_eq!(stale.definiteness(), Definiteness::Definite);
            assert!(matches!(stale, StorageError::StaleToken { .. }), "{stale}");
            newer.write("k", "c", None).await.unwrap();
            let last = old.read_unfenced("d", "k", None).await.unwrap();
            assert_eq!(last.as_deref(), Some("c"));
            let answer = old.call(&Request::read("none")).await.unwrap();
            assert!(answer.is_not_found());
        });
        task.await.unwrap();
        let tags: Vec<_> = rows.0.lock().unwrap().iter().take(3).map(|row| row.tag).collect();
        assert_eq!(tags, [Some(70), Some(71), Some(72)]);
        assert_eq!(results(&rows)[3], RowResult::Refused);
        assert_eq!(rows.1.lock().unwrap().len(), 14);
    });
    run.unwrap();
}

/// A write whose answer is late is resent under its number and applied once.
#[test]
fn a_late_answer_is_resolved_by_a_resend() {
    let run = sim::run(Seed(2), || async {
        let (storage, rows) = start(GuardKind::Monotonic);
        let client = node("client", "10.0.0.1");
        let (src, dst) = (storage.id(), client.id());
        let task = client.spawn(async move {
            sleep(Duration::from_millis(10)).await;
            let mut client = Client::new(URL, ClientOptions::default()).unwrap();
            let mut holding = client.holding("d", 5);
            holding.enter("k", None).await.unwrap();
            NetSim::current().cut(src, dst);
            let mend = async {
                sleep(Duration::from_millis(1500)).await;
                NetSim::current().mend(src, dst);
            };
            let (written, ()) = tokio::join!(holding.write("k", "a", None), mend);
            written.unwrap();
            assert_eq!(holding.read("k", None).await.unwrap().as_deref(), Some("a"));
        });
        task.await.unwrap();
        let results = results(&rows);
        assert!(results.contains(&RowResult::Replayed), "{results:?}");
        assert_eq!(rows.0.lock().unwrap().iter().filter(|row| row.effect).count(), 1);
    });
    run.unwrap();
}

/// Nobody listens: certainly nothing happened. Nobody answers: nobody knows, and the holding ends.
#[test]
fn refused_and_unanswered_differ() {
    let run = sim::run(Seed(3), || async {
        let client = node("client", "10.0.0.1");
        let storage = node("storage", "10.0.0.9");
        let task = client.spawn(async move {
            let options =
                ClientOptions { give_up_after: Duration::from_secs(3), ..Default::default() };
            let mut client = Client::new(URL, options).unwrap();
            let mut holding = client.holding("d", 5);
            let refused = holding.write("k", "a", None).await.unwrap_err();
            assert_eq!(refused.definiteness(), Definiteness::Definite, "{refused}");
            assert!(matches!(refused, StorageError::Unreachable { .. }), "{refused}");
            storage.spawn(async {
                let listener = TcpListener::bind("10.0.0.9:8080").await.unwrap();
                let mut open = Vec::new();
                while let Ok((stream, _)) = listener.accept().await {
                    open.push(stream);
                }
            });
            sleep(Duration::from_millis(10)).await;
            let silent = holding.write("k", "a", None).await.unwrap_err();
            assert_eq!(silent.definiteness(), Definiteness::Indefinite, "{silent}");
            let after = holding.write("k", "b", None).await.unwrap_err();
            assert!(matches!(after, StorageError::GivenUp), "{after}");
        });
        task.await.unwrap();
    });
    run.unwrap();
}
