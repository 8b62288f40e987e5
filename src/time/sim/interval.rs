//! Ticks on the clock of the node.

use std::{pin::Pin, time::Duration};

use super::{Instant, Sleep, sleep_until};

/// What an interval does about ticks that it could not give in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// Give them at once, until it has caught up.
    #[default]
    Burst,
    /// Start a new rhythm at the late tick.
    Delay,
    /// Leave them out and keep the rhythm.
    Skip,
}

/// Gives a tick each period.
#[derive(Debug)]
pub struct Interval {
    period: Duration,
    next: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
    missed: MissedTickBehavior,
}

/// Ticks each `period`, at once for the first time.
///
/// # Panics
/// If `period` is zero, as in tokio.
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks each `period`, for the first time at `start`.
///
/// # Panics
/// If `period` is zero, as in tokio.
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must be non-zero.");
    Interval { period, next: start, sleep: None, missed: MissedTickBehavior::default() }
}

impl Interval {
    /// Waits for the next tick and gives the instant at which it was due. Cancel safe.
    pub async fn tick(&mut self) -> Instant {
        let due = self.next;
        self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due))).as_mut().await;
        self.sleep = None;
        let now = Instant::now();
        let late = now.duration_since(due);
        self.next = match self.missed {
            _ if late < self.period => due + self.period,
            MissedTickBehavior::Burst => due + self.period,
            MissedTickBehavior::Delay => now + self.period,
            MissedTickBehavior::Skip => {
                let periods = late.as_nanos() / self.period.as_nanos() + 1;
                due + self.period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))
            }
        };
        due
    }

    /// The next tick comes one period from now.
    pub fn reset(&mut self) {
        self.next = Instant::now() + self.period;
        self.sleep = None;
    }

    /// Sets what happens to missed ticks.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// The period.
    pub fn period(&self) -> Duration {
        self.period
    }
}
