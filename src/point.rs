//! Named code points: places where a fault can stop a node on purpose.
//!
//! `reach(name).await` marks a window that matters, such as the one between a check and a write. In
//! the real build it does nothing. In simulation the plan may name the point, the occurrence and
//! the length of a pause; the node then stops here, with its timers, while the world goes on. The
//! names in use are `plan::CLIENT_POINTS` and `plan::STORAGE_POINTS`; a lock of your own may pass
//! points of other first words, such as `mine.before_check`.

/// Passes the code point of this name.
#[cfg(not(madsim))]
#[inline]
pub async fn reach(_name: &'static str) {}

#[cfg(madsim)]
mod sim;
#[cfg(madsim)]
pub use sim::reach;
#[cfg(madsim)]
pub(crate) use sim::{Pending, PointSim};
