//! Sleeps and time-outs on the clock of the node that made them.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use madsim::{plugin, task::NodeId};

use super::{ClockSim, Instant, arm};

/// The time-out elapsed before the future was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("deadline has elapsed")]
pub struct Elapsed(());

/// Waits until the node's clock shows a deadline.
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Sleep {
    node: NodeId,
    deadline: Instant,
    state: Option<Armed>,
}

/// A timer has been asked for.
struct Armed {
    clocks: Arc<ClockSim>,
    /// For which true time; none while the clock stands still.
    at: Option<Duration>,
    waker: Arc<AtomicWaker>,
    timer: Waker,
    sleeper: u64,
}

impl std::fmt::Debug for Armed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Armed").field("at", &self.at).finish_non_exhaustive()
    }
}

/// What the runtime's timer holds: it outlives the sleep and then wakes nobody.
struct Timer(Arc<AtomicWaker>);

impl Wake for Timer {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

impl Sleep {
    /// The instant at which the sleep ends.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the deadline has passed on the node's clock.
    pub fn is_elapsed(&self) -> bool {
        ClockSim::current().local(self.node) >= self.deadline.local()
    }

    /// Moves the deadline.
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        let this = self.get_mut();
        this.deadline = deadline;
        if let Some(armed) = &mut this.state {
            armed.at = None;
            armed.clocks.move_sleeper(this.node, armed.sleeper, deadline.local());
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let clocks = match &this.state {
            Some(armed) => armed.clocks.clone(),
            None => ClockSim::current(),
        };
        if clocks.local(this.node) >= this.deadline.local() {
            return Poll::Ready(());
        }
        let (node, deadline) = (this.node, this.deadline);
        let armed = this.state.get_or_insert_with(|| {
            let waker = Arc::new(AtomicWaker::new());
            let sleeper = clocks.add_sleeper(node, deadline.local(), waker.clone());
            let timer = Waker::from(Arc::new(Timer(waker.clone())));
            Armed { clocks: clocks.clone(), at: None, waker, timer, sleeper }
        });
        armed.waker.register(cx.waker());
        let at = clocks.true_time_of(node, this.deadline.local());
        if at != armed.at {
            armed.at = at;
            if let Some(at) = at {
                arm(&clocks, at, &armed.timer);
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(armed) = &self.state {
            armed.waker.take();
            armed.clocks.remove_sleeper(self.node, armed.sleeper);
        }
    }
}

/// Waits for `duration` on the node's clock, at least one millisecond.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now() + duration.max(Duration::from_millis(1)))
}

/// Waits until the node's clock shows `deadline`.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { node: plugin::node(), deadline, state: None }
}

/// Runs the future, for at most `duration` on the node's clock.
pub fn timeout<F: Future>(
    duration: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    timeout_at(Instant::now() + duration, future)
}

/// Runs the future until the node's clock shows `deadline`.
pub async fn timeout_at<F: Future>(deadline: Instant, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut sleep = pin!(sleep_until(deadline));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        sleep.as_mut().poll(cx).map(|()| Err(Elapsed(())))
    })
    .await
}
