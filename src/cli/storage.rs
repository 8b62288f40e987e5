//! `leasehold storage`: the fenced key-value storage as a program.
//!
//! It listens, opens its data directory, and serves until SIGTERM or SIGINT, on which it finishes
//! what is in progress and ends with status 0. One line on standard error says where it listens.
//! When it cannot go on (a failed disk) it ends with status 1, so that whoever supervises it starts
//! it again: only a new start knows what the disk holds.
//!
//! The guard is `monotonic` unless another is asked for. contrib/lock's own is `equal`, which locks
//! rightful holders out and is here for comparison.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use clap::ValueEnum;
use nix::sys::signal::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::Notify,
};

use super::{err, usage};
use crate::{
    net::TcpListener,
    storage::{GuardKind, Limits, Service, ServiceOptions, Store, admin, disk::Directory, server},
    time::sleep,
};

/// It could not start, or not go on.
const FAILED: u8 = 1;
/// How often it is looked whether the storage can still go on.
const LOOK: Duration = Duration::from_millis(500);

/// Which check stands in front of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Guard {
    /// One mark for all that a lock protects: what is below the highest version seen is refused,
    /// and so is a write without one. For clients whose versions grow from holder to holder.
    Monotonic,
    /// contrib/lock's: a write's version must be the one stored with the key. Once a key exists,
    /// only its first writer can write it.
    Equal,
    /// No fence.
    Unfenced,
}

impl From<Guard> for GuardKind {
    fn from(guard: Guard) -> Self {
        match guard {
            Guard::Monotonic => GuardKind::Monotonic,
            Guard::Equal => GuardKind::Equal,
            Guard::Unfenced => GuardKind::Unfenced,
        }
    }
}

/// Arguments of `leasehold storage`.
#[derive(Debug, clap::Args)]
pub(super) struct StorageArguments {
    /// Where to listen; port 0 lets the system choose.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Which check stands in front of the data.
    #[arg(long, value_name = "GUARD", default_value = "monotonic")]
    guard: Guard,
    /// Where the data is kept [default: in memory only, as contrib/lock's].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where to show counters, at /metrics [default: nowhere]. Not for the world.
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    /// How many connections are served at one time; further ones are turned away.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections as u32)]
    max_connections: u32,
    /// The log in the data directory is replaced by a snapshot after that many more bytes.
    #[arg(long, value_name = "N", default_value_t = ServiceOptions::default().compact_bytes)]
    compact_bytes: u64,
}

/// Why it does not serve.
enum Failure {
    /// The flags cannot be used.
    Usage(String),
    /// The world is not as it should be.
    Failed(String),
}

/// Serves and gives the exit status.
pub(super) fn run(arguments: &StorageArguments) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            err(format_args!("error: no runtime: {error}"));
            return FAILED;
        }
    };
    match runtime.block_on(serve(arguments)) {
        Ok(()) => 0,
        Err(Failure::Usage(message)) => usage(format_args!("{message}")),
        Err(Failure::Failed(message)) => {
            err(format_args!("leasehold storage: {message}"));
            FAILED
        }
    }
}

async fn serve(arguments: &StorageArguments) -> Result<(), Failure> {
    if arguments.max_connections == 0 {
        return Err(Failure::Usage("--max-connections is 0: expected 1 or more".to_owned()));
    }
    let failed = |error: io::Error| Failure::Failed(format!("no signals: {error}"));
    // First of all, so that a signal at any time ends it in an orderly way.
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    // Whose default is death in the midst of a write. Caught, the write fails and says why.
    let _too_large = signal(SignalKind::from_raw(Signal::SIGXFSZ as i32)).map_err(failed)?;
    let listener = bind("--listen", &arguments.listen).await?;
    let counters = match &arguments.admin {
        Some(address) => Some(bind("--admin", address).await?),
        None => None,
    };
    let service = Arc::new(open(arguments).await?);
    err(format_args!("{}", announcement(arguments, &listener, counters.as_ref())));

    let over = Arc::new(Notify::new());
    if let Some(counters) = counters {
        drop(tokio::spawn(admin::serve(counters, service.clone(), std::future::pending())));
    }
    let (watched, told) = (service.clone(), over.clone());
    drop(tokio::spawn(async move {
        while watched.stopped().is_none() {
            sleep(LOOK).await;
        }
        told.notify_one();
    }));
    let shutdown = async {
        tokio::select! {
            biased;
            _ = terminate.recv() => tracing::info!("SIGTERM"),
            _ = interrupt.recv() => tracing::info!("SIGINT"),
            () = over.notified() => {}
        }
    };
    server::serve(listener, service.clone(), shutdown).await;
    match service.stopped() {
        Some(why) => Err(Failure::Failed(format!("cannot go on: {why}"))),
        None => Ok(()),
    }
}

async fn bind(flag: &str, address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            Failure::Usage(format!("{flag} {address:?}: {error}: expected HOST:PORT"))
        }
        _ => Failure::Failed(format!("cannot listen on {address}: {error}")),
    })
}

/// The service, in memory or on the data directory.
async fn open(arguments: &StorageArguments) -> Result<Service, Failure> {
    let machine = Box::new(Store::of_kind(arguments.guard.into()));
    let limits = Limits { connections: arguments.max_connections as usize, ..Limits::default() };
    let options = ServiceOptions {
        limits,
        compact_bytes: arguments.compact_bytes,
        ..ServiceOptions::default()
    };
    let Some(path) = &arguments.data_dir else {
        return Ok(Service::new(machine, Arc::new(()), options));
    };
    let disk = Directory::open(path).map_err(|error| Failure::Failed(error.to_string()))?;
    Service::open(machine, Arc::new(()), Arc::new(disk), options)
        .await
        .map_err(|error| Failure::Failed(format!("data directory {}: {error}", path.display())))
}

/// The line that says that it serves: what and where.
fn announcement(
    arguments: &StorageArguments,
    listener: &TcpListener,
    counters: Option<&TcpListener>,
) -> String {
    let address = |listener: &TcpListener, asked: &str| {
        listener.local_addr().map_or(asked.to_owned(), |address| address.to_string())
    };
    let listen = address(listener, &arguments.listen);
    let guard = GuardKind::from(arguments.guard).name();
    let data = match &arguments.data_dir {
        Some(path) => path.display().to_string(),
        None => "in memory".to_owned(),
    };
    let mut line = format!("leasehold storage: listening on {listen}; guard {guard}; data {data}");
    if let (Some(counters), Some(asked)) = (counters, &arguments.admin) {
        line += &format!("; counters http://{}/metrics", address(counters, asked));
    }
    line
}
