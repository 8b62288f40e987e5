//! Time as a node sees it: a drop-in for `tokio::time`.
//!
//! In the real build this *is* `tokio::time`. In simulation each node has two clocks of its own, as
//! a view on the one true clock of the run: a monotonic one, on which all sleeps, time-outs and
//! lease timers run, and a wall clock. A fault can change the rate of the monotonic clock, stop it
//! with the node (suspend), and offset or step the wall clock. A monotonic clock never goes back.
//!
//! Code that reads `std::time::Instant` or `tokio::time` directly sees the true clock instead, and
//! no clock fault touches it: use this module for everything that waits or measures.

#[cfg(not(madsim))]
mod real;
#[cfg(madsim)]
pub(crate) mod sim;

#[cfg(not(madsim))]
pub use real::*;
#[cfg(all(madsim, feature = "cli"))]
pub(crate) use sim::stamp;
#[cfg(madsim)]
pub use sim::{
    Elapsed, Instant, Interval, MissedTickBehavior, Sleep, interval, interval_at, sleep,
    sleep_until, timeout, timeout_at, wall_ms,
};
