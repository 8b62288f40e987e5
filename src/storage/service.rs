//! The shell around the state machine: it numbers requests, orders them, and keeps the apply log.
//!
//! What it writes to the log is the truth that the judge decides from: an arrival before the
//! request is looked at, a row at the moment of application, an answer after it. Rows are written
//! under the same lock as the application, so their order is the order of application.
//!
//! A service on a disk has a journal besides: what changed the state is noted there under that lock
//! too, and an answer waits for it ([`Service::open`]).

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use super::{
    counter::{Count, Counters},
    disk::Disk,
    encoding::{EncodingError, Entry, Reader, Writer, read_entry},
    frame::{HEAD, Kind},
    journal::{Journal, Position},
    limits::Limits,
    log::{Log, LogError, Recovered},
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

/// How a [`Service`] starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Which life of the storage process this is, counted from 1. On a disk, the disk knows.
    pub boot: u32,
    /// How many rows earlier lives applied: the index goes on from there. On a disk, the disk
    /// knows: the index of the last request that it has.
    pub applied: u64,
    /// Limits.
    pub limits: Limits,
    /// The log on the disk is replaced by a snapshot when more bytes than these have been appended
    /// to it, and more than the last snapshot had.
    pub compact_bytes: u64,
    /// Whether a panic of the code for a request is answered with status 500. If not, it goes where
    /// the runtime takes it: a simulation must not survive one unseen.
    pub catch_panics: bool,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions {
            boot: 1,
            applied: 0,
            limits: Limits::default(),
            compact_bytes: 64 * 1024 * 1024,
            catch_panics: true,
        }
    }
}

/// A state machine that is served: one of it a process.
pub struct Service {
    state: Mutex<State>,
    log: Arc<dyn ApplyLog>,
    boot: u32,
    requests: AtomicU64,
    limits: Limits,
    catch_panics: bool,
    counters: Counters,
    /// Bytes of the bodies that are under way.
    bodies: AtomicUsize,
    journal: Option<Journal>,
}

struct State {
    machine: Box<dyn StateMachine>,
    applied: u64,
}

/// What came of a request.
pub(super) struct Outcome {
    pub(super) response: Response,
    pub(super) result: RowResult,
    /// What must be durable before the answer leaves; none in memory.
    pub(super) position: Option<Position>,
}

impl Service {
    /// Serves this state machine from memory and logs what it does.
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
            catch_panics: options.catch_panics,
            counters: Counters::default(),
            bodies: AtomicUsize::new(0),
            journal: None,
        }
    }

    /// Serves this state machine, which must be fresh, from what is on the disk. No answer leaves
    /// before the disk has the state that it was computed from.
    ///
    /// # Errors
    /// When the disk fails or is damaged, or holds what another kind of storage wrote; or when this
    /// one cannot be kept on a disk.
    pub async fn open(
        mut machine: Box<dyn StateMachine>,
        log: Arc<dyn ApplyLog>,
        disk: Arc<dyn Disk>,
        options: ServiceOptions,
    ) -> Result<Self, LogError> {
        let (mut file, recovered) = Log::open(disk).await?;
        let (applied, boot) = restore(machine.as_mut(), &recovered)?;
        machine.recovered();
        let boot = boot.saturating_add(1);
        if recovered.snapshot.is_none() {
            let snapshot = snapshot(machine.as_ref(), boot, applied);
            file.rotate(&snapshot.ok_or(LogError::Volatile)?).await?;
        } else {
            // Not only a mark: it shows that the disk can be written.
            file.commit(Kind::Boot, &boot.to_le_bytes()).await?;
        }
        tracing::info!(boot, applied, "the storage starts from its disk");
        let journal = Some(Journal::new(file, options.compact_bytes));
        let service = Service::new(machine, log, ServiceOptions { boot, applied, ..options });
        Ok(Service { journal, ..service })
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The index of the last row, over all boots.
    pub fn applied(&self) -> u64 {
        self.lock().applied
    }

    /// Which life of the storage process this is, counted from 1.
    pub fn boot(&self) -> u32 {
        self.boot
    }

    /// What has been done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Why nothing is answered any more, if so: the disk failed, or the state machine panicked and
    /// its state cannot be trusted. Only a restart helps.
    pub fn stopped(&self) -> Option<String> {
        if self.state.is_poisoned() {
            return Some("the state machine panicked".to_owned());
        }
        self.journal.as_ref().and_then(Journal::stopped)
    }

    pub(super) fn catch_panics(&self) -> bool {
        self.catch_panics
    }

    pub(super) fn bodies(&self) -> &AtomicUsize {
        &self.bodies
    }

    pub(super) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Writes the journal until it ends; at once if there is none.
    pub(super) async fn keep_journal(&self) {
        let Some(journal) = &self.journal else { return };
        let snapshot = || {
            let state = self.state.lock().ok()?;
            let snapshot = snapshot(state.machine.as_ref(), self.boot, state.applied)?;
            // Under the lock: what is noted from here on is not in the snapshot.
            let (_, position) = journal.take();
            Some((snapshot, position))
        };
        journal.run(&self.counters, snapshot).await;
    }

    /// Waits until an answer that was computed at this position may leave.
    ///
    /// # Errors
    /// When it never may, and why.
    pub(super) async fn settle(&self, position: Option<Position>) -> Result<(), String> {
        match (&self.journal, position) {
            (Some(journal), Some(position)) => journal.settle(position).await,
            _ => Ok(()),
        }
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
    pub(super) fn apply(&self, number: u64, tag: Option<u64>, request: Request) -> Outcome {
        let mut state = self.lock();
        let (applied, keep) = match self.over_limit(&request) {
            Some(text) => (Applied::rejected(text), false),
            None => {
                let applied = state.machine.apply(&request);
                let keep = state.machine.keeps(&request, &applied);
                (applied, keep)
            }
        };
        let Applied { response, result, effect } = applied;
        state.applied += 1;
        self.counters.add(Count::from(result));
        let position = self.journal.as_ref().map(|journal| {
            if keep {
                journal.note(state.applied, &request);
            }
            journal.position()
        });
        let value = match request.op {
            OpKind::Read if response.err.is_empty() => Some(response.val.clone()),
            OpKind::Read => None,
            OpKind::Write => Some(request.val.clone()),
        };
        let row = ApplyRow {
            boot: self.boot,
            request: number,
            index: state.applied,
            id: request.id().filter(|_| state.machine.numbers_requests()),
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
        Outcome { response, result, position }
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

/// The state as it is kept, with what the service itself must know again.
fn snapshot(machine: &dyn StateMachine, boot: u32, applied: u64) -> Option<Vec<u8>> {
    let saved = machine.save()?;
    let mut out = Writer::default();
    out.bytes(machine.name().as_bytes());
    out.u64(u64::from(boot));
    out.u64(applied);
    out.bytes(&saved);
    Some(out.finish())
}

/// Brings the state machine to where the disk has it: the last index, and the last boot.
fn restore(machine: &mut dyn StateMachine, recovered: &Recovered) -> Result<(u64, u32), LogError> {
    let Some(snapshot) = &recovered.snapshot else { return Ok((0, 0)) };
    let mut from = Reader::new(snapshot);
    let at_start = |error| recovered.senseless(HEAD as u64, &error);
    let found = from.text().map_err(at_start)?;
    if found != machine.name() {
        let (file, expected) = (recovered.file.clone(), machine.name());
        return Err(LogError::Mismatch { file, found, expected });
    }
    let mut rest = || -> Result<(u64, u64), EncodingError> {
        let (boot, applied) = (from.u64()?, from.u64()?);
        machine.restore(from.bytes()?)?;
        Ok((boot, applied))
    };
    let (boot, mut applied) = rest().map_err(at_start)?;
    let mut boot = u32::try_from(boot).unwrap_or(u32::MAX);
    for (offset, kind, payload) in &recovered.frames {
        let senseless = |error: EncodingError| recovered.senseless(*offset, &error);
        match (kind, <[u8; 4]>::try_from(payload.as_slice())) {
            (Kind::Boot, Ok(number)) => boot = u32::from_le_bytes(number),
            (Kind::Boot, Err(_)) => {
                return Err(senseless(EncodingError("no number of a boot".to_owned())));
            }
            _ => applied = replay(machine, payload).map_err(senseless)?.unwrap_or(applied),
        }
    }
    Ok((applied, boot))
}

/// Applies a batch again; the index of its last request.
fn replay(machine: &mut dyn StateMachine, payload: &[u8]) -> Result<Option<u64>, EncodingError> {
    let mut from = Reader::new(payload);
    let mut last = None;
    while !from.is_empty() {
        let Entry { index, request } = read_entry(&mut from)?;
        let applied = machine.apply(&request);
        if !machine.keeps(&request, &applied) {
            let text = format!(
                "request {index} was admitted, and now it is not: {}",
                applied.response.err
            );
            return Err(EncodingError(text));
        }
        last = Some(index);
    }
    Ok(last)
}
