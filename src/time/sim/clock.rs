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

/// How often a node has used a clock that was not true: the effect of clock faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClockEffect {
    /// Sleeps that were looked at while the rate of the monotonic clock was not 1.
    pub(crate) rated: u64,
    /// Readings of the wall clock while it was off.
    pub(crate) offset: u64,
}

/// A movement of a wall clock: a function of true time, so that it needs no timer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wall {
    /// It has jumped and is led back evenly.
    Slewed {
        /// How far it jumped, in milliseconds.
        step_ms: i64,
        /// When it will be right again, after its beginning.
        within: Duration,
    },
    /// It jumps to and fro.
    Strobe {
        /// How far, in milliseconds.
        offset_ms: i64,
        /// How long it stays on either side.
        period: Duration,
    },
}

impl Wall {
    /// How far the clock is off, so long after the beginning.
    fn offset_ms(self, run: Duration) -> i64 {
        match self {
            Wall::Slewed { step_ms, within } => {
                let left = within.saturating_sub(run).as_millis() as i128;
                (i128::from(step_ms) * left / (within.as_millis() as i128).max(1)) as i64
            }
            Wall::Strobe { offset_ms, period } => {
                let turn = run.as_nanos() / period.as_nanos().max(1);
                if turn.is_multiple_of(2) { offset_ms } else { 0 }
            }
        }
    }
}

/// One node's clocks: the monotonic one is a straight line from a base point until it is changed.
struct NodeClock {
    name: String,
    base_true: Duration,
    base_local: Duration,
    rate_permille: u32,
    /// The rates that faults ask for: the clock runs at their product.
    rates: Vec<u32>,
    /// How many suspends lie on the machine: while there is one, the clock stands still.
    suspends: u32,
    wall_offset_ms: i64,
    /// What moves the wall clock besides.
    walls: Vec<(u64, Wall, Duration)>,
    next_wall: u64,
    /// The sleeps that wait on this clock, with their deadlines: they are woken when it changes.
    sleepers: BTreeMap<u64, (Duration, Arc<AtomicWaker>)>,
    next_sleeper: u64,
    effect: ClockEffect,
}

impl NodeClock {
    fn new(now: Duration) -> Self {
        NodeClock {
            name: String::new(),
            base_true: now,
            base_local: now,
            rate_permille: TRUE_RATE,
            rates: Vec::new(),
            suspends: 0,
            wall_offset_ms: 0,
            walls: Vec::new(),
            next_wall: 0,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
            effect: ClockEffect::default(),
        }
    }

    fn local(&self, now: Duration) -> Duration {
        let run = now.saturating_sub(self.base_true);
        match (self.suspends > 0, self.rate_permille) {
            (true, _) => self.base_local,
            (false, TRUE_RATE) => self.base_local + run,
            (false, rate) => self.base_local + scale(run, rate, TRUE_RATE),
        }
    }

    /// The true time at which this clock will show `local`; none while it stands still.
    fn true_time_of(&self, local: Duration) -> Option<Duration> {
        let left = local.saturating_sub(self.base_local);
        match (self.suspends > 0, self.rate_permille) {
            (true, _) => None,
            (false, TRUE_RATE) => Some(self.base_true + left),
            // One nanosecond more, so that the division never ends just before the deadline.
            (false, rate) => {
                let run = scale(left, TRUE_RATE, rate) + Duration::from_nanos(1);
                Some(self.base_true + run)
            }
        }
    }

    /// Starts a new straight line at `now` and wakes every sleep, so that it arms itself anew.
    fn change(&mut self, now: Duration, change: impl FnOnce(&mut Self)) -> u64 {
        self.base_local = self.local(now);
        self.base_true = now;
        change(self);
        for (_, waker) in self.sleepers.values() {
            waker.wake();
        }
        self.sleepers.len() as u64
    }
}

impl NodeClock {
    fn multiply_rates(&mut self) {
        let product = self.rates.iter().fold(u64::from(TRUE_RATE), |product, rate| {
            product * u64::from(*rate) / u64::from(TRUE_RATE)
        });
        self.rate_permille = product.clamp(10, 100_000) as u32;
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

    /// The node's monotonic clock.
    pub(crate) fn local(&self, node: NodeId) -> Duration {
        self.with(node, |clock, now| clock.local(now))
    }

    /// The node's wall clock, in milliseconds since the Unix epoch: a fixed day plus its offset.
    pub(crate) fn wall_ms(&self, node: NodeId) -> i64 {
        const EPOCH_MS: i64 = 1_767_225_600_000;
        self.with(node, |clock, now| {
            let moved = |(_, wall, since): &(u64, Wall, Duration)| {
                wall.offset_ms(now.saturating_sub(*since))
            };
            let off_ms = clock.wall_offset_ms + clock.walls.iter().map(moved).sum::<i64>();
            clock.effect.offset += u64::from(off_ms != 0);
            // The real-time clock of a machine goes on while its monotonic clock stands still.
            EPOCH_MS + now.as_millis() as i64 + off_ms
        })
    }

    /// Names a node, for the log.
    pub(crate) fn set_name(&self, node: NodeId, name: String) {
        self.with(node, |clock, _| clock.name = name);
    }

    /// The node's name and monotonic clock, for the log: reading it for that is no effect of a
    /// fault, or the log would change the run.
    #[cfg(feature = "cli")]
    pub(super) fn peek(&self, node: NodeId) -> (String, Duration) {
        self.with(node, |clock, now| (clock.name.clone(), clock.local(now)))
    }

    /// Lets the node's monotonic clock run at `permille` / 1,000 of its rate from now on.
    pub(crate) fn add_rate(&self, node: NodeId, permille: u32) {
        self.with(node, |clock, now| {
            clock.change(now, |clock| {
                clock.rates.push(permille);
                clock.multiply_rates();
            })
        });
    }

    /// Takes a rate back.
    pub(crate) fn remove_rate(&self, node: NodeId, permille: u32) {
        self.with(node, |clock, now| {
            clock.change(now, |clock| {
                if let Some(index) = clock.rates.iter().position(|rate| *rate == permille) {
                    clock.rates.remove(index);
                }
                clock.multiply_rates();
            })
        });
    }

    /// At which part of true time the node's monotonic clock runs, in thousandths; 0 if it stands
    /// still.
    pub(crate) fn rate_permille(&self, node: NodeId) -> u32 {
        self.with(node, |clock, _| if clock.suspends > 0 { 0 } else { clock.rate_permille })
    }

    /// Stops the node's monotonic clock. Gives the number of waiting sleeps that this moves.
    pub(crate) fn suspend(&self, node: NodeId) -> u64 {
        self.with(node, |clock, now| clock.change(now, |clock| clock.suspends += 1))
    }

    /// Takes one suspend back.
    pub(crate) fn wake_up(&self, node: NodeId) {
        self.with(node, |clock, now| {
            clock.change(now, |clock| clock.suspends = clock.suspends.saturating_sub(1))
        });
    }

    /// Moves the node's wall clock by `step_ms`; its monotonic clock does not notice.
    pub(crate) fn step_wall(&self, node: NodeId, step_ms: i64) {
        self.with(node, |clock, _| clock.wall_offset_ms += step_ms);
    }

    /// Moves the node's wall clock from now on, until it is taken back.
    pub(crate) fn add_wall(&self, node: NodeId, wall: Wall) -> u64 {
        self.with(node, |clock, now| {
            clock.next_wall += 1;
            clock.walls.push((clock.next_wall, wall, now));
            clock.next_wall
        })
    }

    /// Takes a movement back.
    pub(crate) fn remove_wall(&self, node: NodeId, id: u64) {
        self.with(node, |clock, _| clock.walls.retain(|(one, ..)| *one != id));
    }

    /// What clock faults have done to the node since the start.
    pub(crate) fn effect(&self, node: NodeId) -> ClockEffect {
        self.with(node, |clock, _| clock.effect)
    }

    /// How many of the node's sleeps have come due and have not ended: it stands still.
    pub(crate) fn overdue(&self, node: NodeId) -> u64 {
        self.with(node, |clock, now| {
            let local = clock.local(now);
            clock.sleepers.values().filter(|(deadline, _)| *deadline <= local).count() as u64
        })
    }

    pub(super) fn true_time_of(&self, node: NodeId, local: Duration) -> Option<Duration> {
        self.with(node, |clock, _| {
            // Counted here and not where the clock is read: a log line may read it too, and the log
            // must not change what a run records.
            clock.effect.rated += u64::from(clock.rate_permille != TRUE_RATE);
            clock.true_time_of(local)
        })
    }

    pub(super) fn add_sleeper(
        &self,
        node: NodeId,
        deadline: Duration,
        waker: Arc<AtomicWaker>,
    ) -> u64 {
        self.with(node, |clock, _| {
            clock.next_sleeper += 1;
            clock.sleepers.insert(clock.next_sleeper, (deadline, waker));
            clock.next_sleeper
        })
    }

    pub(super) fn move_sleeper(&self, node: NodeId, sleeper: u64, deadline: Duration) {
        self.with(node, |clock, _| {
            if let Some(entry) = clock.sleepers.get_mut(&sleeper) {
                entry.0 = deadline;
            }
        });
    }

    pub(super) fn remove_sleeper(&self, node: NodeId, sleeper: u64) {
        self.with(node, |clock, _| clock.sleepers.remove(&sleeper));
    }
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
