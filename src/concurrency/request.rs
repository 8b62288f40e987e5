//! One request to etcd, sent again until its answer is definite.
//!
//! For idempotent requests only. Every attempt has the session's request time-out; between
//! attempts there is a pause that doubles. It ends, without a definite answer, when the session is
//! over: from then on etcd drops the lease and what hangs on it by itself.
//!
//! A session can outlive the token of its user: renewals carry none, so that nothing keeps it. Then
//! the client logs in again.

use std::{future::Future, time::Duration};

use super::{
    error::{Class, LockError, class, wants_new_token},
    session::{SessionEnd, Shared},
};
use crate::{
    etcd,
    time::{sleep, timeout},
};

/// The pause after the first failed attempt.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause between two attempts.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The growing pause between attempts.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) fn new() -> Self {
        Pauses(PAUSE_FIRST)
    }

    /// Waits, longer each time, or until the session is over.
    pub(super) async fn pause(&mut self, shared: &Shared) {
        tokio::select! {
            biased;
            () = shared.done() => {}
            () = self.pause_fully() => {}
        }
    }

    /// Waits, longer each time, whether or not the session is over.
    pub(super) async fn pause_fully(&mut self) {
        let length = self.0;
        self.0 = (length * 2).min(PAUSE_MAX);
        sleep(length).await;
    }

    /// The last attempt worked.
    pub(super) fn reset(&mut self) {
        self.0 = PAUSE_FIRST;
    }
}

/// A definite answer, and how many attempts before it were never answered and may still land.
#[derive(Debug)]
pub(super) struct Answered<T> {
    pub(super) value: T,
    pub(super) lost: u32,
}

/// Sends until there is a definite answer: at least once, and no more once the session is over.
///
/// # Errors
/// [`LockError::SessionExpired`] if the lease is gone, [`LockError::Etcd`] if etcd refused, else
/// the last indefinite error.
pub(super) async fn until_definite<T, F>(
    shared: &Shared,
    mut send: impl FnMut(etcd::Client) -> F,
) -> Result<Answered<T>, LockError>
where
    F: Future<Output = Result<T, etcd::Error>>,
{
    let limit = shared.options().request_timeout;
    let mut pauses = Pauses::new();
    let mut lost = 0;
    // A new token that is refused at once is no better than none.
    let mut logged_in = false;
    loop {
        let error = match timeout(limit, send(shared.client())).await {
            Ok(Ok(value)) => return Ok(Answered { value, lost }),
            Ok(Err(error)) if !logged_in && wants_new_token(&error) => {
                log_in(shared).await?;
                logged_in = true;
                continue;
            }
            Ok(Err(error)) => match class(&error) {
                Class::LeaseGone => {
                    shared.end(SessionEnd::LeaseGone);
                    return Err(LockError::SessionExpired);
                }
                Class::Refused => return Err(Box::new(error).into()),
                Class::Unknown => Box::new(error).into(),
            },
            Err(_) => LockError::TimedOut(limit),
        };
        lost += 1;
        logged_in = false;
        tracing::debug!(lease = shared.lease(), %error, lost, "no definite answer");
        pauses.pause(shared).await;
        if shared.is_done() {
            return Err(error);
        }
    }
}

/// Gets a new token for the client, which all its clones use.
async fn log_in(shared: &Shared) -> Result<(), LockError> {
    let limit = shared.options().request_timeout;
    let mut pauses = Pauses::new();
    loop {
        let error: LockError = match timeout(limit, shared.client().refresh_token()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => Box::new(error).into(),
            Err(_) => LockError::TimedOut(limit),
        };
        if error.is_definite() {
            return Err(error);
        }
        tracing::debug!(lease = shared.lease(), %error, "no new token");
        pauses.pause(shared).await;
        if shared.is_done() {
            return Err(error);
        }
    }
}
