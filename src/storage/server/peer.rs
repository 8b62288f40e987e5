//! One connection: hyper serves it, and a watch of its pace closes it when its client is too slow.
//!
//! hyper gets no timer and writes no `Date`: it would read a clock that is not the node's. The pace
//! is seen from outside: whether bytes came, whether a head was whole, whether its body was. A
//! timer runs only for what is under way and not there at once, so that an ordinary request costs
//! none.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Notify, Semaphore},
};

use super::answer;
use crate::{
    net::TcpStream,
    storage::{counter::Count, service::Service},
    time::{self, Instant, Sleep},
};

/// Where a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is under way, or an answer is not taken.
    Idle,
    /// A request began to arrive.
    Head,
    /// Its head is there.
    Body,
    /// All of it is there: the storage's turn.
    Busy,
}

/// How far a connection has come; written by what serves it, read by its watch.
#[derive(Debug, Default)]
pub(super) struct Pace {
    phase: AtomicU8,
    /// Counts the requests, and so tells one from the next.
    begun: AtomicU64,
    done: AtomicU64,
    /// Told when the body is too slow.
    pub(super) late: Notify,
}

impl Pace {
    pub(super) fn enter(&self, phase: Phase) {
        match phase {
            Phase::Head | Phase::Body => drop(self.begun.fetch_add(1, Ordering::Relaxed)),
            Phase::Idle => drop(self.done.fetch_add(1, Ordering::Relaxed)),
            Phase::Busy => {}
        }
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    fn phase(&self) -> Phase {
        const ALL: [Phase; 4] = [Phase::Idle, Phase::Head, Phase::Body, Phase::Busy];
        ALL[usize::from(self.phase.load(Ordering::Relaxed)) % ALL.len()]
    }

    /// What the client owes: none if it is not its turn.
    fn owed(&self) -> Option<(Phase, u64)> {
        let phase = self.phase();
        let owed = matches!(phase, Phase::Head | Phase::Body);
        owed.then(|| (phase, self.begun.load(Ordering::Relaxed)))
    }
}

/// The stream, with an eye on when a request begins.
struct Watched {
    stream: TcpStream,
    pace: Arc<Pace>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before && self.pace.phase() == Phase::Idle {
            self.pace.enter(Phase::Head);
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What the client owes, and until when.
struct Debt {
    owed: (Phase, u64),
    due: Pin<Box<Sleep>>,
}

impl Debt {
    fn new(owed: (Phase, u64), service: &Service) -> Self {
        let limits = service.limits();
        let time = if owed.0 == Phase::Head { limits.head_timeout } else { limits.body_timeout };
        Debt { owed, due: Box::pin(time::sleep(time)) }
    }
}

/// Something that the watch acts upon.
enum Event {
    Ended(hyper::Result<()>),
    /// The client owes something else than before, or nothing.
    Owes(Option<(Phase, u64)>),
    Late,
}

/// Serves one connection until it ends, idles, is too slow, or the server stops.
pub(super) async fn connection(stream: TcpStream, service: Arc<Service>, stop: &Semaphore) {
    let pace = Arc::new(Pace::default());
    let handler = service_fn(|request| {
        let (service, pace) = (&service, &pace);
        async move { Ok::<_, Infallible>(answer::answer(service, pace, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.half_close(true).header_read_timeout(None).auto_date_header(false);
    builder.max_buf_size(service.limits().head_bytes.max(8192));
    let io = TokioIo::new(Watched { stream, pace: pace.clone() });
    let mut connection = pin!(builder.serve_connection(io, handler));
    let idle_timeout = service.limits().idle_timeout;
    let mut seen = 0;
    let mut stopping = false;
    let mut debt: Option<Debt> = None;
    // One timer a connection and not one a request: the count tells whether anything happened.
    let mut idle = pin!(time::sleep(idle_timeout));
    loop {
        let watched = poll_fn(|cx| {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(Event::Ended(ended));
            }
            let owed = pace.owed();
            if owed != debt.as_ref().map(|debt| debt.owed) {
                return Poll::Ready(Event::Owes(owed));
            }
            let late = debt.as_mut().map_or(Poll::Pending, |debt| debt.due.as_mut().poll(cx));
            late.map(|()| Event::Late)
        });
        tokio::select! {
            biased;
            event = watched => match event {
                Event::Ended(ended) => return log_end(ended),
                Event::Owes(owed) => debt = owed.map(|owed| Debt::new(owed, &service)),
                Event::Late => {
                    service.counters().add(Count::ConnectionsTimedOut);
                    if pace.phase() == Phase::Head {
                        tracing::debug!("connection closed: a request's head came too slowly");
                        return;
                    }
                    // The request is answered and the connection ends with the answer; if the
                    // client does not take that either, it is idle.
                    pace.enter(Phase::Busy);
                    pace.late.notify_one();
                    debt = None;
                }
            },
            _ = stop.acquire(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut idle => {
                let now = pace.done.load(Ordering::Relaxed);
                if now == seen && pace.phase() != Phase::Busy {
                    tracing::debug!("connection closed: no request completed in time");
                    service.counters().add(Count::ConnectionsTimedOut);
                    return;
                }
                seen = now;
                idle.as_mut().reset(Instant::now() + idle_timeout);
            }
        }
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
