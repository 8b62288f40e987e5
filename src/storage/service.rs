//! The shell around the state machine: it numbers requests, orders them, and keeps the apply log.
//!
//! What it writes to the log is the truth that the judge decides from: an arrival before the
//! request is looked at, a row at the moment of application, an answer after it. Rows are written
//! under the same lock as the application, so their order is the order of application.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;

use super::{
    protocol::{Request, Response},
    store::{Applied, StateMachine},
};
use crate::history::{ApplyRow, Boundary, OpKind, RowResult};

/// Where the truth goes. `()` forgets it.
pub trait ApplyLog: Send + Sync {
    /// A request arrived, or its answer was handed to the network.
    fn boundary(&self, boundary: Boundary);
    /// A request was applied.
    fn applied(&self, row: ApplyRow);
}

impl ApplyLog for () {
    fn boundary(&self, _boundary: Boundary) {}
    fn applied(&self, _row: ApplyRow) {}
}

/// What a client may ask for at most. The defaults admit all that `contrib/lock` was seen to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Open connections; further ones wait to be accepted.
    pub connections: usize,
    /// A connection that completes no request for this long is closed, at the latest after twice
    /// this time. It bounds slow headers and bodies as well as idleness, with one timer each.
    pub idle_timeout: Duration,
    /// How long a shutdown waits for requests in progress.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Limits {
            body_bytes: 16 * MIB,
            key_bytes: 16 * MIB,
            value_bytes: 16 * MIB,
            connections: 1024,
            idle_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(5),
        }
    }
}

/// How a [`Service`] starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Which life of the storage process this is, counted from 1.
    pub boot: u32,
    /// How many rows earlier lives applied: the index goes on from there.
    pub applied: u64,
    /// Limits.
    pub limits: Limits,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions { boot: 1, applied: 0, limits: Limits::default() }
    }
}

/// A state machine that is served: one of it a process.
pub struct Service {
    state: Mutex<State>,
    log: Arc<dyn ApplyLog>,
    boot: u32,
    requests: AtomicU64,
    limits: Limits,
}

struct State {
    machine: Box<dyn StateMachine>,
    applied: u64,
}

impl Service {
    /// Serves this state machine and logs what it does.
    pub fn new(
        machine: Box<dyn StateMachine>,
        log: Arc<dyn ApplyLog>,
        options: ServiceOptions,
    ) -> Self {
        Service {
            state: Mutex::new(State { machine, applied: options.applied }),
            log,
            boot: options.boot,
            requests: AtomicU64::new(0),
            limits: options.limits,
        }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The index of the last row, over all boots.
    pub fn applied(&self) -> u64 {
        self.lock().applied
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes that a request arrived, and gives it a number.
    pub(super) fn arrive(&self) -> u64 {
        let request = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        self.log.boundary(Boundary::Arrival { boot: self.boot, request });
        request
    }

    /// Notes that the answer to a request goes out.
    pub(super) fn answer(&self, request: u64) {
        self.log.boundary(Boundary::Answer { boot: self.boot, request });
    }

    /// Applies a request and logs it.
    pub(super) fn apply(
        &self,
        number: u64,
        tag: Option<u64>,
        request: Request,
    ) -> (Response, RowResult) {
        let mut state = self.lock();
        let Applied { response, result, effect } = match self.over_limit(&request) {
            Some(text) => Applied::rejected(text),
            None => state.machine.apply(&request),
        };
        state.applied += 1;
        let value = match request.op {
            OpKind::Read if response.err.is_empty() => Some(response.val.clone()),
            OpKind::Read => None,
            OpKind::Write => Some(request.val.clone()),
        };
        let row = ApplyRow {
            boot: self.boot,
            request: number,
            index: state.applied,
            id: request.id(),
            tag,
            token: request.version,
            kind: request.op,
            value,
            result,
            effect,
            domain: request.domain,
            key: request.key,
        };
        tracing::trace!(request = number, index = row.index, ?result, "applied");
        self.log.applied(row);
        (response, result)
    }

    fn over_limit(&self, request: &Request) -> Option<String> {
        let over = |field, bytes: usize, max: usize| {
            (bytes > max)
                .then(|| format!("field {field:?} has {bytes} bytes: send at most {max} bytes"))
        };
        over("key", request.key.len(), self.limits.key_bytes)
            .or_else(|| over("domain", request.domain.len(), self.limits.key_bytes))
            .or_else(|| over("val", request.val.len(), self.limits.value_bytes))
    }
}
