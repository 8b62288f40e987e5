//! `leasehold client`: a client of contrib/lock, on a real etcd and a real storage.
//!
//! The story is told by [`contrib`]; here is what the program adds: flags, the time stamp of Go's
//! log in front of each line, and the key that client 1 waits for (the end of input counts as one).
//! Unlike the original it shows the create revision to the storage, because lease ids have no
//! order; `--token lease` is the original's way.

use std::io::Read;

use clap::ValueEnum;
use tokio::sync::oneshot;

use super::{
    endpoint::{ConnectError, EtcdArguments},
    err, usage,
};
use crate::{
    contrib::{self, Options, Role, Version},
    storage::{self, ClientOptions},
};

/// The endpoints of the original.
const ENDPOINTS: [&str; 3] = ["127.0.0.1:2379", "127.0.0.1:22379", "127.0.0.1:32379"];

/// What the client shows to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Token {
    /// The lease id, as contrib/lock: it has no order, and is fixed before the lock is acquired.
    Lease,
    /// The create revision of the lock's key: it grows from holder to holder.
    Revision,
}

/// Arguments of `leasehold client`.
#[derive(Debug, clap::Args)]
pub(super) struct ClientArguments {
    /// 1 waits for a key while it holds the lock, 2 writes at once.
    #[arg(value_name = "1|2", value_parser = ["1", "2"])]
    client: String,
    /// Where the storage listens.
    #[arg(long, value_name = "URL", default_value = "http://localhost:8080")]
    storage: String,
    /// The session's time to live, in seconds; etcd grants 2 at least.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 1,
        value_parser = clap::value_parser!(i64).range(1..=9_000_000_000)
    )]
    ttl: i64,
    /// What the client shows to the storage.
    #[arg(long, value_name = "TOKEN", default_value = "revision")]
    token: Token,
    #[command(flatten)]
    etcd: EtcdArguments,
}

/// Plays the client and gives the exit status.
pub(super) fn run(mut arguments: ClientArguments) -> u8 {
    arguments.etcd.or_endpoints(&ENDPOINTS);
    if let Err(error) = storage::Client::new(&arguments.storage, ClientOptions::default()) {
        return usage(format_args!("--storage: {error}"));
    }
    if let Err(error) = arguments.etcd.check() {
        return usage(format_args!("{error}"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            err(format_args!("error: no runtime: {error}"));
            return 1;
        }
    };
    let role = if arguments.client == "1" { Role::First } else { Role::Second };
    let options = Options {
        storage: arguments.storage,
        ttl_s: arguments.ttl,
        version: match arguments.token {
            Token::Lease => Version::Lease,
            Token::Revision => Version::CreateRevision,
        },
        ..Options::new(role)
    };
    let etcd = &arguments.etcd;
    let connecting = async {
        etcd.connect().await.map_err(|error| match error {
            ConnectError::Unreachable { endpoints, reason, .. }
            | ConnectError::Refused { endpoints, reason } => format!("{endpoints}: {reason}"),
            error @ ConnectError::Usage(_) => error.to_string(),
        })
    };
    runtime.block_on(contrib::run(&options, connecting, log, key()))
}

/// Prints a line as Go's `log` does (`LstdFlags`): local date and time in front.
fn log(line: &str) {
    err(format_args!("{} {line}", jiff::ZonedDateTime::now().strftime("%Y/%m/%d %H:%M:%S")));
}

/// Waits for one byte of standard input, or for its end. The thread that reads it is its own: a
/// read cannot be called off, and nothing may wait for it at the end.
async fn key() {
    let (pressed, wait) = oneshot::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        let read = std::io::stdin().lock().read(&mut byte);
        tracing::debug!(?read, "a key");
        let _ = pressed.send(());
    });
    let _ = wait.await;
}
