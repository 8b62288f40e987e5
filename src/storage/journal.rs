//! Group commit: requests note what changed the state, one task makes it durable for all of them.
//!
//! A request waits until the log holds the state that its answer was computed from. A read or a
//! refusal notes nothing and waits all the same: for what others noted before it. While one sync
//! runs, the next batch collects. After a failure nothing is answered any more: what the disk holds
//! is known only to the next start, and a second sync would lie.

use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::{
    counter::{Count, Counters},
    encoding::{Writer, write_entry},
    frame::Kind,
    log::{Log, LogError},
    protocol::Request,
};
use crate::point;

/// A place in the order of what was noted: all up to it must be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(u64);

/// What is under way to the disk.
pub(super) struct Journal {
    queue: Mutex<Queue>,
    /// The log, while nobody writes it.
    log: Mutex<Option<Log>>,
    work: Notify,
    settled: Notify,
    compact_bytes: u64,
}

#[derive(Default)]
struct Queue {
    entries: Writer,
    noted: u64,
    /// Noted and taken, with the batch or a snapshot.
    taken: u64,
    durable: u64,
    stopped: Option<String>,
    ending: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Journal {
    pub(super) fn new(log: Log, compact_bytes: u64) -> Self {
        Journal {
            queue: Mutex::default(),
            log: Mutex::new(Some(log)),
            work: Notify::new(),
            settled: Notify::new(),
            compact_bytes,
        }
    }

    /// Notes a request that changed the state. The caller keeps the order.
    pub(super) fn note(&self, index: u64, request: &Request) {
        let mut queue = lock(&self.queue);
        write_entry(&mut queue.entries, index, request);
        queue.noted += 1;
        drop(queue);
        self.work.notify_one();
    }

    /// The state as it is now.
    pub(super) fn position(&self) -> Position {
        Position(lock(&self.queue).noted)
    }

    /// Why nothing is written any more.
    pub(super) fn stopped(&self) -> Option<String> {
        lock(&self.queue).stopped.clone()
    }

    /// Waits until the state of this position is durable.
    ///
    /// # Errors
    /// When it will never be known to be, and why.
    pub(super) async fn settle(&self, position: Position) -> Result<(), String> {
        loop {
            let settled = self.settled.notified();
            {
                let queue = lock(&self.queue);
                if let Some(why) = &queue.stopped {
                    return Err(why.clone());
                }
                if queue.durable >= position.0 {
                    return Ok(());
                }
            }
            settled.await;
        }
    }

    /// No more requests come: [`Journal::run`] ends when all that was noted is durable.
    pub(super) fn end(&self) {
        lock(&self.queue).ending = true;
        self.work.notify_one();
    }

    /// Gives up: everyone who waits is told so, now and later.
    pub(super) fn stop(&self, why: impl Into<String>) {
        let why = why.into();
        tracing::error!(why, "the storage answers no more");
        self.stop_quietly(why);
    }

    fn stop_quietly(&self, why: String) {
        lock(&self.queue).stopped.get_or_insert(why);
        self.settled.notify_waiters();
    }

    /// Takes what was noted and not yet taken, and the position it leads to.
    pub(super) fn take(&self) -> (Vec<u8>, Position) {
        let mut queue = lock(&self.queue);
        queue.taken = queue.noted;
        (std::mem::take(&mut queue.entries).finish(), Position(queue.noted))
    }

    fn reached(&self, position: Position) {
        lock(&self.queue).durable = position.0;
        self.settled.notify_waiters();
    }

    /// The next batch; none at the end.
    async fn batch(&self) -> Option<(Vec<u8>, Position)> {
        loop {
            {
                let queue = lock(&self.queue);
                if queue.noted > queue.taken {
                    drop(queue);
                    return Some(self.take());
                }
                if queue.ending {
                    return None;
                }
            }
            self.work.notified().await;
        }
    }

    /// Writes until [`Journal::end`], or until it fails. One runs at a time.
    ///
    /// `snapshot` gives the state and takes what was noted for it, in one step; none if the state
    /// cannot be trusted any more.
    pub(super) async fn run(
        &self,
        counters: &Counters,
        snapshot: impl Fn() -> Option<(Vec<u8>, Position)>,
    ) {
        let Some(log) = lock(&self.log).take() else {
            return self.stop("its log is written by another server, or was when that was stopped");
        };
        let mut writing = Writing { journal: self, log: Some(log) };
        if let Some(log) = &mut writing.log
            && let Err(error) = self.write(log, counters, snapshot).await
        {
            return self.stop(error.to_string());
        }
        *lock(&self.log) = writing.log.take();
    }

    async fn write(
        &self,
        log: &mut Log,
        counters: &Counters,
        snapshot: impl Fn() -> Option<(Vec<u8>, Position)>,
    ) -> Result<(), LogError> {
        while let Some((batch, position)) = self.batch().await {
            point::reach("storage.before_sync").await;
            log.commit(Kind::Batch, &batch).await?;
            point::reach("storage.after_sync").await;
            counters.add(Count::Syncs);
            self.reached(position);
            if log.appended() > self.compact_bytes.max(log.snapshot())
                && let Some((snapshot, position)) = snapshot()
            {
                let bytes = log.appended();
                log.rotate(&snapshot).await?;
                tracing::info!(bytes, snapshot = log.snapshot(), "the log was compacted");
                counters.add(Count::Snapshots);
                self.reached(position);
            }
        }
        Ok(())
    }
}

/// Whoever ends with the log in hand has left it in an unknown state.
struct Writing<'a> {
    journal: &'a Journal,
    log: Option<Log>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.log.is_some() {
            // As a rule the process is being killed: nobody is there to be told.
            self.journal.stop_quietly("the writing of its log was cut short".to_owned());
        }
    }
}
