//! The start: etcd is asked for a session again and again, for a bounded time.
//!
//! A cluster that is between two leaders, or a member that is being started again, is back within
//! seconds, and what runs under a lock is often run by a clock that comes again tomorrow. What will
//! not pass (a refusal, a wrong certificate) ends the start at once.

use std::time::Duration;

use crate::{
    concurrency::{LockError, Session, SessionOptions},
    etcd::Client,
    time::{Instant, sleep, timeout_at},
};

use super::{
    super::{
        USAGE,
        endpoint::{ConnectError, of_lock},
    },
    DEADLINE_PERMILLE, Failure, LockArguments, UNREACHABLE,
};

/// How long etcd is waited for when the lock is waited for for ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause between two attempts, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// An attempt that failed, and whether the next may do better.
struct Missed {
    failure: Failure,
    may_pass: bool,
}

/// Connects and opens the session.
pub(super) async fn open(arguments: &LockArguments) -> Result<Session, Failure> {
    let limit = match arguments.wait {
        None => PATIENCE,
        Some(Duration::ZERO) => arguments.etcd.request_timeout(),
        Some(wait) => wait,
    };
    let until = Instant::now() + limit;
    let mut client = None;
    // The first attempt has its full time, however short the wait is.
    let mut missed = match attempt(arguments, &mut client).await {
        Ok(session) => return Ok(session),
        Err(missed) => missed,
    };
    let mut pause = PAUSES.0;
    let left = until.saturating_duration_since(Instant::now());
    if missed.may_pass && !left.is_zero() {
        let Failure(_, why) = &missed.failure;
        tracing::warn!("{why}; it is tried again for {:.1} s", left.as_secs_f64());
    }
    while missed.may_pass {
        sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
        pause = (pause * 2).min(PAUSES.1);
        match timeout_at(until, attempt(arguments, &mut client)).await {
            Ok(Ok(session)) => return Ok(session),
            Ok(Err(again)) => missed = again,
            Err(_) => break,
        }
    }
    Err(missed.failure)
}

/// One attempt; a client that was connected once is kept.
async fn attempt(
    arguments: &LockArguments,
    client: &mut Option<Client>,
) -> Result<Session, Missed> {
    let client = match client {
        Some(client) => client,
        None => client.insert(arguments.etcd.connect().await.map_err(not_connected)?),
    };
    let options = SessionOptions {
        ttl_s: arguments.ttl_s(),
        request_timeout: arguments.etcd.request_timeout(),
        deadline_permille: DEADLINE_PERMILLE,
        ..SessionOptions::default()
    };
    Session::new(client, options).await.map_err(|error| Missed {
        // A reply that came too late is definite, and the next may be in time.
        may_pass: !error.is_definite() || matches!(error, LockError::SessionExpired),
        failure: Failure(UNREACHABLE, format!("no session: {}", of_lock(&error))),
    })
}

fn not_connected(error: ConnectError) -> Missed {
    let (status, may_pass) = match &error {
        ConnectError::Usage(_) => (USAGE, false),
        ConnectError::Refused { .. } => (UNREACHABLE, false),
        ConnectError::Unreachable { lasting, .. } => (UNREACHABLE, !lasting),
    };
    Missed { failure: Failure(status, error.to_string()), may_pass }
}
