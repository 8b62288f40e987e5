//! The client program of etcd's `contrib/lock`, as one async function.
//!
//! It tells the story that the original tells, line by line (`contrib/lock/client/client.go`), over
//! an output and a prompt: the program prints with Go's time stamp and waits for a key, the demo
//! collects the lines and lets its plan answer. How etcd is reached is the caller's matter.
//!
//! Two faults of the original are not copied. A client whose write fails gives the lock back before
//! it ends, so that the next one need not wait for the lease to run out. And what is shown to the
//! storage is by default the create revision, which has an order, and not the lease id.

use std::{fmt::Display, future::Future, time::Duration};

use crate::{
    concurrency::{Mutex, Session, SessionOptions},
    etcd,
    storage::{self, ClientOptions, Request, StorageError},
    time::timeout,
};

/// The name of the lock.
const LOCK: &str = "/lock";
/// The key that both clients write.
const KEY: &str = "key0";
/// Without this check a client that cannot reach etcd would wait for its session for ever.
const REACH_TIMEOUT: Duration = Duration::from_secs(5);

/// What the client shows to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The lease id, as the original does.
    Lease,
    /// The create revision of the queue key.
    CreateRevision,
}

/// Which part of the story a client plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Client 1: waits at the prompt while it holds the lock, and then writes.
    First,
    /// Client 2: writes at once.
    Second,
}

impl Role {
    fn number(self) -> u8 {
        match self {
            Role::First => 1,
            Role::Second => 2,
        }
    }
}

/// What the program is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which client it is.
    pub role: Role,
    /// Where the storage listens, as `host:port` or `http://host:port`.
    pub storage: String,
    /// The time to live of the session, in seconds; etcd grants 2 at least.
    pub ttl_s: i64,
    /// What goes to the storage as the version.
    pub version: Version,
}

impl Options {
    /// The original's storage and TTL, and a version that has an order.
    pub fn new(role: Role) -> Self {
        Options {
            role,
            storage: "localhost:8080".to_owned(),
            ttl_s: 1,
            version: Version::CreateRevision,
        }
    }
}

/// Plays a client to its end and says with which status the program exits: 0, or 1 after a failure
/// that was not expected. `connecting` makes the client of etcd; `output` is given each line without
/// time stamp and newline; `prompt` is awaited where client 1 waits for a key.
pub async fn run(
    options: &Options,
    connecting: impl Future<Output = Result<etcd::Client, impl Display>>,
    mut output: impl FnMut(&str),
    prompt: impl Future<Output = ()>,
) -> u8 {
    output(&format!("client {} starts", options.role.number()));
    let session = match open(options, connecting).await {
        Ok(session) => session,
        Err(line) => {
            output(&line);
            return 1;
        }
    };
    output("created etcd client and session");
    let status = hold(options, &session, &mut output, prompt).await;
    // The lease may be gone already, which is the point of the story: no error then or now.
    if let Err(error) = session.close().await {
        tracing::debug!(%error, "the session was not closed");
    }
    status
}

/// Connects and opens the session; the error is the line to print.
async fn open(
    options: &Options,
    connecting: impl Future<Output = Result<etcd::Client, impl Display>>,
) -> Result<Session, String> {
    let connected = connecting.await;
    let mut client = connected.map_err(|error| format!("failed to reach etcd: {error}"))?;
    match timeout(REACH_TIMEOUT, client.member_list()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(format!("failed to reach etcd: {error}")),
        Err(_) => return Err("failed to reach etcd: context deadline exceeded".to_owned()),
    }
    let session_options = SessionOptions { ttl_s: options.ttl_s, ..SessionOptions::default() };
    let session = Session::new(&client, session_options).await;
    session.map_err(|error| format!("failed to create a session: {error}"))
}

/// Locks, waits where client 1 waits, writes, unlocks.
async fn hold(
    options: &Options,
    session: &Session,
    output: &mut impl FnMut(&str),
    prompt: impl Future<Output = ()>,
) -> u8 {
    let mutex = Mutex::new(session, LOCK);
    let token = match mutex.lock().await {
        Ok(token) => token,
        Err(error) => {
            output(&format!("failed to acquire the lock: {error}"));
            return 1;
        }
    };
    let lease = session.lease();
    let version = match options.version {
        Version::Lease => lease,
        Version::CreateRevision => token.get(),
    };
    output(&format!("acquired lock, version: {version:x}"));
    match options.role {
        Role::First => {
            output(&format!(
                "please manually revoke the lease using 'etcdctl lease revoke {lease:x}' or wait \
                 for it to expire, then start executing client 2 and hit any key..."
            ));
            prompt.await;
            output("resuming client 1");
        }
        Role::Second => output("this is client 2, continuing"),
    }
    let status = match (write(options, version).await, options.role) {
        (Ok(None), _) => {
            output(&format!("successfully write a key to storage using lease {version:x}"));
            0
        }
        (Ok(Some(refusal)), Role::First) => {
            let line = "expected fail to write to storage with old lease version: error:";
            output(&format!("{line} {refusal}"));
            0
        }
        (Ok(Some(refusal)), Role::Second) => {
            output(&format!("unexpected fail to write to storage: error: {refusal}"));
            1
        }
        (Err(line), _) => {
            output(&line);
            1
        }
    };
    if let Err(error) = mutex.unlock().await {
        tracing::debug!(%error, "the lock was not held any more");
    }
    status
}

/// One write in the old protocol: why it was refused, or nothing if it was not. The error is the
/// line to print when there is no answer.
async fn write(options: &Options, version: i64) -> Result<Option<String>, String> {
    let value = format!("value from client {:x}", options.role.number());
    let mut client = storage::Client::new(&options.storage, ClientOptions::default())
        .map_err(|error| format!("failed to send a request to storage: {error}"))?;
    match client.call(&Request::write(KEY, value, version)).await {
        Ok(response) => Ok(Some(response.err).filter(|err| !err.is_empty())),
        // The original looks at no status.
        Err(StorageError::Rejected { message, .. }) => Ok(Some(message)),
        Err(error @ StorageError::Protocol { .. }) => {
            Err(format!("failed to unmarshal response json: {error}"))
        }
        Err(error) => Err(format!("failed to send a request to storage: {error}")),
    }
}
