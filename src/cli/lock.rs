//! `leasehold lock`: runs a command while holding a lock, and stops it before the lock can be lost.
//!
//! The lease is renewed as long as the command runs. If renewals stay away, the command is asked to
//! end (SIGTERM to its process group) so early that the grace is over, and the group killed, before
//! the lease can expire: given that this machine's clock runs at least 0.95 times as fast as
//! etcd's, and that this process runs. A suspend of the machine is counted where the system has a
//! clock that counts it. The lock's key is watched, too: if it is deleted or its lease revoked, the
//! command is asked to end within one delivery of that news, and killed when its grace is over.
//!
//! What a wrapper cannot do: stop the command while it is itself stopped from outside (SIGSTOP) or
//! was killed. The token in `LEASEHOLD_TOKEN` is for the resource, which alone can refuse a late
//! write.

mod child;
mod signals;
mod start;
mod terminal;
mod watchdog;

use std::{ffi::OsString, time::Duration};

use crate::{
    concurrency::{Held, LockError, Mutex, Session},
    time::timeout,
};

use self::{
    child::{Child, Ended},
    signals::Signals,
};
use super::{
    duration,
    endpoint::{EtcdArguments, of_lock},
    err, usage,
};

/// etcd is not reached, or refuses (`EX_UNAVAILABLE` of sysexits.h).
const UNREACHABLE: u8 = 69;
/// The lock was lost, or not acquired in time (`EX_TEMPFAIL`).
const LOST: u8 = 75;
/// The part of the TTL, in thousandths, for which the session says "held".
const DEADLINE_PERMILLE: u32 = 950;

#[derive(Debug, clap::Args)]
pub(super) struct LockArguments {
    /// The lock's name; the queue in etcd is under NAME/.
    name: String,
    /// The lease's time to live, in whole seconds; etcd may grant more.
    #[arg(
        long,
        value_name = "SPAN",
        default_value = "10s",
        value_parser = duration::parse_positive
    )]
    ttl: Duration,
    /// The time from SIGTERM to SIGKILL; at most two fifths of the TTL [default: a third of it].
    #[arg(long, value_name = "SPAN", value_parser = duration::parse)]
    grace: Option<Duration>,
    /// How long to wait for etcd at the start, and then for the lock; 0s: take it only if it is
    /// free [default: 10s for etcd, for ever for the lock].
    #[arg(long, value_name = "SPAN", value_parser = duration::parse)]
    wait: Option<Duration>,
    #[command(flatten)]
    etcd: EtcdArguments,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Why there is no lock: the exit status, and what to say.
struct Failure(u8, String);

impl LockArguments {
    /// Whole seconds, rounded up.
    fn ttl_s(&self) -> i64 {
        let whole = self.ttl.as_secs() + u64::from(self.ttl.subsec_nanos() > 0);
        i64::try_from(whole).unwrap_or(i64::MAX)
    }

    fn check(&self) -> Result<(), String> {
        let most = self.ttl * 2 / 5;
        match self.grace {
            Some(grace) if grace > most => Err(format!(
                "--grace {grace:?} is more than {most:?}, two fifths of --ttl {:?}: a renewal that \
                 is a little late would stop the command; make --ttl longer",
                self.ttl
            )),
            _ if self.name.is_empty() => Err("NAME is empty; name the lock".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Runs the command and gives the exit status.
pub(super) fn run(arguments: &LockArguments) -> u8 {
    if let Err(message) = arguments.check() {
        return usage(format_args!("{message}"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            err(format_args!("error: no runtime: {error}"));
            return UNREACHABLE;
        }
    };
    runtime.block_on(async {
        match guarded(arguments).await {
            Ok(status) => status,
            Err(Failure(status, message)) => {
                err(format_args!("leasehold lock: {message}"));
                status
            }
        }
    })
}

async fn guarded(arguments: &LockArguments) -> Result<u8, Failure> {
    let mut signals =
        Signals::new().map_err(|error| Failure(UNREACHABLE, format!("no signals: {error}")))?;
    let session = tokio::select! {
        biased;
        signal = signals.next() => return Ok(128 + signal as u8),
        session = start::open(arguments) => session?,
    };
    let mutex = Mutex::new(&session, &arguments.name);
    let acquired = tokio::select! {
        biased;
        signal = signals.next() => Err(Failure(128 + signal as u8, "stopped while waiting".into())),
        acquired = acquire(arguments, &mutex) => acquired,
    };
    let outcome = match acquired {
        Ok(held) => hold(arguments, held, &mut signals).await,
        Err(failure) => Err(failure),
    };
    release(&mutex, &session, arguments.etcd.request_timeout()).await;
    outcome
}

async fn acquire(arguments: &LockArguments, mutex: &Mutex) -> Result<Held, Failure> {
    let name = &arguments.name;
    let limit = arguments.etcd.request_timeout();
    let outcome = match arguments.wait {
        None => mutex.lock().await,
        // A deadline of now would leave no time to take even a lock that is free.
        Some(Duration::ZERO) => match timeout(limit, mutex.try_lock()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(LockError::TimedOut(limit)),
        },
        Some(wait) => mutex.lock_for(wait).await,
    };
    let held = outcome.and_then(|_| mutex.held().ok_or(LockError::Released));
    held.map_err(|error| match error {
        LockError::Locked => Failure(LOST, format!("lock {name:?} is held by another")),
        LockError::TimedOut(limit) => {
            let wait = arguments.wait.filter(|wait| !wait.is_zero()).unwrap_or(limit);
            Failure(LOST, format!("lock {name:?} not acquired within {wait:?}"))
        }
        LockError::SessionExpired => {
            Failure(LOST, format!("lock {name:?} not acquired: the lease ended while waiting"))
        }
        error => Failure(UNREACHABLE, format!("lock {name:?} not acquired: {}", of_lock(&error))),
    })
}

/// Runs the command under the lock.
async fn hold(arguments: &LockArguments, held: Held, signals: &mut Signals) -> Result<u8, Failure> {
    let grace = arguments.grace.unwrap_or(held.session().ttl() / 3);
    let environment = [
        ("LEASEHOLD_TOKEN", held.token().to_string()),
        ("LEASEHOLD_LOCK", arguments.name.clone()),
        ("LEASEHOLD_LEASE", format!("{:x}", held.session().lease())),
    ];
    let mut child = match Child::start(&arguments.command, &environment) {
        Ok(child) => child,
        Err(error) => {
            // As shells do: 127 if there is no such command, 126 if it cannot be run.
            let status = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            let program = arguments.command[0].to_string_lossy();
            return Err(Failure(status, format!("{program}: {error}")));
        }
    };
    let ended = child.watch(&held, grace, DEADLINE_PERMILLE, signals).await;
    match ended {
        Ok(Ended { status, stopped: None }) => Ok(status),
        Ok(Ended { stopped: Some(loss), .. }) => {
            let name = &arguments.name;
            let message = match loss {
                Some(loss) => format!("lock {name:?} lost: {loss}; the command was stopped"),
                None => format!("lock {name:?} about to be lost; the command was stopped"),
            };
            Err(Failure(LOST, message))
        }
        Err(error) => Err(Failure(LOST, format!("the command cannot be waited for: {error}"))),
    }
}

/// Gives lock and lease back, in the time of one request and not beyond the lease's end. What does
/// not work is left to that; a session that is over has nothing to give back.
async fn release(mutex: &Mutex, session: &Session, limit: Duration) {
    if session.is_done() {
        return;
    }
    let giving_back = async {
        if mutex.token().is_some() {
            let _ = mutex.unlock().await;
        }
        session.close().await
    };
    match timeout(limit.min(session.remaining()), giving_back).await {
        Ok(Ok(())) => {}
        _ => tracing::warn!(lease = session.lease(), "lease not revoked; it will expire"),
    }
}
