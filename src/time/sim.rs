//! The simulated clocks, and the futures that wait on them.
//!
//! A sleep arms one timer of the runtime for its deadline and re-arms it only when the clock of its
//! node changes. The runtime's timers cannot be cancelled, so a dropped sleep leaves one behind that
//! wakes nobody.

mod clock;
mod instant;
mod interval;
mod sleep;

use clock::arm;
pub(crate) use clock::{ClockSim, arm_at, true_ns};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Elapsed, Sleep, sleep, sleep_until, timeout, timeout_at};

/// The node's wall clock: milliseconds since the Unix epoch. For stamps only, never to decide
/// anything: it can be offset and stepped.
pub fn wall_ms() -> i64 {
    ClockSim::current().wall_ms(madsim::plugin::node())
}
