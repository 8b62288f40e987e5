//! The real build: tokio's own time.

pub use tokio::time::{
    Instant, Interval, MissedTickBehavior, Sleep, error::Elapsed, interval, interval_at, sleep,
    sleep_until, timeout, timeout_at,
};

/// The wall clock: milliseconds since the Unix epoch. For stamps only, never to decide anything.
pub fn wall_ms() -> i64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Writes what a log line begins with: seconds of wall time since the Unix epoch.
#[cfg(feature = "cli")]
pub(crate) fn stamp(out: &mut dyn std::fmt::Write) -> std::fmt::Result {
    let ms = wall_ms();
    write!(out, "{}.{:03}", ms / 1000, ms % 1000)
}
