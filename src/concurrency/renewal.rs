//! Keep-alive: renews a lease at a third of its TTL, and sees to it that one lost message does not
//! cost the lease.
//!
//! One renewal is under way at a time, so that an answer always belongs to the renewal that was
//! sent last; an attempt without an answer gives its stream up. Attempts start at 8/24 of the TTL
//! and may take 1/24, then twice as long each time: a lost request, a lost reply and a reset
//! stream each have their successor out before half the TTL is gone (etcd #7357), and a slow link
//! still gets through. The request rate does not depend on anybody reading replies (etcd #9952).

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;

use super::{
    error::{Class, class, class_of_opening},
    session::{SessionEnd, Shared, ttl_span},
};
use crate::{
    etcd::{self, LeaseKeepAliveStream, LeaseKeeper},
    point::reach,
    time::{Instant, sleep_until, timeout},
};

/// Renews at this part of the TTL.
const RENEW_PART: u32 = 3;
/// The first attempt of a renewal may take this part of the TTL.
const FIRST_PATIENCE_PART: u32 = 24;

/// What became of one attempt.
#[derive(Debug)]
pub(super) enum Attempt {
    /// Acknowledged: when it was sent, and the TTL in seconds from then.
    Acknowledged(Instant, i64),
    /// The lease is gone.
    Gone,
    /// The open stream broke; a new one may work at once.
    Broken,
    /// No answer in time, or no stream to be had.
    Lost,
}

/// The keep-alive of one lease.
pub(super) struct Renewal {
    client: etcd::Client,
    lease: i64,
    ttl_s: i64,
    stream: Option<(LeaseKeeper, LeaseKeepAliveStream)>,
}

impl Renewal {
    pub(super) fn new(client: etcd::Client, lease: i64, ttl_s: i64) -> Self {
        Renewal { client, lease, ttl_s, stream: None }
    }

    /// Sends one renewal and waits for its answer.
    pub(super) async fn attempt(&mut self, patience: Duration) -> Attempt {
        reach("session.before_renew").await;
        let sent = Instant::now();
        let outcome = match timeout(patience, self.send()).await {
            Ok(Ok(ttl_s)) if ttl_s > 0 => Attempt::Acknowledged(sent, ttl_s),
            Ok(Ok(_)) => Attempt::Gone,
            Ok(Err(failed)) => failed,
            Err(_) => Attempt::Lost,
        };
        if !matches!(outcome, Attempt::Acknowledged(..)) {
            self.stream = None;
        }
        reach("session.after_renew").await;
        outcome
    }

    /// The TTL that etcd answered, in seconds.
    async fn send(&mut self) -> Result<i64, Attempt> {
        let Some((keeper, replies)) = &mut self.stream else {
            return match self.client.lease_keep_alive(self.lease).await {
                // The first reply was read by the client crate, which passes on no TTL of it.
                Ok(stream) => {
                    self.stream = Some(stream);
                    Ok(self.ttl_s)
                }
                Err(error) => {
                    tracing::debug!(lease = self.lease, %error, "keep-alive stream not opened");
                    Err(match class_of_opening(&error) {
                        Class::LeaseGone => Attempt::Gone,
                        Class::Refused | Class::Unknown => Attempt::Lost,
                    })
                }
            };
        };
        // A reply that nobody has asked for: the stream is out of step, and the next reply would be
        // taken for the answer to this renewal, which may yet be lost.
        if replies.message().now_or_never().is_some() {
            return Err(Attempt::Broken);
        }
        let reply = match keeper.keep_alive().await {
            Ok(()) => replies.message().await,
            Err(error) => Err(error),
        };
        match reply {
            Ok(Some(reply)) => Ok(reply.ttl()),
            Ok(None) => Err(Attempt::Broken),
            Err(error) => {
                tracing::debug!(lease = self.lease, %error, "keep-alive stream broke");
                Err(match class(&error) {
                    Class::LeaseGone => Attempt::Gone,
                    Class::Refused | Class::Unknown => Attempt::Broken,
                })
            }
        }
    }
}

/// Keeps the session's lease alive until the session is over.
pub(super) async fn keep_alive(shared: Arc<Shared>, renewal: Renewal, sent: Instant) {
    tokio::select! {
        biased;
        () = shared.done() => {}
        () = renew_for_ever(&shared, renewal, sent) => {}
    }
    tracing::debug!(lease = shared.lease(), end = ?shared.ended(), "keep-alive ends");
}

async fn renew_for_ever(shared: &Shared, mut renewal: Renewal, sent: Instant) {
    let ttl = ttl_span(shared.ttl_s());
    let mut next = sent + ttl / RENEW_PART;
    let mut patience = ttl / FIRST_PATIENCE_PART;
    loop {
        sleep_until(next).await;
        let started = Instant::now();
        match renewal.attempt(patience).await {
            Attempt::Acknowledged(sent, ttl_s) => {
                if !shared.acknowledge(sent, ttl_s) {
                    return;
                }
                next = sent + ttl_span(ttl_s) / RENEW_PART;
                patience = ttl / FIRST_PATIENCE_PART;
                continue;
            }
            Attempt::Gone => {
                shared.end(SessionEnd::LeaseGone);
                return;
            }
            Attempt::Broken => next = Instant::now(),
            Attempt::Lost => {
                // A refused connection fails at once: waiting out the attempt's time keeps the
                // schedule, and does not spin.
                next = started + patience;
                patience = (patience * 2).min(ttl);
            }
        }
        tracing::debug!(lease = shared.lease(), ?patience, "renewal not acknowledged");
    }
}
