//! When a command that runs under a lock must be stopped.
//!
//! Pure: times come in as arguments. The session's deadline is on the clock that stands still while
//! the machine is suspended; the watchdog is also told of a clock that counts on, and takes what
//! the first has missed off every deadline that was set before (DESIGN.md's D9: a session may
//! promise nothing over a suspend).

use std::time::Duration;

/// A clock has missed less than this by reading the two one after the other.
const NOISE: Duration = Duration::from_millis(20);

/// What is to be done with the command now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Let it run.
    Run,
    /// Ask it to end.
    Terminate,
    /// Kill it.
    Kill,
}

/// Watches one session. All spans are since one common start, on the session's clock.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// From asking to killing.
    grace: Duration,
    /// From the sending of a renewal to the session's deadline.
    held: Duration,
    /// How far the counting clock was ahead when last looked at.
    ahead: Duration,
    /// What was missed in all, and when that was noticed last.
    missed: Vec<(Duration, Duration)>,
}

impl Watchdog {
    pub(super) fn new(grace: Duration, held: Duration, ahead: Duration) -> Self {
        Watchdog { grace, held, ahead, missed: Vec::new() }
    }

    /// What to do at `now`, when the counting clock is `ahead` of it and the session's deadline is
    /// at `deadline`.
    pub(super) fn order(&mut self, now: Duration, ahead: Duration, deadline: Duration) -> Order {
        if ahead > self.ahead + NOISE {
            self.missed.push((now, ahead - self.ahead));
            self.ahead = ahead;
        }
        // Only a renewal that was sent after the suspend has not missed it.
        let sent = deadline.saturating_sub(self.held);
        self.missed.retain(|(noticed, _)| *noticed > sent);
        let missed: Duration = self.missed.iter().map(|(_, missed)| *missed).sum();
        let deadline = deadline.saturating_sub(missed);
        if now >= deadline {
            Order::Kill
        } else if now + self.grace >= deadline {
            Order::Terminate
        } else {
            Order::Run
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// The grace is over when the deadline comes, not begun.
    #[test]
    fn stops_before_the_deadline() {
        let mut watchdog = Watchdog::new(s(3.0), s(9.5), s(0.0));
        assert_eq!(watchdog.order(s(6.4), s(0.0), s(9.5)), Order::Run);
        assert_eq!(watchdog.order(s(6.5), s(0.0), s(9.5)), Order::Terminate);
        assert_eq!(watchdog.order(s(9.49), s(0.0), s(9.5)), Order::Terminate);
        assert_eq!(watchdog.order(s(9.5), s(0.0), s(9.5)), Order::Kill);
    }

    /// A renewal moves everything; one that came late, within the grace, takes nothing back that
    /// the caller has begun, but is no reason to kill.
    #[test]
    fn renewal_moves_the_deadline() {
        let mut watchdog = Watchdog::new(s(3.0), s(9.5), s(0.0));
        assert_eq!(watchdog.order(s(7.0), s(0.0), s(9.5)), Order::Terminate);
        assert_eq!(watchdog.order(s(7.1), s(0.0), s(16.5)), Order::Run);
    }

    /// Five seconds of suspend count although the session's clock has not seen them, until a
    /// renewal is sent after them.
    #[test]
    fn suspend_counts() {
        let mut watchdog = Watchdog::new(s(3.0), s(9.5), s(1.0));
        assert_eq!(watchdog.order(s(1.0), s(1.0), s(9.5)), Order::Run);
        assert_eq!(watchdog.order(s(1.1), s(6.1), s(9.5)), Order::Run);
        assert_eq!(watchdog.order(s(1.5), s(6.1), s(9.5)), Order::Terminate);
        assert_eq!(watchdog.order(s(4.5), s(6.1), s(9.5)), Order::Kill);
        assert_eq!(watchdog.order(s(4.5), s(6.1), s(13.0)), Order::Run);
    }

    /// A suspend of longer than the lease kills at once.
    #[test]
    fn long_suspend_kills() {
        let mut watchdog = Watchdog::new(s(3.0), s(9.5), s(0.0));
        assert_eq!(watchdog.order(s(2.0), s(600.0), s(9.5)), Order::Kill);
    }
}
