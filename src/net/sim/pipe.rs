//! One direction of one connection: an ordered queue of what is under way.

use std::{
    any::Any,
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use madsim::task::NodeId;

use super::{Inner, NetSim, link::Link};
use crate::time::sim::arm_at;

/// What travels.
pub(super) enum Payload {
    Bytes(Bytes),
    Message(Box<dyn Any + Send>),
    /// The sender will send no more.
    End,
    /// The connection is broken: never sent, only received.
    Reset,
}

/// One direction of a connection.
pub(super) struct Pipe {
    src: NodeId,
    dst: NodeId,
    id: u64,
    reader: Arc<Reader>,
    /// The waker that the runtime's timers hold; it is the reader's, whoever that is by then.
    timer: Waker,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Under way, with the time of arrival; arrivals never fall.
    travelling: VecDeque<(Duration, Payload)>,
    /// Held back by a cut.
    held: VecDeque<Payload>,
    last_arrival: Duration,
    reader_gone: bool,
    ended: bool,
    reset: bool,
}

#[derive(Default)]
struct Reader(AtomicWaker);

impl Wake for Reader {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

impl Pipe {
    fn new(src: NodeId, dst: NodeId, id: u64) -> Arc<Self> {
        let reader = Arc::new(Reader::default());
        let timer = Waker::from(reader.clone());
        Arc::new(Pipe { src, dst, id, reader, timer, queue: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Queue {
    fn push(&mut self, arrival: Duration, payload: Payload) -> Duration {
        self.last_arrival = self.last_arrival.max(arrival);
        self.travelling.push_back((self.last_arrival, payload));
        self.last_arrival
    }
}

/// The sending end. Dropping it tells the peer that nothing more will come.
pub(super) struct Sender {
    net: Arc<NetSim>,
    pipe: Arc<Pipe>,
}

/// The receiving end.
pub(super) struct Receiver {
    net: Arc<NetSim>,
    pipe: Arc<Pipe>,
}

/// Makes the two ends of one direction.
pub(super) fn pipe(
    net: &Arc<NetSim>,
    inner: &mut Inner,
    (src, dst): (NodeId, NodeId),
    id: u64,
) -> (Sender, Receiver) {
    let pipe = Pipe::new(src, dst, id);
    inner.add_inbound(dst, Arc::downgrade(&pipe));
    (Sender { net: net.clone(), pipe: pipe.clone() }, Receiver { net: net.clone(), pipe })
}

impl Sender {
    /// Sends; an error says that the peer is known to be gone.
    pub(super) fn send(&self, payload: Payload) -> io::Result<()> {
        let Pipe { src, dst, .. } = *self.pipe;
        let mut inner = self.net.lock();
        let mut queue = self.pipe.lock();
        if queue.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if queue.ended {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        queue.ended = matches!(payload, Payload::End);
        if let Some(link) = inner.links.get_mut(&(src, dst)).filter(|link| link.is_cut()) {
            link.hold(&self.pipe);
            queue.held.push_back(payload);
            return Ok(());
        }
        if queue.reader_gone {
            // The peer's reset comes back unless that direction is cut.
            let back_is_cut = inner.links.get(&(dst, src)).is_some_and(|link| link.is_cut());
            return if back_is_cut { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) };
        }
        let link = inner.links.get_mut(&(src, dst)).filter(|_| !queue.ended);
        if link.is_some_and(Link::breaks) {
            drop(queue);
            let directions = inner.directions(&self.pipe);
            drop(inner);
            for pipe in directions {
                pipe.reset();
            }
            return Ok(());
        }
        let now = self.net.time.elapsed();
        let latency = inner.latency(src, dst, now);
        let arrival = queue.push(now + latency, payload);
        drop(queue);
        drop(inner);
        arm_at(&self.net.time, arrival, &self.pipe.timer);
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // It may have ended already, or the peer may be gone: both are no news.
        let _ = self.send(Payload::End);
    }
}

impl Receiver {
    /// The next payload that has arrived; none at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Payload>> {
        let mut queue = self.pipe.lock();
        if queue.reset {
            return Poll::Ready(Some(Payload::Reset));
        }
        let now = self.net.time.elapsed();
        match queue.travelling.front() {
            Some((arrival, Payload::End)) if *arrival <= now => Poll::Ready(None),
            Some((arrival, _)) if *arrival <= now => {
                let (_, payload) = queue.travelling.pop_front().expect("just seen");
                drop(queue);
                self.note_delivery(&payload, now);
                Poll::Ready(Some(payload))
            }
            _ => {
                self.pipe.reader.0.register(cx.waker());
                Poll::Pending
            }
        }
    }

    fn note_delivery(&self, payload: &Payload, now: Duration) {
        let told = self.net.lock().on_delivery.clone();
        if let Some(told) = told {
            let size = if let Payload::Bytes(bytes) = payload { bytes.len() } else { 0 };
            let Pipe { src, dst, id, .. } = *self.pipe;
            told(src, dst, id, size as u64, now.as_nanos() as u64);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut queue = self.pipe.lock();
        queue.reader_gone = true;
        queue.travelling.clear();
    }
}

impl Pipe {
    /// The link is open again: what was held is on its way. Gives the times of arrival.
    pub(super) fn release(&self, mut arrival: impl FnMut() -> Duration) -> Vec<Duration> {
        let mut queue = self.lock();
        let held = std::mem::take(&mut queue.held);
        if queue.reader_gone {
            return Vec::new();
        }
        held.into_iter().map(|payload| queue.push(arrival(), payload)).collect()
    }

    /// Whether it begins at this node.
    pub(super) fn comes_from(&self, src: NodeId) -> bool {
        self.src == src
    }

    /// Where it begins and ends, and the connection that it belongs to.
    pub(super) fn connection(&self) -> (NodeId, NodeId, u64) {
        (self.src, self.dst, self.id)
    }

    /// Breaks it: what is under way is lost. Whether it was open.
    pub(super) fn reset(&self) -> bool {
        let mut queue = self.lock();
        let open = !(queue.reset || queue.ended || queue.reader_gone);
        queue.reset = true;
        queue.travelling.clear();
        queue.held.clear();
        drop(queue);
        self.reader.0.wake();
        open
    }

    /// How many messages have arrived and have not been read.
    pub(super) fn unread(&self, now: Duration) -> u64 {
        self.lock().travelling.iter().filter(|(arrival, _)| *arrival <= now).count() as u64
    }

    /// The waker that a timer for this pipe holds.
    pub(super) fn timer(&self) -> &Waker {
        &self.timer
    }
}
