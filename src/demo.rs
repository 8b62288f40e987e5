//! contrib/lock's story, told in simulation by the real storage, lock and client code, and what the
//! original does not show.
//!
//! Act 1 is the original's: client 1 loses its lease while it waits, client 2 writes, client 1 is
//! refused. Act 2 runs client 2 once more: it holds the lock with the newest version, and the
//! equality check refuses it. Act 3 is act 1 and 2 with an order check on create revisions.

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{
    cluster::{Cluster, ClusterOptions, LOCK_NAME, sim},
    contrib::{self, Options, Role, Version},
    etcd,
    history::{NodeName, Recorder},
    runner::HarnessError,
    scenario::ChoiceError,
    seed::Seed,
    storage::{GuardKind, Store},
    time::sleep,
};

/// How client 1 loses its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossBy {
    /// An operator revokes it.
    Revoke,
    /// Its renewals do not get through until it has run out.
    Expiry,
    /// Client 1 stands still until it has run out.
    Pause,
}

impl FromStr for LossBy {
    type Err = ChoiceError;

    fn from_str(name: &str) -> Result<Self, ChoiceError> {
        match name {
            "revoke" => Ok(LossBy::Revoke),
            "expiry" => Ok(LossBy::Expiry),
            "pause" => Ok(LossBy::Pause),
            _ => Err(ChoiceError::Unknown {
                what: "way to lose the lease (--by)",
                name: name.to_owned(),
                known: "revoke, expiry, pause".to_owned(),
            }),
        }
    }
}

impl fmt::Display for LossBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LossBy::Revoke => "its lease is revoked",
            LossBy::Expiry => "its renewals are cut off until its lease has run out",
            LossBy::Pause => "it is paused until its lease has run out",
        })
    }
}

/// A part of the story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// What is done.
    pub title: String,
    /// What the clients printed, in order, with the client's number.
    pub lines: Vec<(u8, String)>,
    /// The exit status of each client that ended in this act, with its number.
    pub statuses: Vec<(u8, u8)>,
    /// What it shows, in one line.
    pub shows: &'static str,
}

/// Tells the whole story.
///
/// # Errors
/// If the simulation broke.
pub fn tell(by: LossBy) -> Result<Vec<Act>, HarnessError> {
    let mut acts = story(by, GuardKind::Equal, Version::Lease, ORIGINAL)?;
    acts.extend(story(by, GuardKind::Monotonic, Version::CreateRevision, ORDERED)?);
    Ok(acts)
}

/// Titles and morals of the two acts of a story.
type Words = [(&'static str, &'static str); 2];

const ORIGINAL: Words = [
    (
        "Act 1: contrib/lock as it is (equality check, lease id as version)",
        "fencing refuses the late write of a client that still believes in its lock",
    ),
    (
        "Act 2: the same storage, client 2 once more",
        "equality is not order: the rightful owner, with the newest version, is locked out",
    ),
];

const ORDERED: Words = [
    (
        "Act 3: order check, create revision of the owner key as token",
        "the late write is refused just the same",
    ),
    ("Act 3, continued: client 2 once more", "and the next owner is let in: its token is higher"),
];

fn story(
    by: LossBy,
    guard: GuardKind,
    version: Version,
    words: Words,
) -> Result<Vec<Act>, HarnessError> {
    sim::run(Seed(0), move || async move {
        let options = ClusterOptions {
            quirks: Default::default(),
            clients: 2,
            latency: (Duration::from_millis(1), Duration::from_millis(2)),
            storage: Arc::new(move || Box::new(Store::of_kind(guard))),
            wrap_disk: None,
        };
        let cluster = Cluster::start(Seed(0), options, Recorder::default());
        sleep(Duration::from_millis(5)).await;
        let stage = Stage { cluster, version, lines: Arc::default() };
        let statuses = stage.lose_the_lock(by).await;
        let (title, shows) = words[0];
        let first = stage.act(format!("{title}; client 1 waits while {by}"), statuses, shows);
        let status = stage.client(Role::Second, None).await;
        let (title, shows) = words[1];
        let second = stage.act(title.to_owned(), vec![(2, status)], shows);
        stage.cluster.shut_down().await;
        vec![first, second]
    })
}

struct Stage {
    cluster: Cluster,
    version: Version,
    lines: Arc<Mutex<Vec<(u8, String)>>>,
}

impl Stage {
    fn act(&self, title: String, statuses: Vec<(u8, u8)>, shows: &'static str) -> Act {
        let mut lines = self.lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Act { title, lines: std::mem::take(&mut lines), statuses, shows }
    }

    /// Runs a client on its node to its end; `key` is the key press that client 1 waits for.
    fn client(
        &self,
        role: Role,
        key: Option<oneshot::Receiver<()>>,
    ) -> impl Future<Output = u8> + use<> {
        let number = if role == Role::First { 1 } else { 2 };
        let options = Options {
            role,
            storage: self.cluster.storage_url(),
            version: self.version,
            ..Options::new(role)
        };
        let endpoints = self.cluster.etcd_endpoints();
        let lines = self.lines.clone();
        let play = async move {
            let output = |line: &str| {
                let mut lines = lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                lines.push((number, line.to_owned()));
            };
            let prompt = async {
                if let Some(key) = key {
                    // The end of input counts as a key press, as in the original.
                    let _ = key.await;
                }
            };
            let connecting = etcd::Client::connect(&endpoints, None);
            contrib::run(&options, connecting, output, prompt).await
        };
        let ended = self.cluster.spawn(NodeName::Client(number), play);
        async move { ended.await.expect("nobody aborts a client of the demo") }
    }

    /// Client 1 locks and waits, its lease ends, client 2 writes, client 1 goes on.
    async fn lose_the_lock(&self, by: LossBy) -> Vec<(u8, u8)> {
        let (press, key) = oneshot::channel();
        let first = self.client(Role::First, Some(key));
        let lease = self.owner_lease().await;
        let (one, etcd) = (NodeName::Client(1), NodeName::Etcd(1));
        let link = (self.cluster.id(one), self.cluster.id(etcd));
        match by {
            LossBy::Revoke => {
                self.cluster.member().revoke(lease);
            }
            LossBy::Expiry => self.cluster.net().cut(link.0, link.1),
            LossBy::Pause => self.cluster.pause(one),
        }
        while self.cluster.member().owner(LOCK_NAME).is_some_and(|(_, owner)| owner == lease) {
            sleep(Duration::from_millis(100)).await;
        }
        let second = self.client(Role::Second, None).await;
        match by {
            LossBy::Revoke => {}
            LossBy::Expiry => self.cluster.net().mend(link.0, link.1),
            LossBy::Pause => self.cluster.resume(one),
        }
        // The key press: client 1 may have ended only if its program broke.
        let _ = press.send(());
        vec![(2, second), (1, first.await)]
    }

    /// The lease of the lock's owner, once there is one.
    async fn owner_lease(&self) -> i64 {
        loop {
            let waits = |line: &(u8, String)| line.1.starts_with("please manually revoke");
            let waiting = {
                let lines = self.lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                lines.iter().any(waits)
            };
            match self.cluster.member().owner(LOCK_NAME) {
                Some((_, lease)) if waiting => return lease,
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    }
}
