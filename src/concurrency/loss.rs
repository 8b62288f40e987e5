//! How a holder learns that its lock is gone, before or after its session does.
//!
//! A session knows of the end of its lease: by its own clock, or from the next renewal. It does not
//! know of its keys. So whoever waits for the loss of a holding also watches the queue key, as a
//! waiter does: it is read, with its create revision, and watched from just behind that reading; a
//! watch that breaks or is compacted is followed by another reading. Go's `Mutex` leaves this to
//! its users.
//!
//! Opinion all the same: the news takes a delivery, and what is under way then is under way. While
//! etcd is out of reach only the clock speaks.

use super::{
    place::Place,
    queue,
    request::{PAUSE_MAX, Pauses, until_definite},
    session::{SessionEnd, Shared},
};
use crate::time::Instant;

/// Why a holding is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The session is over, and why.
    Session(SessionEnd),
    /// The queue key with the holding's create revision is gone: deleted, by whomever, or with its
    /// lease, whose end the session learns later.
    Key,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Loss::Session(SessionEnd::Expired) => "the lease was not renewed in time",
            Loss::Session(SessionEnd::LeaseGone) => "etcd does not have the lease any more",
            Loss::Session(SessionEnd::Closed) => "the session was closed",
            Loss::Session(SessionEnd::Orphaned) => "the session was given up",
            Loss::Key => "its key in etcd was deleted, or its lease revoked",
        })
    }
}

/// Waits until the holding with this create revision is over.
pub(super) async fn lost(shared: &Shared, place: &Place, revision: i64) -> Loss {
    tokio::select! {
        biased;
        // Done without an end would be a clock that ran back.
        () = shared.done() => Loss::Session(shared.ended().unwrap_or(SessionEnd::Expired)),
        () = key_gone(shared, place, revision) => Loss::Key,
    }
}

/// Waits until this incarnation of the key is gone. Whether the session is over does not matter
/// here, except that pauses end with it.
async fn key_gone(shared: &Shared, place: &Place, revision: i64) {
    let mut pauses = Pauses::new();
    while !place.is_retired(revision) {
        let started = Instant::now();
        match until_definite(shared, |client| queue::own_revision(client, &place.key)).await {
            Ok(found) => {
                let (seen, own) = found.value;
                let key = place.key.as_bytes();
                if own != Some(revision)
                    || queue::first_deleted(shared, key, None, seen + 1).await.is_some()
                {
                    tracing::debug!(key = place.key, revision, "key of a holding is gone");
                    place.vanish(revision);
                    return;
                }
            }
            Err(error) => tracing::debug!(key = place.key, %error, "own key not read"),
        }
        if started.elapsed() > PAUSE_MAX {
            pauses.reset();
        }
        pauses.pause_fully().await;
    }
}
