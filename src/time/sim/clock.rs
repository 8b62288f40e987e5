//! Per-node clocks as a simulator of the runtime.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Waker},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use madsim::{
    plugin::{self, Simulator},
    rand::GlobalRng,
    task::NodeId,
    time::TimeHandle,
};
use std::{future::Future, pin::pin};

/// Clock rates are parts of 1,000: 1,000 is true time, 500 is half as fast.
const TRUE_RATE: u32 = 1000;

/// The clocks of all nodes of a run.
pub(crate) struct ClockSim {
    time: TimeHandle,
    nodes: Mutex<BTreeMap<NodeId, NodeClock>>,
}

/// One node's clocks: the monotonic one is a straight line from a base point until it is changed.
struct NodeClock {
    base_true: Duration,
    base_local: Duration,
    rate_permille: u32,
    /// The machine sleeps: its monotonic clock stands still.
    suspended: bool,
    wall_offset_ms: i64,
    /// The sleeps that wait on this clock: they are woken when it changes.
    sleepers: BTreeMap<u64, Arc<AtomicWaker>>,
    next_sleeper: u64,
    /// How often the node read its clock or armed a sleep while the clock was not true.
    shifted_reads: u64,
}

impl NodeClock {
    fn new(now: Duration) -> Self {
        NodeClock {
            base_true: now,
            base_local: now,
            rate_permille: TRUE_RATE,
            suspended: false,
            wall_offset_ms: 0,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
            shifted_reads: 0,
        }
    }

    fn local(&self, now: Duration) -> Duration {
        let run = now.saturating_sub(self.base_true);
        match (self.suspended, self.rate_permille) {
            (true, _) => self.base_local,
            (false, TRUE_RATE) => self.base_local + run,
            (false, rate) => self.base_local + scale(run, rate, TRUE_RATE),
        }
    }

    /// The true time at which this clock will show `local`; none while it stands still.
    fn true_time_of(&self, local: Duration) -> Option<Duration> {
        let left = local.saturating_sub(self.base_local);
        match (self.suspended, self.rate_permille) {
            (true, _) => None,
            (false, TRUE_RATE) => Some(self.base_true + left),
            // One nanosecond more, so that the division never ends just before the deadline.
            (false, rate) => {
                let run = scale(left, TRUE_RATE, rate) + Duration::from_nanos(1);
                Some(self.base_true + run)
            }
        }
    }

    fn is_shifted(&self) -> bool {
        self.suspended || self.rate_permille != TRUE_RATE || self.wall_offset_ms != 0
    }

    /// Starts a new straight line at `now` and wakes every sleep, so that it arms itself anew.
    fn change(&mut self, now: Duration, change: impl FnOnce(&mut Self)) -> u64 {
        self.base_local = self.local(now);
        self.base_true = now;
        change(self);
        for waker in self.sleepers.values() {
            waker.wake();
        }
        self.sleepers.len() as u64
    }
}

fn scale(duration: Duration, numerator: u32, denominator: u32) -> Duration {
    let nanos = duration.as_nanos() * u128::from(numerator) / u128::from(denominator);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Simulator for ClockSim {
    fn new(_rand: &GlobalRng, time: &TimeHandle, _config: &madsim::Config) -> Self {
        ClockSim { time: time.clone(), nodes: Mutex::default() }
    }

    fn create_node(&self, id: NodeId) {
        let now = self.time.elapsed();
        self.lock().insert(id, NodeClock::new(now));
    }

    /// A killed process loses its sleeps; the machine's clocks go on.
    fn reset_node(&self, id: NodeId) {
        if let Some(clock) = self.lock().get_mut(&id) {
            clock.sleepers.clear();
        }
    }
}

impl ClockSim {
    /// The clocks of the running simulation.
    pub(crate) fn current() -> Arc<Self> {
        plugin::simulator::<ClockSim>()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, NodeClock>> {
        self.nodes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn with<R>(&self, node: NodeId, f: impl FnOnce(&mut NodeClock, Duration) -> R) -> R {
        let now = self.time.elapsed();
        f(self.lock().entry(node).or_insert_with(|| NodeClock::new(now)), now)
    }

    /// True time since the start of the run.
    pub(crate) fn true_time(&self) -> Duration {
        self.time.elapsed()
    }

    /// The node's monotonic clock.
    pub(crate) fn local(&self, node: NodeId) -> Duration {
        self.with(node, |clock, now| {
            clock.shifted_reads += u64::from(clock.is_shifted());
            clock.local(now)
        })
    }

    /// The node's wall clock, in milliseconds since the Unix epoch: a fixed day plus its offset.
    pub(crate) fn wall_ms(&self, node: NodeId) -> i64 {
        const EPOCH_MS: i64 = 1_767_225_600_000;
        self.with(node, |clock, now| {
            clock.shifted_reads += u64::from(clock.is_shifted());
            EPOCH_MS + clock.local(now).as_millis() as i64 + clock.wall_offset_ms
        })
    }

    /// Lets the node's monotonic clock run at `permille` / 1,000 of true time from now on. Gives
    /// the number of waiting sleeps that were moved.
    pub(crate) fn set_rate(&self, node: NodeId, permille: u32) -> u64 {
        self.with(node, |clock, now| {
            clock.change(now, |clock| clock.rate_permille = permille.max(1))
        })
    }

    /// Stops (or starts again) the node's monotonic clock. Gives the number of sleeps moved.
    pub(crate) fn set_suspended(&self, node: NodeId, suspended: bool) -> u64 {
        self.with(node, |clock, now| clock.change(now, |clock| clock.suspended = suspended))
    }

    /// Moves the node's wall clock away from true time; its monotonic clock does not notice.
    pub(crate) fn set_wall_offset(&self, node: NodeId, offset_ms: i64) {
        self.with(node, |clock, _| clock.wall_offset_ms = offset_ms);
    }

    /// Moves the node's wall clock by `step_ms` at once.
    pub(crate) fn step_wall(&self, node: NodeId, step_ms: i64) {
        self.with(node, |clock, _| clock.wall_offset_ms += step_ms);
    }

    pub(super) fn true_time_of(&self, node: NodeId, local: Duration) -> Option<Duration> {
        self.with(node, |clock, _| {
            clock.shifted_reads += u64::from(clock.is_shifted());
            clock.true_time_of(local)
        })
    }

    pub(super) fn add_sleeper(&self, node: NodeId, waker: Arc<AtomicWaker>) -> u64 {
        self.with(node, |clock, _| {
            clock.next_sleeper += 1;
            clock.sleepers.insert(clock.next_sleeper, waker);
            clock.next_sleeper
        })
    }

    pub(super) fn remove_sleeper(&self, node: NodeId, sleeper: u64) {
        self.with(node, |clock, _| clock.sleepers.remove(&sleeper));
    }
}

/// How often the node has used a clock that was not true: the effect of a clock fault.
pub(crate) fn node_clock_reads(node: NodeId) -> u64 {
    ClockSim::current().with(node, |clock, _| clock.shifted_reads)
}

/// True time since the start of the run, in nanoseconds.
pub(crate) fn true_ns() -> u64 {
    TimeHandle::current().elapsed().as_nanos() as u64
}

/// Wakes `waker` at the given true time (at the earliest one millisecond from now, as tokio does).
///
/// The runtime offers no bare timer: polling a sleep once leaves its timer behind, and that timer
/// holds the waker. It is called within the runtime's own tick, so `waker` must arm nothing itself.
pub(crate) fn arm_at(time: &TimeHandle, at: Duration, waker: &Waker) {
    let wait = at.saturating_sub(time.elapsed());
    let sleep = pin!(time.sleep(wait));
    if sleep.poll(&mut Context::from_waker(waker)).is_ready() {
        waker.wake_by_ref();
    }
}

pub(super) fn arm(clocks: &ClockSim, at: Duration, waker: &Waker) {
    arm_at(&clocks.time, at, waker);
}
