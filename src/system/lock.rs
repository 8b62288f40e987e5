//! A lock under test: the session, the recipe and the token of one client, in one.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{
    concurrency::{ElectionError, LockError},
    etcd,
    time::Instant,
};

/// What a client asks of its lock when it opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockOptions {
    /// The time to live of the lease to ask for, in seconds.
    pub ttl_s: i64,
    /// Time-out of each single request to etcd.
    pub request_timeout: Duration,
}

/// The lock was acquired: under which key of its queue, and with which token for the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The owner key in etcd, such as `/lock/694d…`. The judge finds the truth about it there.
    pub key: String,
    /// What goes to the storage with each request.
    pub token: i64,
}

/// A call of a lock did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LockFailure {
    /// Why, for people.
    pub message: String,
    /// Whether it proves that the call had no effect; if not, its outcome is unknown.
    pub definite: bool,
}

impl LockFailure {
    /// It certainly had no effect.
    pub fn definite(message: impl Into<String>) -> Self {
        LockFailure { message: message.into(), definite: true }
    }

    /// It may have had its effect, or have it later.
    pub fn unknown(message: impl Into<String>) -> Self {
        LockFailure { message: message.into(), definite: false }
    }
}

impl From<LockError> for LockFailure {
    fn from(error: LockError) -> Self {
        LockFailure { message: error.to_string(), definite: error.is_definite() }
    }
}

impl From<ElectionError> for LockFailure {
    fn from(error: ElectionError) -> Self {
        let definite = error.definiteness() == crate::concurrency::Definiteness::Definite;
        LockFailure { message: error.to_string(), definite }
    }
}

impl From<etcd::Error> for LockFailure {
    /// Of an error of etcd alone nobody knows what it proves.
    fn from(error: etcd::Error) -> Self {
        LockFailure::unknown(error.to_string())
    }
}

/// A lock recipe of your own, with its session: what one client does to get the right to write.
///
/// The harness opens one for each session of a client, acquires and releases with it several times,
/// asks [`is_live`](LockUnderTest::is_live) before each write, and closes it. Grants are judged by
/// etcd's commit log, not by what the lock says. Its queue must be the keys right below the lock's
/// name (`/lock/…`), of which the one with the least create revision owns the lock, as in etcd's
/// `concurrency` package; else its grants cannot be judged.
///
/// Wait with [`crate::time`] and not with tokio's clock: only that one feels the clock faults.
pub trait LockUnderTest: Send + Sync + Sized + 'static {
    /// Opens a session.
    ///
    /// # Errors
    /// If there is no session; the harness tries again.
    fn open(
        client: etcd::Client,
        options: LockOptions,
    ) -> impl Future<Output = Result<Self, LockFailure>> + Send;

    /// The lease of the session.
    fn lease(&self) -> i64;

    /// The time to live that etcd granted, in seconds.
    fn ttl_s(&self) -> i64;

    /// Acquires the lock of this name, by the deadline.
    ///
    /// # Errors
    /// If the lock is not held: the deadline passed, the session is over, etcd does not answer.
    fn acquire(
        &mut self,
        name: &str,
        deadline: Instant,
    ) -> impl Future<Output = Result<Grant, LockFailure>> + Send;

    /// How long after its deadline an acquire may still take, to clean up behind itself.
    fn clean_up(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether, by the session's knowledge, what was acquired is still held.
    fn is_live(&self) -> bool;

    /// When, on the own clock, the session ends unless it is renewed.
    fn deadline(&self) -> Instant;

    /// Releases what was acquired last.
    ///
    /// # Errors
    /// If the release is not certain.
    fn release(&mut self) -> impl Future<Output = Result<(), LockFailure>> + Send;

    /// Ends the session; nothing is asked of it afterwards.
    ///
    /// # Errors
    /// If the end is not certain; the lease then runs out by itself.
    fn close(&mut self) -> impl Future<Output = Result<(), LockFailure>> + Send;
}

/// A future that a trait object can give.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, LockFailure>> + Send + 'a>>;

/// A lock under test whose type is not known: what workloads use.
pub(crate) trait Lock: Send + Sync {
    fn lease(&self) -> i64;
    fn ttl_s(&self) -> i64;
    fn acquire<'a>(&'a mut self, name: &'a str, deadline: Instant) -> Answer<'a, Grant>;
    fn clean_up(&self) -> Duration;
    fn is_live(&self) -> bool;
    fn deadline(&self) -> Instant;
    fn release(&mut self) -> Answer<'_, ()>;
    fn close(&mut self) -> Answer<'_, ()>;
}

impl<L: LockUnderTest> Lock for L {
    fn lease(&self) -> i64 {
        LockUnderTest::lease(self)
    }

    fn ttl_s(&self) -> i64 {
        LockUnderTest::ttl_s(self)
    }

    fn acquire<'a>(&'a mut self, name: &'a str, deadline: Instant) -> Answer<'a, Grant> {
        Box::pin(LockUnderTest::acquire(self, name, deadline))
    }

    fn clean_up(&self) -> Duration {
        LockUnderTest::clean_up(self)
    }

    fn is_live(&self) -> bool {
        LockUnderTest::is_live(self)
    }

    fn deadline(&self) -> Instant {
        LockUnderTest::deadline(self)
    }

    fn release(&mut self) -> Answer<'_, ()> {
        Box::pin(LockUnderTest::release(self))
    }

    fn close(&mut self) -> Answer<'_, ()> {
        Box::pin(LockUnderTest::close(self))
    }
}

type Open = dyn Fn(etcd::Client, LockOptions) -> Answer<'static, Box<dyn Lock>> + Send + Sync;

/// Opens a lock for a session of a client.
#[derive(Clone)]
pub(crate) struct MakeLock(Arc<Open>);

impl MakeLock {
    /// Whether the other is the very same, not only one of the same kind.
    pub(crate) fn is(&self, other: &MakeLock) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Opens one.
    pub(crate) fn open(
        &self,
        client: etcd::Client,
        options: LockOptions,
    ) -> Answer<'static, Box<dyn Lock>> {
        (self.0)(client, options)
    }
}

impl fmt::Debug for MakeLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeLock")
    }
}

/// A maker from a function that opens locks of one type.
pub(crate) fn lock_maker<L, F, O>(open: O) -> MakeLock
where
    L: LockUnderTest,
    F: Future<Output = Result<L, LockFailure>> + Send + 'static,
    O: Fn(etcd::Client, LockOptions) -> F + Send + Sync + 'static,
{
    MakeLock(Arc::new(move |client, options| {
        let opening = open(client, options);
        Box::pin(async move { Ok(Box::new(opening.await?) as Box<dyn Lock>) })
    }))
}
