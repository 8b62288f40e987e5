//! Who leads an election, as seen by somebody who need not take part.
//!
//! After `Leader` and `Observe` of etcd's `concurrency/election.go`. Two differences: the end of a
//! leadership is told too ([`Leadership::Vacant`]), so that a cache fed by an observer does not
//! name a leader that is gone; and the watch begins behind the read that named the leader, so that
//! a compaction between the two cannot make it spin (etcd #7815).
//!
//! What is told is level-triggered: the observer may pass over a leader that came and went while it
//! was not looking, and it never tells the same thing twice in a row.

use std::{collections::VecDeque, fmt, time::Duration};

use super::{
    error::{Class, LockError, class},
    key::queue_prefix,
    queue,
    request::Pauses,
    token::FencingToken,
};
use crate::{
    etcd::{Client, Event, EventType, KeyValue, WatchFilterType, WatchOptions, WatchStream},
    time::timeout,
};

/// The leader of an election, at the moment it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Its key: the election's name, a slash, the lease in hex.
    pub key: Vec<u8>,
    /// What it tells.
    pub value: Vec<u8>,
    /// Its fencing token: the create revision of its key.
    pub token: FencingToken,
    /// Its lease; 0 if somebody has taken the key off its lease.
    pub lease: i64,
    /// The revision of its last proclamation.
    pub mod_revision: i64,
}

impl From<&KeyValue> for Leader {
    fn from(kv: &KeyValue) -> Self {
        Leader {
            key: kv.key().to_vec(),
            value: kv.value().to_vec(),
            token: FencingToken::new(kv.create_revision()),
            lease: kv.lease(),
            mod_revision: kv.mod_revision(),
        }
    }
}

/// What an observer tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// This leader leads, or tells another value.
    Leader(Leader),
    /// Nobody leads.
    Vacant,
}

/// Watches who leads. Reads and watches on demand, in [`Observer::next`].
pub struct Observer {
    client: Client,
    prefix: String,
    request_timeout: Duration,
    told: Option<Leadership>,
    pending: VecDeque<Leadership>,
    watch: Option<Watch>,
    pauses: Pauses,
}

/// A watch behind a read.
struct Watch {
    stream: WatchStream,
    /// It is on a leader's key; else on the whole queue, for the next candidate.
    of_leader: bool,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("prefix", &self.prefix)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

/// The leader of the queue, and the revision at which it was read.
pub(super) async fn read_leader(
    client: Client,
    prefix: &str,
    limit: Duration,
) -> Result<(i64, Option<Leader>), LockError> {
    let reply = timeout(limit, queue::owner(client, prefix)).await;
    let (revision, owner) = reply.map_err(|_| LockError::TimedOut(limit))?.map_err(Box::new)?;
    Ok((revision, owner.as_ref().map(Leader::from)))
}

impl Observer {
    /// Observes the election of this name. `request_timeout` is that of each single request.
    pub fn new(client: &Client, name: &str, request_timeout: Duration) -> Self {
        Observer::of_prefix(client.clone(), queue_prefix(name), request_timeout)
    }

    pub(super) fn of_prefix(client: Client, prefix: String, request_timeout: Duration) -> Self {
        Observer {
            client,
            prefix,
            request_timeout,
            told: None,
            pending: VecDeque::new(),
            watch: None,
            pauses: Pauses::new(),
        }
    }

    /// Waits for news; the first call tells how things stand. Cancel safe. Lost connections and
    /// compactions are overcome by reading again, with a pause that grows up to a second.
    ///
    /// # Errors
    /// [`LockError::Etcd`] if etcd refuses to be read.
    pub async fn next(&mut self) -> Result<Leadership, LockError> {
        loop {
            while let Some(news) = self.pending.pop_front() {
                if self.told.as_ref() != Some(&news) {
                    self.told = Some(news.clone());
                    return Ok(news);
                }
            }
            match &mut self.watch {
                None => self.look().await?,
                Some(watch) => match watch.stream.message().await {
                    Ok(Some(reply)) if !reply.canceled() => {
                        self.pauses.reset();
                        self.take(reply.events());
                    }
                    outcome => {
                        tracing::debug!(prefix = self.prefix, ?outcome, "watch of a leader broke");
                        self.watch = None;
                        self.pauses.pause_fully().await;
                    }
                },
            }
        }
    }

    /// The news as a stream; it ends after an error.
    pub fn into_stream(
        self,
    ) -> impl futures_util::Stream<Item = Result<Leadership, LockError>> + Send {
        futures_util::stream::unfold(Some(self), |observer| async move {
            let mut observer = observer?;
            match observer.next().await {
                Ok(news) => Some((Ok(news), Some(observer))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Reads who leads and watches from there.
    async fn look(&mut self) -> Result<(), LockError> {
        let reading = read_leader(self.client.clone(), &self.prefix, self.request_timeout).await;
        let (revision, leader) = match reading {
            Ok(found) => found,
            Err(LockError::Etcd(error)) if class(&error) != Class::Unknown => {
                return Err(LockError::Etcd(error));
            }
            Err(error) => {
                tracing::debug!(prefix = self.prefix, %error, "leader not read");
                self.pauses.pause_fully().await;
                return Ok(());
            }
        };
        let opening = open(self.client.clone(), &self.prefix, leader.as_ref(), revision + 1);
        let stream = timeout(self.request_timeout, opening).await;
        self.pending.push_back(leader.map_or(Leadership::Vacant, Leadership::Leader));
        let of_leader = !matches!(self.pending.back(), Some(Leadership::Vacant));
        match stream {
            Ok(Ok(stream)) => self.watch = Some(Watch { stream, of_leader }),
            failed => {
                tracing::debug!(prefix = self.prefix, ok = failed.is_ok(), "watch not opened");
                self.pauses.pause_fully().await;
            }
        }
        Ok(())
    }

    fn take(&mut self, events: &[Event]) {
        let of_leader = self.watch.as_ref().is_some_and(|watch| watch.of_leader);
        for event in events {
            match (event.event_type(), event.kv()) {
                (EventType::Put, Some(kv)) if of_leader => {
                    self.pending.push_back(Leadership::Leader(Leader::from(kv)));
                }
                // The leader is gone, or there is a candidate: who leads now has to be read.
                _ => {
                    self.watch = None;
                    return;
                }
            }
        }
    }
}

async fn open(
    mut client: Client,
    prefix: &str,
    leader: Option<&Leader>,
    start: i64,
) -> Result<WatchStream, crate::etcd::Error> {
    let options = WatchOptions::new().with_start_revision(start);
    match leader {
        Some(leader) => client.watch(leader.key.clone(), Some(options)).await,
        None => {
            let options = options.with_prefix().with_filters([WatchFilterType::NoDelete]);
            client.watch(prefix, Some(options)).await
        }
    }
}
