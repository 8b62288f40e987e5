//! One direction between two nodes: cuts, delays, and what they did.

use std::{sync::Arc, task::Waker, time::Duration};

use madsim::task::NodeId;

use super::{NetSim, pipe::Pipe};
use crate::time::sim::arm_at;

/// The longest time that a held message takes to be sent again after a cut has healed: TCP's
/// retransmission timer backs off while the link is cut.
const RETRANSMISSION_MAX: Duration = Duration::from_secs(1);

/// What faults have done to a link since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinkEffect {
    /// Messages (and connection attempts) that a cut held back.
    pub(crate) held: u64,
    /// Messages that a delay made late.
    pub(crate) delayed: u64,
    /// Messages that took their time on a slow link.
    pub(crate) slowed: u64,
    /// Messages in whose stead the connection broke.
    pub(crate) broken: u64,
}

/// The state of one direction.
#[derive(Default)]
pub(super) struct Link {
    /// How many cuts lie on it: it is open when there is none.
    cuts: u32,
    /// The sum of the delays that lie on it.
    delay: Duration,
    /// How long each message takes up the link, by each fault that makes it slow.
    slow: Vec<Duration>,
    busy_until: Duration,
    /// In stead of so many messages the connection will break.
    breaks: u64,
    effect: LinkEffect,
    /// Connections that have messages waiting for the link to open.
    holding: Vec<Arc<Pipe>>,
    /// Connection attempts that wait for it.
    waiting: Vec<Waker>,
}

impl Link {
    pub(super) fn is_cut(&self) -> bool {
        self.cuts > 0
    }

    /// How much longer a message takes that is sent now.
    pub(super) fn count_delay(&mut self, now: Duration) -> Duration {
        self.effect.delayed += u64::from(!self.delay.is_zero());
        let each: Duration = self.slow.iter().sum();
        if each.is_zero() {
            return self.delay;
        }
        self.effect.slowed += 1;
        self.busy_until = self.busy_until.max(now) + each;
        self.delay + self.busy_until.saturating_sub(now)
    }

    /// Whether the connection breaks in stead of this message.
    pub(super) fn breaks(&mut self) -> bool {
        let breaks = self.breaks > 0;
        self.breaks -= u64::from(breaks);
        self.effect.broken += u64::from(breaks);
        breaks
    }

    pub(super) fn hold(&mut self, pipe: &Arc<Pipe>) {
        self.effect.held += 1;
        if !self.holding.iter().any(|held| Arc::ptr_eq(held, pipe)) {
            self.holding.push(pipe.clone());
        }
    }

    pub(super) fn wait(&mut self, waker: &Waker) {
        self.effect.held += 1;
        self.waiting.push(waker.clone());
    }
}

impl NetSim {
    /// Cuts the direction from `src` to `dst`: messages are held until it is open again.
    pub(crate) fn cut(&self, src: NodeId, dst: NodeId) {
        self.lock().links.entry((src, dst)).or_default().cuts += 1;
    }

    /// Takes one cut back. When none is left, held messages are sent again, each connection after
    /// a retransmission time of its own.
    pub(crate) fn mend(&self, src: NodeId, dst: NodeId) {
        let mut inner = self.lock();
        let Some(link) = inner.links.get_mut(&(src, dst)) else { return };
        link.cuts = link.cuts.saturating_sub(1);
        if link.cuts > 0 {
            return;
        }
        let holding = std::mem::take(&mut link.holding);
        let waiting = std::mem::take(&mut link.waiting);
        let now = self.time.elapsed();
        for pipe in holding {
            let resent = now + inner.draw(Duration::ZERO, RETRANSMISSION_MAX);
            for arrival in pipe.release(|| resent + inner.latency(src, dst, now)) {
                arm_at(&self.time, arrival, pipe.timer());
            }
        }
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Makes each message from `src` to `dst` take this much longer, on top of other delays.
    pub(crate) fn add_delay(&self, src: NodeId, dst: NodeId, delay: Duration) {
        self.lock().links.entry((src, dst)).or_default().delay += delay;
    }

    /// Takes a delay back; messages under way keep their time.
    pub(crate) fn remove_delay(&self, src: NodeId, dst: NodeId, delay: Duration) {
        let mut inner = self.lock();
        let link = inner.links.entry((src, dst)).or_default();
        link.delay = link.delay.saturating_sub(delay);
    }

    /// Whether messages get from `src` to `dst`, and how much longer than usual they take. On a
    /// slow way that is told for one behind a usual burst.
    pub(crate) fn link_state(&self, src: NodeId, dst: NodeId) -> (bool, Duration) {
        const BURST: u32 = 8;
        let inner = self.lock();
        let Some(link) = inner.links.get(&(src, dst)) else { return (true, Duration::ZERO) };
        let slow: Duration = link.slow.iter().sum();
        (link.cuts == 0, link.delay + slow * BURST)
    }

    /// Lets each message from `src` to `dst` take up the link for this long.
    pub(crate) fn add_slowness(&self, src: NodeId, dst: NodeId, each: Duration) {
        self.lock().links.entry((src, dst)).or_default().slow.push(each);
    }

    /// Takes it back; messages under way keep their time.
    pub(crate) fn remove_slowness(&self, src: NodeId, dst: NodeId, each: Duration) {
        let mut inner = self.lock();
        let slow = &mut inner.links.entry((src, dst)).or_default().slow;
        if let Some(at) = slow.iter().position(|one| *one == each) {
            slow.remove(at);
        }
    }

    /// In stead of the next `count` messages from `src` to `dst` their connections break.
    pub(crate) fn add_breaks(&self, src: NodeId, dst: NodeId, count: u64) {
        self.lock().links.entry((src, dst)).or_default().breaks += count;
    }

    /// Takes so many back.
    pub(crate) fn remove_breaks(&self, src: NodeId, dst: NodeId, count: u64) {
        let mut inner = self.lock();
        let link = inner.links.entry((src, dst)).or_default();
        link.breaks = link.breaks.saturating_sub(count);
    }

    /// Breaks the connections between two nodes: what is under way is lost, and both ends are told.
    /// Gives how many directions of connections were open.
    pub(crate) fn reset(&self, a: NodeId, b: NodeId) -> u64 {
        let inner = self.lock();
        let to = |dst, src| {
            let pipes = inner.inbound.get(&dst).cloned().unwrap_or_default();
            pipes.into_iter().filter_map(|pipe| pipe.upgrade()).filter(move |p| p.comes_from(src))
        };
        let pipes: Vec<_> = to(b, a).chain(to(a, b)).collect();
        drop(inner);
        pipes.iter().map(|pipe| u64::from(pipe.reset())).sum()
    }

    /// What faults have done to the direction from `src` to `dst` since the start.
    pub(crate) fn effect(&self, src: NodeId, dst: NodeId) -> LinkEffect {
        self.lock().links.get(&(src, dst)).map(|link| link.effect).unwrap_or_default()
    }
}
