//! The election: a queue of candidates in etcd, whose first leads and tells a value.
//!
//! After etcd's `client/v3/concurrency/election.go`, on the same queue as the lock. Where we
//! differ: a campaign ends as soon as the candidate's own key is gone and never wins without one
//! (etcd #19597); a campaign that fails leaves no candidate behind, whatever the error (etcd
//! #21128); a proclamation whose answer was lost cannot land late and undo a newer one.
//!
//! That a session leads is known to it as a lock is known to its holder: it can be over before it
//! notices. The [`FencingToken`] is what a resource has to check.

use std::{
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use super::{
    error::{ElectionError, LockError},
    observer::{Leader, Observer, read_leader},
    place::{Entry, Place, Tidy, Unanswered},
    queue::{self, Proclaimed, View},
    request::until_definite,
    session::{Session, Shared},
    token::FencingToken,
    turn::{self, WaitProfile},
};
use crate::{
    etcd::{Compare, CompareOp},
    point::reach,
    time::{Instant, timeout_at},
};

/// A handle on an election. Stands in the queue `name/…` with its session's key.
#[derive(Debug)]
pub struct Election {
    session: Session,
    place: Arc<Place>,
    leading: StdMutex<Option<Leading>>,
}

/// The incarnation with which this handle won.
#[derive(Debug, Clone, Copy)]
struct Leading {
    token: FencingToken,
    /// Its mod revision, as far as this handle knows.
    seen: i64,
}

impl Election {
    /// A handle on the election of this name for this session. No request is sent.
    ///
    /// Names must not be nested: the election `a` contains that of `a/b`. A [`Mutex`](super::Mutex)
    /// and an election of one name are one queue.
    pub fn new(session: &Session, name: &str) -> Self {
        let place = session.shared().place(name);
        Election { session: session.clone(), place, leading: StdMutex::default() }
    }

    /// A handle that goes on leading with a token won before, by another handle or by another
    /// process with the same (adopted) lease; `ResumeElection` in Go, which does not look.
    ///
    /// # Errors
    /// [`ElectionError::NotLeader`] if the session's key with this create revision is not there and
    /// first; else as [`Election::campaign`].
    pub async fn resume(
        session: &Session,
        name: &str,
        token: FencingToken,
    ) -> Result<Self, ElectionError> {
        let election = Election::new(session, name);
        let (shared, place) = (session.shared(), &election.place);
        shared.check_live()?;
        let txn = queue::look(&place.prefix, &place.key, token.get());
        let reply = until_definite(shared, |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await?;
        let view = View::read(&reply.value)?;
        if view.own != Some(token.get()) || view.predecessor.is_some() {
            return Err(ElectionError::NotLeader);
        }
        let joined = Unanswered::new(shared, place).answered(token.get(), false, 0);
        let entry = joined.map_err(|_| ElectionError::NotLeader)?;
        election.won(entry, 0)?.ok_or(ElectionError::NotLeader)?;
        Ok(election)
    }

    /// Stands as a candidate with this value and waits to be elected. A session that stands or
    /// leads already keeps its place and its token, and tells the new value.
    ///
    /// Cancel safe as [`Mutex::lock`](super::Mutex::lock): a dropped call withdraws the candidacy,
    /// in the background, unless another call or handle of the session relies on it.
    ///
    /// # Errors
    /// [`LockError::SessionExpired`] as soon as the session is over or the own key is gone;
    /// [`LockError::Etcd`] if etcd refuses. After any error the candidacy is withdrawn.
    pub async fn campaign(&self, value: impl Into<Vec<u8>>) -> Result<FencingToken, ElectionError> {
        let value = value.into();
        let shared = self.session.shared();
        tokio::select! {
            biased;
            () = shared.done() => Err(LockError::SessionExpired.into()),
            outcome = self.campaign_while_live(&value) => outcome,
        }
    }

    /// [`Election::campaign`] until this instant on the own clock; the candidacy is then withdrawn
    /// in the background.
    ///
    /// # Errors
    /// As `campaign`, and [`LockError::TimedOut`].
    pub async fn campaign_until(
        &self,
        value: impl Into<Vec<u8>>,
        deadline: Instant,
    ) -> Result<FencingToken, ElectionError> {
        let limit = deadline.saturating_duration_since(Instant::now());
        match timeout_at(deadline, self.campaign(value)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(LockError::TimedOut(limit).into()),
        }
    }

    /// [`Election::campaign_until`] so long from now.
    ///
    /// # Errors
    /// As `campaign_until`.
    pub async fn campaign_for(
        &self,
        value: impl Into<Vec<u8>>,
        limit: Duration,
    ) -> Result<FencingToken, ElectionError> {
        self.campaign_until(value, Instant::now() + limit).await
    }

    /// Tells another value without a new election. Proclamations of one session are told in the
    /// order of the calls.
    ///
    /// # Errors
    /// [`ElectionError::NotLeader`] if this handle leads nothing, or its key is gone; else as
    /// `campaign`.
    pub async fn proclaim(&self, value: impl Into<Vec<u8>>) -> Result<(), ElectionError> {
        let value = value.into();
        let shared = self.session.shared();
        tokio::select! {
            biased;
            () = shared.done() => Err(LockError::SessionExpired.into()),
            outcome = self.proclaim_while_live(&value) => outcome,
        }
    }

    /// Gives the leadership back, for all handles of the session. From the call on it is over,
    /// whatever the outcome. Ok means that the key is gone.
    ///
    /// Cancel safe: a delete without a definite answer is sent again, in the background and before
    /// the session stands again.
    ///
    /// # Errors
    /// [`ElectionError::NotLeader`], without a request, if this handle leads nothing; the last
    /// indefinite error if the session is over before an answer came.
    pub async fn resign(&self) -> Result<(), ElectionError> {
        let held = self.slot().take().ok_or(ElectionError::NotLeader)?;
        if !self.place.retire(held.token.get()) {
            return Err(ElectionError::NotLeader);
        }
        let shared = self.session.shared();
        let _tidy = Tidy::new(shared, &self.place);
        reach("election.before_resign").await;
        {
            let _gate = self.place.gate.lock().await;
            self.place.resolve(shared).await?;
        }
        reach("election.after_resign").await;
        tracing::debug!(key = self.key(), token = held.token.get(), "resigned");
        Ok(())
    }

    /// Who leads, by a linearizable read; `None` if nobody does. It may be over when the answer
    /// arrives.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] and [`LockError::Etcd`]: not known. Not asked again.
    pub async fn leader(&self) -> Result<Option<Leader>, ElectionError> {
        let shared = self.session.shared();
        let limit = shared.options().request_timeout;
        let (_, leader) = read_leader(shared.client(), &self.place.prefix, limit).await?;
        Ok(leader)
    }

    /// Watches who leads, from now on. It outlives the session.
    pub fn observe(&self) -> Observer {
        let shared = self.session.shared();
        let limit = shared.options().request_timeout;
        Observer::of_prefix(shared.client(), self.place.prefix.clone(), limit)
    }

    /// The session's key in the queue, there or not.
    pub fn key(&self) -> &str {
        &self.place.key
    }

    /// The session of this handle.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The token of this handle's leadership, Go's `Rev`: the create revision of the leader key.
    /// `None` if it never won or has resigned through any handle of the session. A lapsed session
    /// keeps its token: that is the one a resource has to refuse.
    pub fn token(&self) -> Option<FencingToken> {
        let leading = (*self.slot())?;
        (!self.place.is_retired(leading.token.get())).then_some(leading.token)
    }

    /// Whether this handle leads as far as the client can know: a token, and a live session.
    pub fn is_leading(&self) -> bool {
        self.token().is_some() && self.session.is_live()
    }

    /// The comparison for a transaction of one's own that must only happen under this leadership.
    ///
    /// # Errors
    /// [`ElectionError::NotLeader`] if this handle leads nothing.
    pub fn is_leader(&self) -> Result<Compare, ElectionError> {
        let token = self.token().ok_or(ElectionError::NotLeader)?;
        Ok(Compare::create_revision(self.key(), CompareOp::Equal, token.get()))
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Leading>> {
        self.leading.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    async fn campaign_while_live(&self, value: &[u8]) -> Result<FencingToken, ElectionError> {
        let (shared, place) = (self.session.shared(), &self.place);
        loop {
            let gate = place.gate.lock().await;
            let (entry, found) = turn::enqueue(shared, place, value).await?;
            let mut seen = found.mod_revision;
            if found.met.as_deref().is_some_and(|met| met != value) {
                seen = tell(shared, place, entry.revision, seen, value)
                    .await?
                    .ok_or(LockError::SessionExpired)?;
            }
            drop(gate);
            turn::await_turn(shared, place, &entry, found, WaitProfile::Strict).await?;
            if let Some(token) = self.won(entry, seen)? {
                return Ok(token);
            }
        }
    }

    async fn proclaim_while_live(&self, value: &[u8]) -> Result<(), ElectionError> {
        let (shared, place) = (self.session.shared(), &self.place);
        let _gate = place.gate.lock().await;
        let token = self.token().ok_or(ElectionError::NotLeader)?;
        let seen = (*self.slot()).map_or(0, |leading| leading.seen);
        let told = tell(shared, place, token.get(), seen, value).await?;
        let seen = told.ok_or(ElectionError::NotLeader)?;
        if let Some(leading) = self.slot().as_mut().filter(|leading| leading.token == token) {
            leading.seen = seen;
        }
        Ok(())
    }

    /// The last look before "ok", without an await in between; `None`: another handle has resigned
    /// meanwhile, stand again.
    fn won(&self, entry: Entry, seen: i64) -> Result<Option<FencingToken>, LockError> {
        self.session.shared().check_live()?;
        if self.place.is_retired(entry.revision) {
            return Ok(None);
        }
        let token = FencingToken::new(entry.revision);
        *self.slot() = Some(Leading { token, seen });
        entry.keep();
        tracing::debug!(key = self.key(), token = token.get(), "elected");
        Ok(Some(token))
    }
}

/// Gives the incarnation this value; the mod revision then, or none if the incarnation is gone. The
/// gate is held.
async fn tell(
    shared: &Shared,
    place: &Place,
    revision: i64,
    mut seen: i64,
    value: &[u8],
) -> Result<Option<i64>, LockError> {
    loop {
        reach("election.before_proclaim").await;
        let txn = queue::proclaim(&place.key, revision, seen, value, shared.lease());
        let reply = until_definite(shared, |mut client| {
            let txn = txn.clone();
            async move { client.txn(txn).await }
        })
        .await?;
        match Proclaimed::read(&reply.value, revision, value)? {
            Proclaimed::Done(now) => return Ok(Some(now)),
            // Somebody with the same lease has told something: what we tell comes after it.
            Proclaimed::Changed(now) => seen = now,
            Proclaimed::Gone => {
                place.vanish(revision);
                return Ok(None);
            }
        }
    }
}
