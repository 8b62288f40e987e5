//! A session: a lease that is kept alive, and a deadline on the client's own clock.
//!
//! The deadline counts from the *sending* of the last acknowledged renewal (or of the grant), so it
//! is not later than etcd's own, given clocks of equal rate. Whoever asks compares the clock *now*:
//! after a long pause the session says "lost" before any task of it has run. Past its deadline a
//! session stays over, whatever reply may still come.
//!
//! What it cannot promise: that the queue key is still there (a revoke, a delete), and anything at
//! all while the clock is slower than etcd's or stands still, as Linux's monotonic clock does while
//! the machine is suspended. Only a fencing token helps then. After etcd's
//! `client/v3/concurrency/session.go`.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex as StdMutex, MutexGuard},
    time::Duration,
};

use tokio::sync::{Notify, mpsc};

use super::{
    error::LockError,
    lease::{adopt, grant, revoke},
    place::{self, Place},
    renewal::keep_alive,
};
use crate::{
    etcd,
    point::reach,
    time::{Instant, sleep_until, timeout},
};

/// Longest TTL that deadlines are computed with, in seconds: a hundred years. Etcd grants up to
/// 9,000,000,000 s, and a deadline that comes too early is safe.
const TTL_S_MAX: i64 = 100 * 365 * 24 * 3600;

/// The time span of a TTL in seconds; none for zero and below.
pub(super) fn ttl_span(ttl_s: i64) -> Duration {
    Duration::from_secs(u64::try_from(ttl_s.min(TTL_S_MAX)).unwrap_or(0))
}

/// How long after the sending of a renewal the session still says "held".
fn held_span(ttl_s: i64, deadline_permille: u32) -> Duration {
    ttl_span(ttl_s) * deadline_permille.min(1000) / 1000
}

/// How to make a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// The time to live to ask for, in seconds. Etcd may grant more (it has a floor of about one
    /// and a half election time-outs); all deadlines follow what was granted.
    pub ttl_s: i64,
    /// Adopt this lease instead of asking for one; `ttl_s` is then not used. The session begins
    /// with the first acknowledged renewal.
    pub lease: Option<i64>,
    /// Time-out of each single request to etcd.
    pub request_timeout: Duration,
    /// The part of the granted TTL, in thousandths, after which the session no longer says "held".
    /// With a client clock that may run slow by the factor 1 - e, choose 1000 * (1 - e). More than
    /// 1000 counts as 1000.
    pub deadline_permille: u32,
}

impl Default for SessionOptions {
    /// 60 s as in etcd's `session.go`; requests of at most 5 s; the whole TTL.
    fn default() -> Self {
        SessionOptions {
            ttl_s: 60,
            lease: None,
            request_timeout: Duration::from_secs(5),
            deadline_permille: 1000,
        }
    }
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// Its deadline passed on its own clock.
    Expired,
    /// Etcd said that the lease does not exist.
    LeaseGone,
    /// [`Session::close`].
    Closed,
    /// [`Session::orphan`], or the last handle was dropped.
    Orphaned,
}

/// A lease that is kept alive. Clones are handles of one session; when the last one is dropped, the
/// session is orphaned.
#[derive(Clone)]
pub struct Session {
    handle: Arc<Handle>,
}

/// Ends the tasks of the session with its last handle.
struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.end(SessionEnd::Orphaned);
    }
}

/// What the handles, the tasks and the locks of a session share.
pub(super) struct Shared {
    client: etcd::Client,
    lease: i64,
    ttl_s: i64,
    options: SessionOptions,
    state: StdMutex<State>,
    /// Told of each change. Not a `watch` channel: that one wakes its receivers in an order drawn
    /// from the process, and a simulated run would not be reproducible.
    changed: Notify,
    /// The places in queues by lock name. In the session and not in the lock handle, because all
    /// handles of one session and name share one key.
    places: StdMutex<BTreeMap<String, Arc<Place>>>,
    neglected: mpsc::UnboundedSender<Arc<Place>>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    deadline: Instant,
    end: Option<SessionEnd>,
}

impl State {
    fn ended(&self, now: Instant) -> Option<SessionEnd> {
        self.end.or((now >= self.deadline).then_some(SessionEnd::Expired))
    }
}

impl Session {
    /// Asks for a lease (or adopts one) and starts to keep it alive.
    ///
    /// Not repeated on failure: a grant of unknown outcome leaves a lease that runs out by itself.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] and [`LockError::Etcd`] if there is no lease;
    /// [`LockError::SessionExpired`] if the adopted lease is gone, or the reply came too late.
    pub async fn new(client: &etcd::Client, options: SessionOptions) -> Result<Session, LockError> {
        reach("session.before_grant").await;
        let (sent, renewal, lease, ttl_s) = match options.lease {
            None => grant(client, &options).await?,
            Some(lease) => adopt(client, lease, &options).await?,
        };
        reach("session.after_grant").await;
        let deadline = sent + held_span(ttl_s, options.deadline_permille);
        let (neglected, to_tend) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            client: client.clone(),
            lease,
            ttl_s,
            options,
            state: StdMutex::new(State { deadline, end: None }),
            changed: Notify::new(),
            places: StdMutex::default(),
            neglected,
        });
        if shared.is_done() {
            return Err(LockError::SessionExpired);
        }
        tracing::debug!(lease, ttl_s, "session begins");
        tokio::spawn(keep_alive(shared.clone(), renewal, sent));
        tokio::spawn(place::tend_neglected(shared.clone(), to_tend));
        Ok(Session { handle: Arc::new(Handle { shared }) })
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// The lease.
    pub fn lease(&self) -> i64 {
        self.shared().lease
    }

    /// The time to live that etcd granted, in seconds.
    pub fn ttl_s(&self) -> i64 {
        self.shared().ttl_s
    }

    /// The time to live that etcd granted, as a span of time.
    pub fn ttl(&self) -> Duration {
        ttl_span(self.shared().ttl_s)
    }

    /// When, on the own clock, the session ends unless another renewal is acknowledged.
    pub fn deadline(&self) -> Instant {
        self.shared().state().deadline
    }

    /// Whether the session may still be relied on: not ended, and its deadline is ahead of the
    /// clock as it is now.
    pub fn is_live(&self) -> bool {
        !self.shared().is_done()
    }

    /// Whether the session is over; the opposite of [`Session::is_live`].
    pub fn is_done(&self) -> bool {
        self.shared().is_done()
    }

    /// Why the session is over; `None` while it is live.
    pub fn ended(&self) -> Option<SessionEnd> {
        self.shared().ended()
    }

    /// Waits until the session is over. Does not keep the session alive.
    pub fn done(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared().clone();
        async move { shared.done().await }
    }

    /// How long the session may still be relied on if no further renewal is acknowledged; zero once
    /// it is over.
    pub fn remaining(&self) -> Duration {
        let state = *self.shared().state();
        let now = Instant::now();
        match state.ended(now) {
            Some(_) => Duration::ZERO,
            None => state.deadline.saturating_duration_since(now),
        }
    }

    /// Waits until no more than `margin` remains, or the session is over. For work that takes some
    /// time to stop: with a margin of that time, what is begun under the session has ended before
    /// the deadline (kubernetes #23731). It may be a false alarm: the next renewal can still come,
    /// and then this can be waited for again.
    ///
    /// In peace the session renews at a third of its TTL, so a margin of two thirds or more is
    /// always reached. Does not keep the session alive.
    pub fn expires_within(&self, margin: Duration) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared().clone();
        async move { shared.expires_within(margin).await }
    }

    /// Stops refreshing without a revoke: the lease and its keys stay until the TTL is over. The
    /// session is over for this client at once, as `Done` is closed in Go.
    pub fn orphan(&self) {
        self.shared().end(SessionEnd::Orphaned);
    }

    /// Ends the session and revokes the lease; all its keys go. The session is over before the
    /// first request is sent. Takes no longer than the granted TTL: by then the lease is over
    /// anyway (etcd #6681).
    ///
    /// # Errors
    /// [`LockError::TimedOut`] if the outcome is unknown, [`LockError::Etcd`] if etcd refused. A
    /// lease that is gone already is no error.
    pub async fn close(&self) -> Result<(), LockError> {
        let shared = self.shared();
        shared.end(SessionEnd::Closed);
        let limit = self.ttl();
        timeout(limit, revoke(shared)).await.unwrap_or(Err(LockError::TimedOut(limit)))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("lease", &self.lease())
            .field("ttl", &self.ttl())
            .field("ended", &self.ended())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn client(&self) -> etcd::Client {
        self.client.clone()
    }

    pub(super) fn lease(&self) -> i64 {
        self.lease
    }

    pub(super) fn ttl_s(&self) -> i64 {
        self.ttl_s
    }

    pub(super) fn options(&self) -> &SessionOptions {
        &self.options
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn ended(&self) -> Option<SessionEnd> {
        self.state().ended(Instant::now())
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended().is_some()
    }

    /// `SessionExpired` once the session is over.
    pub(super) fn check_live(&self) -> Result<(), LockError> {
        if self.is_done() { Err(LockError::SessionExpired) } else { Ok(()) }
    }

    pub(super) async fn done(&self) {
        self.expires_within(Duration::ZERO).await;
    }

    async fn expires_within(&self, margin: Duration) {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Enlisted before the look, so that no change falls between the two.
            changed.as_mut().enable();
            let (state, now) = (*self.state(), Instant::now());
            let left = state.deadline.saturating_duration_since(now);
            if left <= margin || state.ended(now).is_some() {
                return;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(now + (left - margin)) => {}
            }
        }
    }

    /// Ends the session; the first reason stays.
    pub(super) fn end(&self, end: SessionEnd) {
        let mut state = self.state();
        if state.end.is_none() {
            state.end = Some(state.ended(Instant::now()).unwrap_or(end));
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// Takes note of a renewal that was acknowledged; false if it came too late to matter.
    pub(super) fn acknowledge(&self, sent: Instant, ttl_s: i64) -> bool {
        let mut state = self.state();
        let live = state.ended(Instant::now()).is_none();
        if live {
            state.deadline = sent + held_span(ttl_s, self.options.deadline_permille);
            drop(state);
            self.changed.notify_waiters();
        }
        live
    }

    /// The session's place in the queue of this name.
    pub(super) fn place(&self, name: &str) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let place =
            places.entry(name.to_owned()).or_insert_with(|| Arc::new(Place::new(name, self.lease)));
        place.clone()
    }

    /// The session's keys, there or not, in all queues that it ever had to do with.
    pub(super) fn keys(&self) -> Vec<String> {
        let places = self.places.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        places.values().map(|place| place.key.clone()).collect()
    }

    /// Has the place put in order in the background: nobody waits for it.
    pub(super) fn neglect(&self, place: &Arc<Place>) {
        // The receiver is gone only when the session is over, and then etcd cleans up.
        let _ = self.neglected.send(place.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The deadline is a part of the granted TTL, never more than all of it, and no TTL is none.
    #[test]
    fn held_span_is_a_part_of_the_ttl() {
        assert_eq!(held_span(10, 1000), Duration::from_secs(10));
        assert_eq!(held_span(10, 900), Duration::from_secs(9));
        assert_eq!(held_span(2, 333), Duration::from_millis(666));
        assert_eq!(held_span(10, 5000), Duration::from_secs(10));
        assert_eq!(held_span(0, 1000), Duration::ZERO);
        assert_eq!(held_span(-1, 1000), Duration::ZERO);
    }

    /// The longest TTL that etcd grants must not overflow the clock.
    #[test]
    fn longest_ttl_has_a_deadline() {
        let span = held_span(9_000_000_000, 1000);
        assert_eq!(span, ttl_span(TTL_S_MAX));
    }
}
