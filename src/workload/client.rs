//! A client process: what it knows, and how it records what it does.
//!
//! One source for both worlds. Where the record goes is a [`Witness`]'s business: in simulation the
//! run's one recorder, in a real process a file of its own.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    history::{EventKind, Function, HoldingId, NodeName, OpId, Outcome, Reply},
    seed::Stream,
    storage::StorageError,
    system::{LockFailure, MakeLock},
    time::Instant,
};

/// Who writes down what a process does.
pub(crate) trait Witness: Send + Sync {
    /// Something happened on this node, now.
    fn record(&self, node: NodeName, kind: EventKind);

    /// An instant on the node's own monotonic clock, in nanoseconds.
    fn local_ns(&self, at: Instant) -> u64;

    /// A life is over; how many random numbers it drew.
    fn life_over(&self, draws: u64);
}

/// The counters of a run from which operations and holdings get their names, and the sign to stop.
#[derive(Debug)]
pub(crate) struct Ids {
    ops: AtomicU64,
    holdings: AtomicU64,
    stopped: AtomicBool,
}

impl Ids {
    /// Names after this number: processes that share no counter must not share names either.
    pub(crate) fn after(base: u64) -> Self {
        Ids { ops: base.into(), holdings: base.into(), stopped: false.into() }
    }

    fn op(&self) -> OpId {
        OpId(self.ops.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A name for the next holding.
    pub(crate) fn holding(&self) -> HoldingId {
        HoldingId(self.holdings.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Tells the clients to begin nothing new.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// One life of a client process.
pub(crate) struct Process {
    /// Where it runs.
    pub(crate) node: NodeName,
    /// Its random numbers.
    pub(crate) stream: Stream,
    /// Where etcd is.
    pub(crate) etcd_endpoints: Vec<String>,
    /// Where the storage is.
    pub(crate) storage_url: String,
    /// The lock that protects the storage.
    pub(crate) lock: String,
    /// What that lock protects, by the storage's name for it.
    pub(crate) domain: String,
    /// How it locks.
    pub(crate) make_lock: MakeLock,
    /// What it takes for a proof that nothing happened.
    pub(crate) is_definite: fn(&StorageError) -> bool,
    /// The longest time between the check that the lock is held and the write. In simulation that
    /// is a code point at which a fault can stop it; a real process must be there to be stopped.
    pub(crate) linger: Duration,
    /// How many holdings it attempts; 0 is as many as there is time for.
    pub(crate) holdings: u32,
    /// The lifetime of its leases in seconds; 0: each session draws its own.
    pub(crate) ttl_s: u16,
    /// How many of a thousand of its holdings only read.
    pub(crate) readers: u16,
    /// How many of a thousand of its holdings think for a while after they have entered.
    pub(crate) thinkers: u32,
    /// Whether each of its sessions puts a second key under its lease. The watch that keeps the
    /// record of a real run sees the lock's queue only, and wants every revision.
    pub(crate) announces: bool,
    /// Names for what it does.
    pub(crate) ids: Arc<Ids>,
    /// Who writes down what it does.
    pub(crate) witness: Arc<dyn Witness>,
}

impl Process {
    /// Whether it is to begin nothing new.
    pub(crate) fn is_stopped(&self) -> bool {
        self.ids.stopped.load(Ordering::Relaxed)
    }

    /// Records that something happened here, now.
    pub(crate) fn record(&self, kind: EventKind) {
        self.witness.record(self.node, kind);
    }

    /// The life is over: how often it drew belongs into the run hash.
    pub(crate) fn finish_life(&self) {
        self.witness.life_over(self.stream.draws());
    }

    /// An error of the storage as this client reads it.
    pub(crate) fn told(&self, error: StorageError) -> Told {
        let definite = (self.is_definite)(&error);
        Told { error, definite }
    }

    /// Records the start of an operation.
    pub(crate) fn invoke(&self, holding: Option<HoldingId>, f: Function) -> OpId {
        let op = self.ids.op();
        tracing::debug!(op = op.0, ?holding, ?f, "asks");
        self.record(EventKind::Invoke { op, holding, f });
        op
    }

    /// Records the end of an operation.
    pub(crate) fn finish(&self, op: OpId, outcome: Outcome) {
        tracing::debug!(op = op.0, ?outcome, "is told");
        self.record(EventKind::Return { op, outcome });
    }

    /// Runs an operation and records both its ends. `reply` tells what a success answered; whether
    /// an error is a fail or unknown is the error's own knowledge.
    pub(crate) async fn run<T, E: Definite>(
        &self,
        holding: Option<HoldingId>,
        f: Function,
        work: impl AsyncFnOnce(OpId) -> Result<T, E>,
        reply: impl FnOnce(&T) -> Reply,
    ) -> Result<(OpId, T), E> {
        let op = self.invoke(holding, f);
        let result = work(op).await;
        self.finish(op, outcome(&result, reply));
        result.map(|value| (op, value))
    }
}

/// An error that knows whether it proves that nothing happened.
pub(crate) trait Definite: std::fmt::Display {
    /// Whether the operation certainly had no effect.
    fn is_definite(&self) -> bool;
}

impl Definite for LockFailure {
    fn is_definite(&self) -> bool {
        self.definite
    }
}

/// An error of the storage, and what the client takes it for.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Told {
    error: StorageError,
    definite: bool,
}

impl Definite for Told {
    fn is_definite(&self) -> bool {
        self.definite
    }
}

fn outcome<T, E: Definite>(result: &Result<T, E>, reply: impl FnOnce(&T) -> Reply) -> Outcome {
    match result {
        Ok(value) => Outcome::Ok(reply(value)),
        Err(error) if error.is_definite() => Outcome::Fail(error.to_string()),
        Err(error) => Outcome::Unknown(error.to_string()),
    }
}

/// A life as the catalog wants it.
pub(super) fn life(future: impl Future<Output = ()> + Send + 'static) -> super::Life {
    Box::pin(future)
}
