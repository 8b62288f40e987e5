//! Leases: asked for, adopted, revoked.
//!
//! After `NewSession` and `Close` of etcd's `concurrency/session.go`. A grant is not repeated: one
//! of unknown outcome leaves a lease that nobody renews and that runs out by itself. An adopted
//! lease counts only from its first acknowledged renewal, because nobody knows when the last one
//! was sent; in Go it counts at once. A revoke is repeated until its answer is definite, and
//! bounded by the caller: in Go a failed one is not repeated.
//!
//! With users etcd wants to know who revokes a lease that has keys, and etcd-client sends no token
//! with lease requests. A revoke that is refused is sent again when the session's keys are deleted.

use super::{
    error::{Class, LockError, class},
    renewal::{Attempt, Renewal},
    request::{Pauses, until_definite},
    session::{SessionOptions, Shared},
};
use crate::{
    etcd::{self, LeaseGrantOptions},
    time::{Instant, timeout},
};

/// A new lease: when it was asked for, its keep-alive, its id, the granted TTL in seconds.
pub(super) async fn grant(
    client: &etcd::Client,
    options: &SessionOptions,
) -> Result<(Instant, Renewal, i64, i64), LockError> {
    let mut client = client.clone();
    let sent = Instant::now();
    let request = client.lease_grant(options.ttl_s, None::<LeaseGrantOptions>);
    let reply = timeout(options.request_timeout, request)
        .await
        .map_err(|_| LockError::TimedOut(options.request_timeout))?
        .map_err(Box::new)?;
    let (lease, ttl_s) = (reply.id(), reply.ttl());
    if ttl_s <= 0 {
        return Err(LockError::Answer("a grant without time to live"));
    }
    Ok((sent, Renewal::new(client, lease, ttl_s), lease, ttl_s))
}

/// An adopted lease is "held" only from its first acknowledged renewal on.
pub(super) async fn adopt(
    client: &etcd::Client,
    lease: i64,
    options: &SessionOptions,
) -> Result<(Instant, Renewal, i64, i64), LockError> {
    let mut asking = client.clone();
    let reply = timeout(options.request_timeout, asking.lease_time_to_live(lease, None))
        .await
        .map_err(|_| LockError::TimedOut(options.request_timeout))?
        .map_err(Box::new)?;
    // Etcd answers a TTL of -1 for a lease it does not have.
    if reply.ttl() < 0 || reply.granted_ttl() <= 0 {
        return Err(LockError::SessionExpired);
    }
    let mut renewal = Renewal::new(client.clone(), lease, reply.granted_ttl());
    match renewal.attempt(options.request_timeout).await {
        Attempt::Acknowledged(sent, ttl_s) => Ok((sent, renewal, lease, ttl_s)),
        Attempt::Gone => Err(LockError::SessionExpired),
        Attempt::Broken | Attempt::Lost => Err(LockError::TimedOut(options.request_timeout)),
    }
}

/// Revokes until the answer is definite. Not bounded: the caller is.
pub(super) async fn revoke(shared: &Shared) -> Result<(), LockError> {
    let mut client = shared.client();
    let mut pauses = Pauses::new();
    let mut cleared = false;
    loop {
        let request = client.lease_revoke(shared.lease());
        match timeout(shared.options().request_timeout, request).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => match class(&error) {
                Class::LeaseGone => return Ok(()),
                Class::Refused if !cleared && delete_keys(shared).await.is_ok() => {
                    cleared = true;
                    continue;
                }
                Class::Refused => return Err(Box::new(error).into()),
                Class::Unknown => {
                    tracing::debug!(lease = shared.lease(), %error, "revoke not answered");
                }
            },
            Err(_) => {}
        }
        pauses.pause_fully().await;
    }
}

/// Deletes the session's keys in all queues: what the revoke would have done.
async fn delete_keys(shared: &Shared) -> Result<(), LockError> {
    for key in shared.keys() {
        let delete = async |mut client: etcd::Client| client.delete(key.as_str(), None).await;
        until_definite(shared, delete).await?;
    }
    Ok(())
}
