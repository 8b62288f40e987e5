//! `leasehold worker`, hidden: a process of a real run that is stopped, killed and judged.
//!
//! It does what a simulated client, or the simulated storage, does, and records it as they do: JSON
//! lines in a file of its own, one write each and none of them buffered, with the time of the
//! machine's monotonic clock. Whatever kills the process, what it did up to then is on record.

mod journal;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::signal::unix::{SignalKind, signal};

use self::journal::Journal;
use super::{duration, err};
use crate::{
    history::NodeName,
    net::TcpListener,
    seed::Seed,
    storage::{self, ClientOptions, GuardKind, Service, ServiceOptions, Store},
    system::{Recipe, TokenKind, own_lock},
    workload::{self, Ids, Process, Workload},
};

/// It could not start, or broke.
const BROKEN: u8 = 3;
/// Names of one life; the next life and the next client have others.
const NAMES_A_LIFE: u64 = 1_000_000;
const LIVES: u64 = 1_000;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Role {
    /// Works until SIGTERM, then finishes what it has begun.
    Client(ClientArguments),
    /// Serves from memory until SIGTERM.
    Storage(StorageArguments),
    /// Reads every key once, without a token.
    Read(CommonArguments),
}

#[derive(Debug, clap::Args)]
pub(super) struct CommonArguments {
    /// Where the record goes; the file must not be there yet.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The storage's URL.
    #[arg(long, value_name = "URL")]
    storage: String,
    /// Where etcd listens, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    endpoints: Vec<String>,
    /// What to do.
    #[arg(long, default_value = "lock_register", value_name = "NAME")]
    workload: String,
    /// The lock's name.
    #[arg(long, default_value = "/lock", value_name = "NAME")]
    lock: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct ClientArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// Which client this is, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    number: u8,
    /// Which life of it, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..1000))]
    life: u16,
    /// The seed of the run.
    #[arg(long, value_name = "SEED")]
    seed: u64,
    /// What goes to the storage as the token.
    #[arg(long, default_value = "revision", value_parser = ["revision", "lease"])]
    token: String,
    /// The longest time between the check that the lock is held and the write.
    #[arg(long, default_value = "0s", value_name = "SPAN", value_parser = duration::parse)]
    linger: Duration,
}

#[derive(Debug, clap::Args)]
pub(super) struct StorageArguments {
    /// Where the record goes; the file must not be there yet.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Where to listen.
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// unfenced, equal or monotonic.
    #[arg(long, default_value = "monotonic", value_name = "GUARD")]
    guard: GuardKind,
}

/// Works and gives the exit status.
pub(super) fn run(role: &Role) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(|error| format!("no runtime: {error}")).and_then(|runtime| {
        runtime.block_on(async {
            match role {
                Role::Client(arguments) => client(arguments).await,
                Role::Storage(arguments) => storage(arguments).await,
                Role::Read(arguments) => read(arguments).await,
            }
        })
    });
    match done {
        Ok(()) => 0,
        Err(message) => {
            err(format_args!("leasehold worker: {message}"));
            BROKEN
        }
    }
}

async fn client(arguments: &ClientArguments) -> Result<(), String> {
    let ClientArguments { common, number, life, seed, token, linger } = arguments;
    let workload = find(&common.workload)?;
    let ids = Arc::new(Ids::after(names(*number, *life)));
    let stop = ids.clone();
    let ended = ends().map_err(|error| format!("no signals: {error}"))?;
    tokio::spawn(async move {
        ended.await;
        stop.stop();
    });
    let journal = open(&common.out)?;
    let stream = Seed(*seed).stream(&format!("client-{number}/{life}"));
    let kind = if token == "lease" { TokenKind::Lease } else { TokenKind::Revision };
    let process = Process {
        make_lock: own_lock(workload.recipe, kind),
        linger: *linger,
        holdings: 0,
        ttl_s: 0,
        readers: 0,
        thinkers: workload.thinkers,
        ..process(common, NodeName::Client(*number), stream, ids, journal)
    };
    (workload.client)(process).await;
    Ok(())
}

/// Where the names of a life begin: after those of the lives and clients before it.
fn names(client: u8, life: u16) -> u64 {
    (u64::from(client) * LIVES + u64::from(life)) * NAMES_A_LIFE
}

async fn read(arguments: &CommonArguments) -> Result<(), String> {
    let workload = find(&arguments.workload)?;
    let journal = open(&arguments.out)?;
    let stream = Seed(0).stream("final reads");
    let process = process(arguments, NodeName::Nemesis, stream, Arc::new(Ids::after(0)), journal);
    let mut storage = storage::Client::new(&process.storage_url, ClientOptions::default())
        .map_err(|error| error.to_string())?;
    for key in workload.keys {
        workload::final_read(&process, &mut storage, key).await;
    }
    Ok(())
}

fn process(
    common: &CommonArguments,
    node: NodeName,
    stream: crate::seed::Stream,
    ids: Arc<Ids>,
    witness: Arc<Journal>,
) -> Process {
    Process {
        node,
        stream,
        etcd_endpoints: common.endpoints.clone(),
        storage_url: common.storage.clone(),
        lock: common.lock.clone(),
        domain: "hammer".to_owned(),
        make_lock: own_lock(Recipe::Mutex, TokenKind::Revision),
        is_definite: |error| error.definiteness() == storage::Definiteness::Definite,
        linger: Duration::ZERO,
        holdings: 0,
        ttl_s: 0,
        readers: 0,
        thinkers: 0,
        announces: false,
        ids,
        witness,
    }
}

fn find(name: &str) -> Result<&'static Workload, String> {
    let found = workload::CATALOG.iter().find(|workload| workload.name == name);
    found.ok_or_else(|| format!("no workload {name:?}"))
}

async fn storage(arguments: &StorageArguments) -> Result<(), String> {
    let listen = &arguments.listen;
    let listener =
        TcpListener::bind(listen).await.map_err(|error| format!("--listen {listen}: {error}"))?;
    let ended = ends().map_err(|error| format!("no signals: {error}"))?;
    let machine = Box::new(Store::new(arguments.guard.build()));
    let service = Service::new(machine, open(&arguments.out)?, ServiceOptions::default());
    storage::server::serve(listener, Arc::new(service), ended).await;
    Ok(())
}

fn open(path: &Path) -> Result<Arc<Journal>, String> {
    let journal = Journal::create(path);
    journal.map(Arc::new).map_err(|error| format!("--out {}: {error}", path.display()))
}

/// Waits for SIGTERM, from now on.
fn ends() -> io::Result<impl Future<Output = ()>> {
    let mut signal = signal(SignalKind::terminate())?;
    Ok(async move {
        signal.recv().await;
    })
}
