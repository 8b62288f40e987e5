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
