//! A member on a simulated node: transport, timers, and what survives a restart.
//!
//! The shell around [`Model`]: it takes requests from connections, gives the model the time of the
//! member's own clock, and brings what changed to the watchers and to the commit log.

mod connection;

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use super::{
    frame::ServerFrame,
    model::{Effects, Hub, Model, StreamKey, wire::RangeRequest},
};
use crate::{
    history::{Commit, LeaseEvent},
    net::{MessageListener, MessageSender},
    time::{self, interval, sim::LocalClock},
};

/// How often the lessor looks for leases that have run out (etcd server/lease/lessor.go).
const EXPIRY_PERIOD: Duration = Duration::from_millis(500);

/// Told of everything that the store and the lessor do: the truth that a judge decides from.
pub trait CommitLog: Send + Sync {
    /// The store has a new revision.
    fn committed(&self, commit: &Commit);
    /// A lease began, was renewed, or ended.
    fn lease(&self, event: &LeaseEvent);
}

/// What a member is.
#[derive(Debug, Clone)]
pub struct MemberOptions {
    /// Its id; the two lowest bytes go into lease ids.
    pub member_id: u64,
    /// Where it listens, as `IP:PORT`.
    pub address: String,
}

impl Default for MemberOptions {
    fn default() -> Self {
        MemberOptions { member_id: 0x694d, address: "0.0.0.0:2379".to_owned() }
    }
}

/// A member's state: what is durable of it outlives its process.
pub struct MemberState {
    options: MemberOptions,
    inner: Mutex<Inner>,
}

impl std::fmt::Debug for MemberState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberState").field("options", &self.options).finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    pub(super) model: Model,
    pub(super) hub: Hub,
    /// The connections that can be answered.
    pub(super) connections: BTreeMap<u64, MessageSender>,
    /// Renewals of leases that have run out: they are answered once the lease is revoked.
    pub(super) late_renewals: Vec<(StreamKey, i64)>,
    next_connection: u64,
    requests: u64,
    log: Option<Arc<dyn CommitLog>>,
    clock: Option<LocalClock>,
}

impl MemberState {
    /// A member that has never run.
    pub fn new(options: MemberOptions) -> Self {
        let inner = Inner {
            model: Model::new(options.member_id, 0),
            hub: Hub::default(),
            connections: BTreeMap::new(),
            late_renewals: Vec::new(),
            next_connection: 0,
            requests: 0,
            log: None,
            clock: None,
        };
        MemberState { options, inner: Mutex::new(inner) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The member's id.
    pub fn member_id(&self) -> u64 {
        self.options.member_id
    }

    /// The key and lease of who owns a lock: the first-created key under `name/`.
    pub fn owner(&self, name: &str) -> Option<(String, i64)> {
        let prefix = format!("{name}/");
        let range_end = super::client::prefix_end(prefix.as_bytes());
        let request = RangeRequest {
            key: prefix.into(),
            range_end: range_end.into(),
            ..RangeRequest::default()
        };
        let range = self.lock().model.range(&request).ok()?;
        let owner = range.kvs.into_iter().min_by_key(|kv| kv.create_revision)?;
        Some((String::from_utf8_lossy(&owner.key).into_owned(), owner.lease))
    }

    /// Revokes a lease, as an operator would; false if there is no such lease.
    pub fn revoke(&self, lease: i64) -> bool {
        let mut inner = self.lock();
        let now = inner.now();
        let mut effects = Effects::default();
        let revoked = inner.model.lease_revoke(lease, now, &mut effects).is_ok();
        inner.publish(effects);
        revoked
    }

    /// How many requests it has taken.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }
}

impl Inner {
    /// The member's monotonic clock.
    pub(super) fn now(&self) -> Duration {
        self.clock.as_ref().map(LocalClock::now).unwrap_or_default()
    }

    pub(super) fn count_request(&mut self) {
        self.requests += 1;
    }

    /// Brings what has changed to the log and to the watchers.
    pub(super) fn publish(&mut self, effects: Effects) {
        if let Some(log) = &self.log {
            effects.commits.iter().for_each(|commit| log.committed(commit));
            effects.leases.iter().for_each(|event| log.lease(event));
        }
        for (revision, events) in &effects.events {
            for ((stream, _), reply) in self.hub.notify(*revision, events) {
                self.send(stream.connection, ServerFrame::Watch(stream.stream, reply));
            }
        }
        self.answer_late_renewals();
    }

    pub(super) fn send(&self, connection: u64, frame: ServerFrame) {
        if let Some(sender) = self.connections.get(&connection) {
            // A peer that is gone is noticed where its requests are read.
            let _ = sender.send(frame);
        }
    }

    fn answer_late_renewals(&mut self) {
        if self.late_renewals.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.late_renewals);
        let now = self.now();
        let (waiting, gone) = waiting
            .into_iter()
            .partition(|(_, lease)| self.model.lease_time_to_live(*lease, now).ttl_s >= 0);
        self.late_renewals = waiting;
        let revision = self.model.revision();
        for (stream, lease) in gone {
            let frame = ServerFrame::KeepAlive(stream.stream, revision, lease, 0);
            self.send(stream.connection, frame);
        }
    }
}

/// Runs a member on the running node until its process is killed.
///
/// # Errors
/// If it cannot listen on its address.
pub async fn serve(state: Arc<MemberState>, log: Arc<dyn CommitLog>) -> io::Result<()> {
    let listener = MessageListener::bind(&state.options.address).await?;
    let clock = LocalClock::here();
    {
        let mut inner = state.lock();
        // What a dead process left behind: its connections are gone, its data is not.
        inner.connections.clear();
        inner.hub = Hub::default();
        inner.late_renewals.clear();
        inner.log = Some(log);
        inner.model.restart(time::wall_ms(), state.options.member_id, clock.now());
        inner.clock = Some(clock);
    }
    tokio::spawn(expire(state.clone()));
    loop {
        let stream = listener.accept().await?;
        let (sender, receiver) = stream.split();
        let connection = {
            let mut inner = state.lock();
            inner.next_connection += 1;
            let connection = inner.next_connection;
            inner.connections.insert(connection, sender);
            connection
        };
        tokio::spawn(connection::run(state.clone(), connection, receiver));
    }
}

/// Looks for leases that have run out, on the member's clock.
async fn expire(state: Arc<MemberState>) {
    let mut ticks = interval(EXPIRY_PERIOD);
    loop {
        ticks.tick().await;
        let mut inner = state.lock();
        let now = inner.now();
        let mut effects = Effects::default();
        let ended = inner.model.expire(now, &mut effects);
        if !ended.is_empty() {
            tracing::debug!(leases = ?ended, "leases expired");
            inner.publish(effects);
        }
    }
}
