//! The simulated clocks, and the futures that wait on them.
//!
//! A sleep arms one timer of the runtime for its deadline and re-arms it only when the clock of
//! its node changes. The runtime's timers cannot be cancelled, so a dropped sleep leaves one behind
//! that wakes nobody.

mod clock;
mod instant;
mod interval;
mod sleep;

use clock::arm;
pub(crate) use clock::{ClockSim, Wall, arm_at, true_ns};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Elapsed, Sleep, sleep, sleep_until, timeout, timeout_at};

/// The node's wall clock: milliseconds since the Unix epoch. For stamps only, never to decide
/// anything: it can be offset and stepped.
pub fn wall_ms() -> i64 {
    ClockSim::current().wall_ms(madsim::plugin::node())
}

/// The monotonic clock of the node that asked for it, for whoever needs it elsewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalClock(madsim::task::NodeId);

impl LocalClock {
    /// The running node's clock.
    pub(crate) fn here() -> Self {
        LocalClock(madsim::plugin::node())
    }

    /// The time since the node's clock began.
    pub(crate) fn now(&self) -> std::time::Duration {
        ClockSim::current().local(self.0)
    }
}

/// Writes what a log line begins with: true time, the node, and the node's own clock.
#[cfg(feature = "cli")]
pub(crate) fn stamp(out: &mut dyn std::fmt::Write) -> std::fmt::Result {
    let Some(time) = madsim::time::TimeHandle::try_current() else {
        return out.write_str("     -      ");
    };
    let now = time.elapsed();
    let (name, local) = ClockSim::current().peek(madsim::plugin::node());
    write!(out, "{:12.6} {name:<9} {:12.6}", now.as_secs_f64(), local.as_secs_f64())
}
