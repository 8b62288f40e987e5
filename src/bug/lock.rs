//! A second, plain lock on etcd, of which a bug gets one decision wrong.
//!
//! It does what [`crate::concurrency`] does, in the simplest way that holds, with every decision
//! that somebody got wrong once in a method of [`LockPolicy`]. The policy that changes nothing must
//! pass the judge: that is tested, or a catch would prove nothing.

mod queue;
mod session;

use std::{sync::Arc, time::Duration};

use self::session::{Session, within};
use super::Site;
use crate::{
    etcd::{self, SortTarget},
    point,
    system::{Grant, LockFailure, LockOptions, LockUnderTest, MakeLock, lock_maker},
    time::{Instant, sleep},
};

/// What a lock has seen when it gives out a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// The id of the session's lease.
    pub(crate) lease: i64,
    /// The revision of the store when the session began.
    pub(crate) session_revision: i64,
    /// The create revision of the own key.
    pub(crate) create_revision: i64,
    /// The revision in the header of the answer that showed the lock as owned.
    pub(crate) header_revision: i64,
    /// The term of etcd's leader in that answer.
    pub(crate) term: u64,
    /// How many holdings this session has had, this one included.
    pub(crate) holdings: i64,
}

/// What showed a lock as owned.
#[derive(Debug, Clone, Copy)]
struct Turn {
    create_revision: i64,
    /// The revision and the term in the header of the answer.
    header_revision: i64,
    term: u64,
}

/// The decisions of a lock.
pub(crate) trait LockPolicy: Send + Sync + 'static {
    /// From when a renewal counts.
    fn counts_from(&self, sent: Instant, _answered: Instant) -> Instant {
        sent
    }

    /// How long after a lost renewal the next is sent, as parts of 24 of the time to live.
    fn retries_after(&self) -> u32 {
        2
    }

    /// Whether the session is over at its deadline.
    fn ends_at_deadline(&self) -> bool {
        true
    }

    /// Whether an acquire asks the session once more before it says "acquired".
    fn asks_session_last(&self) -> bool {
        true
    }

    /// The lease that the queue key is put with; 0 is none.
    fn lease_of_key(&self, lease: i64) -> i64 {
        lease
    }

    /// By what the first of the queue is found.
    fn first_by(&self) -> SortTarget {
        SortTarget::Create
    }

    /// Whether a client waits for its turn at all.
    fn waits(&self) -> bool {
        true
    }

    /// Whether a waiter whose predecessor is gone looks at its own key before it goes on.
    fn looks_again(&self) -> bool {
        true
    }

    /// Whether a waiter that does not find its own key in the queue gives up.
    fn needs_own_key(&self) -> bool {
        true
    }

    /// Where the watch for the predecessor begins: right behind what was read; `None` is "now".
    fn watches_from(&self, read: i64) -> Option<i64> {
        Some(read + 1)
    }

    /// Whether an acquire that ran out of time takes its key back before it says so, and whether
    /// that may take longer than the deadline and its bound.
    fn cleans_up_without_end(&self) -> bool {
        false
    }

    /// Whether an acquire that ran out of time says that it was acquired.
    fn takes_time_out_for_success(&self) -> bool {
        false
    }

    /// Whether a key whose release was asked for is taken for a new place in the queue.
    fn takes_released_key(&self) -> bool {
        false
    }

    /// Whether a second handle of the session tries for the same lock at the same time. Handles of
    /// a session share one key, and a try that loses leaves what another call has created.
    fn has_sibling(&self) -> bool {
        false
    }

    /// Whether a try that loses deletes the key all the same.
    fn loser_deletes(&self) -> bool {
        false
    }

    /// Whether a release is sent a second time a little later, as by a caller that unlocks by hand
    /// and by a guard.
    fn releases_twice(&self) -> bool {
        false
    }

    /// Whether a release deletes the key of this very create revision only.
    fn guards_release(&self) -> bool {
        true
    }

    /// Whether the lock counts as released only when etcd has said so.
    fn waits_for_release(&self) -> bool {
        true
    }

    /// The queue was entered, in this term of etcd's leader and at this revision.
    fn entered(&self, _term: u64, _revision: i64) {}

    /// The token for the storage.
    fn token(&self, seen: &Seen) -> i64 {
        seen.create_revision
    }
}

/// How long the clean-up after the deadline may take.
pub(crate) const CLEAN_UP: Duration = Duration::from_secs(2);

/// When a sibling tries, and how long.
const TRY: Duration = Duration::from_millis(20);

/// How much later a release comes that is sent twice.
const SECOND_RELEASE: Duration = Duration::from_millis(300);

/// How long a release is waited for. Less than a request may take: its outcome is then unknown.
const RELEASE: Duration = Duration::from_millis(500);

/// A maker of plain locks with this policy.
pub(crate) fn plain_lock<P: LockPolicy>(
    policy: impl Fn(Site) -> P + Send + Sync + 'static,
    site: &Site,
) -> MakeLock {
    let policy = Arc::new(policy(site.clone()));
    lock_maker(move |client, options| PlainLock::with(policy.clone(), client, options))
}

/// The policy that changes nothing.
#[cfg(test)]
pub(crate) struct Right;
#[cfg(test)]
impl LockPolicy for Right {}

/// The policy whose sessions have two handles and release twice: that is no harm by itself.
#[cfg(test)]
pub(crate) struct TwoHandles;
#[cfg(test)]
impl LockPolicy for TwoHandles {
    fn has_sibling(&self) -> bool {
        true
    }

    fn releases_twice(&self) -> bool {
        true
    }
}

/// The lock.
struct PlainLock<P: LockPolicy> {
    policy: Arc<P>,
    session: Session<P>,
    /// The key and its create revision, from the acquire to the release.
    own: Option<(String, i64)>,
    /// A release of unknown outcome.
    retired: Option<(String, i64)>,
    holdings: i64,
}

impl<P: LockPolicy> PlainLock<P> {
    async fn with(
        policy: Arc<P>,
        client: etcd::Client,
        options: LockOptions,
    ) -> Result<Self, LockFailure> {
        let session = Session::open(policy.clone(), client, options).await?;
        Ok(PlainLock { policy, session, own: None, retired: None, holdings: 0 })
    }

    /// Waits for the turn.
    async fn wait_for_turn(&mut self, name: &str, key: &str) -> Result<Turn, LockFailure> {
        let takes_released_key = self.policy.takes_released_key();
        if let Some((key, revision)) = self.retired.clone() {
            if !takes_released_key {
                self.delete(&key, revision).await?;
            }
            self.retired = None;
        }
        point::reach("queue.before_enqueue").await;
        let mut turn = queue::enqueue(&self.session, self.policy.as_ref(), key).await?;
        let revision = turn.create_revision;
        self.own = Some((key.to_owned(), revision));
        self.policy.entered(turn.term, turn.header_revision);
        if self.policy.has_sibling() {
            self.try_beside(name, key);
        }
        if !self.policy.waits() {
            return Ok(turn);
        }
        let mut waited = false;
        loop {
            if waited && !self.policy.looks_again() {
                return Ok(turn);
            }
            let queue = queue::read(&self.session, name, self.policy.first_by()).await?;
            (turn.header_revision, turn.term) = (queue.revision, queue.term);
            let own = (key.to_owned(), revision);
            let place = queue.keys.iter().position(|known| *known == own);
            let earlier = || queue.keys.iter().filter(|(_, created)| *created < revision).count();
            // The policy is asked each time: a bug counts how often.
            let needs_own_key = self.policy.needs_own_key();
            let Some(place) = place.or_else(|| (!needs_own_key).then(earlier)) else {
                self.own = None;
                return Err(LockFailure::definite("the own key is gone"));
            };
            let Some((before, _)) = place.checked_sub(1).and_then(|at| queue.keys.get(at)) else {
                point::reach("queue.after_enqueue").await;
                return Ok(turn);
            };
            let from = self.policy.watches_from(queue.revision);
            point::reach("queue.before_wait").await;
            queue::wait_for_delete(&self.session, before, key, from).await;
            point::reach("queue.after_wait").await;
            waited = true;
        }
    }

    /// Another handle of the session tries once, with a little patience: it looks at the queue, and
    /// has lost if another session is first.
    fn try_beside(&self, name: &str, key: &str) {
        let (asked, policy) = (self.session.detached(), self.policy.clone());
        let (name, key) = (name.to_owned(), key.to_owned());
        tokio::spawn(async move {
            sleep(TRY).await;
            let by = policy.first_by();
            let Ok(queue) = queue::read_once(asked.clone(), &name, by).await else { return };
            let lost = queue.keys.first().is_some_and(|(first, _)| *first != key);
            // The key was there before this call: another handle waits under it, and may own the
            // lock by the end of the patience.
            if lost && policy.loser_deletes() {
                sleep(TRY).await;
                // Whether it is gone is nobody's concern.
                let _ = queue::delete_with(asked, &key, 0).await;
            }
        });
    }

    /// Deletes this incarnation, until that is certain.
    async fn delete(&self, key: &str, revision: i64) -> Result<(), LockFailure> {
        while self.session.is_live() {
            if queue::delete(&self.session, key, revision).await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(LockFailure::unknown("the session is over, the key goes with it"))
    }

    /// The deadline has passed: nobody may find the key in the queue any more.
    async fn clean_up(&mut self) {
        let Some((key, revision)) = self.own.take() else { return };
        self.retired = Some((key.clone(), revision));
        let deleted = if self.policy.cleans_up_without_end() {
            self.delete(&key, revision).await.is_ok()
        } else {
            within(CLEAN_UP, self.delete(&key, revision)).await.is_ok()
        };
        if deleted {
            self.retired = None;
        }
    }
}

impl<P: LockPolicy> LockUnderTest for PlainLock<P> {
    async fn open(_client: etcd::Client, _options: LockOptions) -> Result<Self, LockFailure> {
        Err(LockFailure::definite("a plain lock is made with its policy"))
    }

    fn lease(&self) -> i64 {
        self.session.lease
    }

    fn ttl_s(&self) -> i64 {
        self.session.ttl_s
    }

    async fn acquire(&mut self, name: &str, deadline: Instant) -> Result<Grant, LockFailure> {
        let key = format!("{name}/{:x}", self.session.lease);
        let left = deadline.saturating_duration_since(Instant::now());
        let policy = self.policy.clone();
        let turn = match within(left, self.session_turn(name, &key)).await {
            Ok(turn) => turn,
            Err(failure) => {
                let known = self.own.as_ref().map(|(_, revision)| Turn {
                    create_revision: *revision,
                    header_revision: *revision,
                    term: 0,
                });
                match known.filter(|_| policy.takes_time_out_for_success()) {
                    Some(turn) if self.session.is_live() => turn,
                    _ => {
                        self.clean_up().await;
                        return Err(failure);
                    }
                }
            }
        };
        if policy.asks_session_last() && !self.session.is_live() {
            self.clean_up().await;
            return Err(LockFailure::unknown("the session is over"));
        }
        self.holdings += 1;
        let seen = Seen {
            lease: self.session.lease,
            session_revision: self.session.revision,
            create_revision: turn.create_revision,
            header_revision: turn.header_revision,
            term: turn.term,
            holdings: self.holdings,
        };
        Ok(Grant { key, token: policy.token(&seen) })
    }

    fn clean_up(&self) -> Duration {
        CLEAN_UP
    }

    fn is_live(&self) -> bool {
        self.session.is_live()
    }

    fn deadline(&self) -> Instant {
        self.session.deadline()
    }

    async fn release(&mut self) -> Result<(), LockFailure> {
        let Some((key, revision)) = self.own.take() else {
            return Err(LockFailure::definite("nothing was acquired"));
        };
        self.retired = Some((key.clone(), revision));
        point::reach("mutex.before_unlock").await;
        if !self.policy.waits_for_release() {
            let session = self.session.detached();
            tokio::spawn(async move {
                sleep(Duration::from_millis(20)).await;
                // Nobody waits for it, so nobody is told.
                let _ = queue::delete_with(session, &key, revision).await;
            });
            self.retired = None;
            return Ok(());
        }
        let guard = if self.policy.guards_release() { revision } else { 0 };
        if self.policy.releases_twice() {
            let (session, key) = (self.session.detached(), key.clone());
            tokio::spawn(async move {
                sleep(SECOND_RELEASE).await;
                // Nobody waits for the second.
                let _ = queue::delete_with(session, &key, guard).await;
            });
        }
        within(RELEASE, self.delete(&key, guard)).await?;
        self.retired = None;
        Ok(())
    }

    async fn close(&mut self) -> Result<(), LockFailure> {
        self.session.close().await
    }
}

impl<P: LockPolicy> PlainLock<P> {
    /// Waits for the turn, until the session is over.
    async fn session_turn(&mut self, name: &str, key: &str) -> Result<Turn, LockFailure> {
        let over = self.session.over();
        tokio::select! {
            biased;
            turn = self.wait_for_turn(name, key) => turn,
            () = over => Err(LockFailure::unknown("the session is over")),
        }
    }
}
