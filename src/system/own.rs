//! The crate's own lock, as a system's part: a session with a mutex or an election on it.

use super::lock::{Grant, LockFailure, LockOptions, LockUnderTest, MakeLock, lock_maker};
use crate::{
    concurrency::{Election, FencingToken, LockError, Mutex, Session, SessionOptions},
    etcd,
    time::{Instant, timeout_at},
};

/// What a client sends to the storage as its fencing token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The create revision of its owner key: the scheme that holds.
    Revision,
    /// The id of its lease: what contrib/lock does.
    Lease,
}

/// How a client gets the right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// It locks and unlocks.
    Mutex,
    /// It campaigns, proclaims once, and resigns.
    Election,
}

/// The maker of the crate's own lock.
pub(crate) fn own_lock(recipe: Recipe, token: TokenKind) -> MakeLock {
    lock_maker(move |client, options| async move {
        let lock = OwnLock::open(client, options).await?;
        Ok(OwnLock { recipe, token, ..lock })
    })
}

struct OwnLock {
    session: Session,
    recipe: Recipe,
    token: TokenKind,
    grip: Option<Grip>,
}

/// A handle of one holding.
enum Grip {
    Mutex(Mutex),
    Election(Election),
}

impl OwnLock {
    fn grant(&self, key: &str, token: FencingToken) -> Grant {
        let token = match self.token {
            TokenKind::Revision => token.0,
            TokenKind::Lease => self.session.lease(),
        };
        Grant { key: key.to_owned(), token }
    }
}

impl LockUnderTest for OwnLock {
    async fn open(client: etcd::Client, options: LockOptions) -> Result<Self, LockFailure> {
        let options = SessionOptions {
            ttl_s: options.ttl_s,
            request_timeout: options.request_timeout,
            ..SessionOptions::default()
        };
        let session = Session::new(&client, options).await?;
        Ok(OwnLock { session, recipe: Recipe::Mutex, token: TokenKind::Revision, grip: None })
    }

    fn lease(&self) -> i64 {
        self.session.lease()
    }

    fn ttl_s(&self) -> i64 {
        self.session.ttl_s()
    }

    async fn acquire(&mut self, name: &str, deadline: Instant) -> Result<Grant, LockFailure> {
        match self.recipe {
            Recipe::Mutex => {
                let mutex = Mutex::new(&self.session, name);
                let token = mutex.lock_until(deadline).await?;
                let grant = self.grant(mutex.key(), token);
                self.grip = Some(Grip::Mutex(mutex));
                Ok(grant)
            }
            Recipe::Election => {
                let election = Election::new(&self.session, name);
                let token = election.campaign_until("elected", deadline).await?;
                // The key's value changes, its create revision and so the token do not. It takes
                // time, in which the session may end.
                match timeout_at(deadline, election.proclaim("at work")).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(%error, "not proclaimed"),
                    Err(_) => tracing::debug!("not proclaimed in time"),
                }
                if self.session.is_done() {
                    return Err(LockError::SessionExpired.into());
                }
                let grant = self.grant(election.key(), token);
                self.grip = Some(Grip::Election(election));
                Ok(grant)
            }
        }
    }

    fn is_live(&self) -> bool {
        self.session.is_live()
    }

    fn deadline(&self) -> Instant {
        self.session.deadline()
    }

    async fn release(&mut self) -> Result<(), LockFailure> {
        match self.grip.take() {
            Some(Grip::Mutex(mutex)) => Ok(mutex.unlock().await?),
            Some(Grip::Election(election)) => Ok(election.resign().await?),
            None => Err(LockFailure::definite("nothing was acquired")),
        }
    }

    async fn close(&mut self) -> Result<(), LockFailure> {
        Ok(self.session.close().await?)
    }
}
