//! The truth about the lock's queue: a watch of its prefix from revision 1, and a lower bound for
//! the time of each commit.
//!
//! A watch tells a commit after it happened. Linearizable reads beside it tell when it had not:
//! the sending of the last read that was answered with a lower revision.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::{
    etcd::{Client, EventType, GetOptions, WatchOptions, WatchResponse},
    history::{Cause, Commit, Event, EventKind, KeyChange, KeyEvent, NodeName},
    time::{Instant, sleep, timeout},
};
use tokio::task::JoinHandle;

use super::monotonic_ns;

/// How long a read, or the last rows of the watch, may take before they are asked for again.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Seen {
    rows: Vec<Event>,
    /// Revision, and when the read was sent that answered it.
    reads: Vec<(i64, u64)>,
    /// Why the record is not complete, if so.
    broken: Option<String>,
}

/// Watches until it is dropped or finished.
pub struct Watcher {
    client: Client,
    prefix: String,
    seen: Arc<Mutex<Seen>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Watcher {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Watcher {
    pub fn start(client: &Client, prefix: &str) -> Watcher {
        let seen = Arc::<Mutex<Seen>>::default();
        let watching = watch(client.clone(), prefix.to_owned(), seen.clone());
        let reading = read(client.clone(), prefix.to_owned(), seen.clone());
        let tasks = [tokio::spawn(watching), tokio::spawn(reading)];
        Watcher { client: client.clone(), prefix: prefix.to_owned(), seen, tasks }
    }

    /// The rows, if they are all there are: nobody writes outside the prefix, so revisions have no
    /// gaps.
    pub async fn finish(self) -> Result<Vec<Event>, String> {
        let newest = loop {
            match revision(&self.client, &self.prefix).await {
                Some(newest) => break newest,
                None => sleep(Duration::from_millis(50)).await,
            }
        };
        let deadline = Instant::now() + 10 * PATIENCE;
        let last = || lock(&self.seen).rows.last().map_or(1, |row| commit_of(row).revision);
        while last() < newest && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
        let seen = std::mem::take(&mut *lock(&self.seen));
        if let Some(why) = seen.broken {
            return Err(why);
        }
        let revisions = seen.rows.iter().map(|row| commit_of(row).revision);
        match revisions.clone().eq(2..=newest) {
            true => Ok(seen.rows),
            false => Err(format!("of {newest} revisions there are {}", revisions.count())),
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().expect("no panic while it is locked")
}

fn commit_of(row: &Event) -> &Commit {
    match &row.kind {
        EventKind::Commit(commit) => commit,
        other => panic!("no commit: {other:?}"),
    }
}

async fn revision(client: &Client, prefix: &str) -> Option<i64> {
    let options = GetOptions::new().with_prefix().with_count_only();
    let mut client = client.clone();
    let reply = timeout(PATIENCE, client.get(prefix, Some(options))).await.ok()?.ok()?;
    Some(reply.header()?.revision())
}

async fn read(client: Client, prefix: String, seen: Arc<Mutex<Seen>>) {
    loop {
        let sent = monotonic_ns();
        if let Some(revision) = revision(&client, &prefix).await {
            lock(&seen).reads.push((revision, sent));
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Asks again where a stream ended: at the revision after the last.
async fn watch(mut client: Client, prefix: String, seen: Arc<Mutex<Seen>>) {
    loop {
        let next = lock(&seen).rows.last().map_or(1, |row| commit_of(row).revision + 1);
        let options = WatchOptions::new().with_prefix().with_start_revision(next);
        let opened = client.watch(prefix.clone(), Some(options.with_prev_key())).await;
        if let Ok(mut stream) = opened {
            while let Ok(Some(reply)) = stream.message().await {
                if let Err(why) = take(&reply, &mut lock(&seen)) {
                    lock(&seen).broken = Some(why);
                    return;
                }
                if reply.canceled() {
                    break;
                }
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn take(reply: &WatchResponse, seen: &mut Seen) -> Result<(), String> {
    if reply.compact_revision() > 0 {
        return Err(format!("compacted at revision {}", reply.compact_revision()));
    }
    let at_ns = monotonic_ns();
    for event in reply.events() {
        let kv = event.kv().ok_or("an event without a key")?;
        let revision = kv.mod_revision();
        let (change, of) = match event.event_type() {
            EventType::Put => (KeyChange::Put, kv),
            EventType::Delete => (KeyChange::Delete, event.prev_kv().ok_or("no previous value")?),
        };
        let key = String::from_utf8_lossy(kv.key()).into_owned();
        let key =
            KeyEvent { change, key, create_revision: of.create_revision(), lease: of.lease() };
        if let Some(Event { kind: EventKind::Commit(last), .. }) = seen.rows.last_mut()
            && last.revision == revision
        {
            last.events.push(key);
            continue;
        }
        let before = seen.reads.iter().rev().find(|(answered, _)| *answered < revision);
        let cause = if change == KeyChange::Put { Cause::Txn } else { Cause::Delete };
        let kind = EventKind::Commit(Commit {
            index: seen.rows.len() as u64 + 1,
            revision,
            cause,
            member_ns: before.map_or(0, |(_, sent)| *sent),
            events: vec![key],
        });
        let seq = seen.rows.len() as u64;
        seen.rows.push(Event { seq, at_ns, node: NodeName::Etcd(1), kind });
    }
    Ok(())
}
