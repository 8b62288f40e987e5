//! The plain lock's session: a lease, its renewals, and a deadline on the own clock.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::task::JoinHandle;

use super::LockPolicy;
use crate::{
    etcd, point,
    system::{LockFailure, LockOptions},
    time::{Instant, sleep_until, timeout},
};

/// Ends a call that takes too long: its outcome is then unknown.
pub(super) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, LockFailure>>,
) -> Result<T, LockFailure> {
    let late = || LockFailure::unknown(format!("no answer within {limit:?}"));
    timeout(limit, call).await.unwrap_or_else(|_| Err(late()))
}

/// The session.
pub(super) struct Session<P> {
    pub(super) client: etcd::Client,
    pub(super) lease: i64,
    pub(super) ttl_s: i64,
    /// The revision of the store when it began.
    pub(super) revision: i64,
    pub(super) request_timeout: Duration,
    policy: Arc<P>,
    state: Arc<Mutex<State>>,
    renewals: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    deadline: Instant,
    over: bool,
}

impl<P> Drop for Session<P> {
    fn drop(&mut self) {
        self.renewals.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<P: LockPolicy> Session<P> {
    pub(super) async fn open(
        policy: Arc<P>,
        client: etcd::Client,
        options: LockOptions,
    ) -> Result<Self, LockFailure> {
        let sent = Instant::now();
        let mut asking = client.clone();
        let grant = async { Ok(asking.lease_grant(options.ttl_s, None).await?) };
        let grant = within(options.request_timeout, grant).await?;
        let (lease, ttl_s) = (grant.id(), grant.ttl());
        let ttl = Duration::from_secs(u64::try_from(ttl_s).unwrap_or(0));
        let revision = grant.header().map_or(0, |header| header.revision());
        let deadline = policy.counts_from(sent, Instant::now()) + ttl;
        let state = Arc::new(Mutex::new(State { deadline, over: false }));
        let renewals = Renewals {
            policy: policy.clone(),
            client: client.clone(),
            lease,
            ttl,
            state: state.clone(),
        };
        let renewals = tokio::spawn(renewals.run(sent));
        let request_timeout = options.request_timeout;
        Ok(Session { client, lease, ttl_s, revision, request_timeout, policy, state, renewals })
    }

    pub(super) fn deadline(&self) -> Instant {
        lock(&self.state).deadline
    }

    pub(super) fn is_live(&self) -> bool {
        let state = *lock(&self.state);
        !state.over && (!self.policy.ends_at_deadline() || Instant::now() < state.deadline)
    }

    /// Waits for the end.
    pub(super) fn over(&self) -> impl Future<Output = ()> + Send + use<P> {
        let (state, policy) = (self.state.clone(), self.policy.clone());
        async move {
            loop {
                let State { deadline, over } = *lock(&state);
                let now = Instant::now();
                if over || (policy.ends_at_deadline() && now >= deadline) {
                    return;
                }
                let step = now + Duration::from_millis(200);
                sleep_until(if now < deadline { deadline.min(step) } else { step }).await;
            }
        }
    }

    /// What a request needs that outlives the session.
    pub(super) fn detached(&self) -> (etcd::Client, Duration) {
        (self.client.clone(), self.request_timeout)
    }

    pub(super) async fn close(&mut self) -> Result<(), LockFailure> {
        self.renewals.abort();
        lock(&self.state).over = true;
        let mut client = self.client.clone();
        let lease = self.lease;
        let revoke = async move {
            client.lease_revoke(lease).await?;
            Ok(())
        };
        within(self.request_timeout, revoke).await
    }
}

struct Renewals<P> {
    policy: Arc<P>,
    client: etcd::Client,
    lease: i64,
    ttl: Duration,
    state: Arc<Mutex<State>>,
}

impl<P: LockPolicy> Renewals<P> {
    /// Renews at a third of the time to live, until the lease is gone.
    async fn run(mut self, sent: Instant) {
        let part = self.ttl / 24;
        let mut next = sent + part * 8;
        loop {
            sleep_until(next).await;
            point::reach("session.before_renew").await;
            let sent = Instant::now();
            let retries_after = self.policy.retries_after();
            match timeout(part * 2, self.renew()).await {
                Ok(Ok(true)) => {
                    let from = self.policy.counts_from(sent, Instant::now());
                    lock(&self.state).deadline = from + self.ttl;
                    next = sent + part * 8;
                }
                Ok(Ok(false)) => {
                    lock(&self.state).over = true;
                    return;
                }
                Ok(Err(_)) | Err(_) => next = sent + part * retries_after,
            }
        }
    }

    /// One renewal on a stream of its own; false if the lease is gone.
    async fn renew(&mut self) -> Result<bool, etcd::Error> {
        match self.client.lease_keep_alive(self.lease).await {
            Ok(_) => Ok(true),
            Err(etcd::Error::LeaseKeepAliveError(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
