//! Sessions against a real etcd.

use std::time::Duration;

use leasehold::{
    concurrency::{LockError, Mutex, Session, SessionEnd, SessionOptions},
    time::{Instant, sleep, timeout},
};

use super::member::Member;

const SECOND: Duration = Duration::from_secs(1);

/// Etcd raises a TTL of 1 s to 2 s; the session takes over what was granted, and outlives it
/// several times, so it renews.
#[tokio::test]
async fn session_follows_the_granted_ttl_and_renews() {
    let member = Member::start().await;
    let session = member.session(1).await;
    assert_eq!(session.ttl(), 2 * SECOND);
    let first = session.deadline();
    sleep(5 * SECOND).await;
    assert!(session.is_live());
    assert!(session.deadline() >= first + 3 * SECOND);
    assert!(member.has_lease(session.lease()).await);
}

/// With etcd out of reach the session ends by its own clock, TTL after the sending of the last
/// acknowledged renewal, and does not come back when etcd does.
#[tokio::test]
async fn session_ends_by_its_own_clock() {
    let member = Member::start().await;
    let session = member.session(2).await;
    sleep(SECOND).await;
    member.freeze();
    let deadline = session.deadline();
    timeout(4 * SECOND, session.done()).await.expect("it ends within the TTL");
    let now = Instant::now();
    assert!(now >= deadline && now < deadline + SECOND / 2);
    assert_eq!(session.deadline(), deadline);
    member.thaw();
    sleep(SECOND).await;
    assert_eq!(session.ended(), Some(SessionEnd::Expired));
    let lock = Mutex::new(&session, "l").lock().await;
    assert!(matches!(lock, Err(LockError::SessionExpired)));
}

/// A short outage costs nothing: renewals are sent again in time.
#[tokio::test]
async fn session_survives_an_outage_of_half_its_ttl() {
    let member = Member::start().await;
    let session = member.session(4).await;
    sleep(SECOND).await;
    member.freeze();
    sleep(2 * SECOND).await;
    member.thaw();
    sleep(4 * SECOND).await;
    assert!(session.is_live());
    assert!(member.has_lease(session.lease()).await);
}

/// Etcd answers a renewal of a revoked lease with TTL 0: the session ends at the next renewal.
#[tokio::test]
async fn revoked_lease_ends_the_session() {
    let member = Member::start().await;
    let session = member.session(3).await;
    // One renewal first, so that an open stream is tried too.
    sleep(SECOND + SECOND / 2).await;
    member.client.clone().lease_revoke(session.lease()).await.expect("etcd serves");
    timeout(SECOND + SECOND / 2, session.done()).await.expect("the next renewal tells");
    assert_eq!(session.ended(), Some(SessionEnd::LeaseGone));
}

/// Close revokes the lease with all its keys, and a second close is no error.
#[tokio::test]
async fn close_revokes() {
    let member = Member::start().await;
    let session = member.session(60).await;
    let mutex = Mutex::new(&session, "l");
    mutex.lock().await.expect("nobody else");
    session.close().await.expect("etcd serves");
    assert_eq!(session.ended(), Some(SessionEnd::Closed));
    assert!(member.queue("l/").await.is_empty());
    assert!(!member.has_lease(session.lease()).await);
    session.close().await.expect("already gone");
    assert!(!mutex.is_held());
}

/// Close takes no longer than the TTL, and says that the outcome is unknown.
#[tokio::test]
async fn close_is_bounded_by_the_ttl() {
    let member = Member::start().await;
    let session = member.session(2).await;
    member.freeze();
    let before = Instant::now();
    let outcome = session.close().await;
    assert!(matches!(outcome, Err(LockError::TimedOut(_))), "{outcome:?}");
    assert!(before.elapsed() < 3 * SECOND);
    member.thaw();
}

/// An orphan's lease stays until its TTL is over, then goes: nobody renews it. The same holds for a
/// session whose handles were dropped.
#[tokio::test]
async fn orphan_and_drop_leave_the_lease_to_run_out() {
    let member = Member::start().await;
    let orphan = member.session(2).await;
    let dropped = member.session(2).await;
    let (lease, done) = (dropped.lease(), dropped.done());
    orphan.orphan();
    drop(dropped);
    timeout(SECOND, done).await.expect("the last handle is gone");
    assert_eq!(orphan.ended(), Some(SessionEnd::Orphaned));
    assert!(member.has_lease(orphan.lease()).await);
    assert!(member.has_lease(lease).await);
    sleep(4 * SECOND).await;
    assert!(!member.has_lease(orphan.lease()).await);
    assert!(!member.has_lease(lease).await);
}

/// An adopted lease counts with the TTL it was granted; one that is not there is no session.
#[tokio::test]
async fn adopted_lease() {
    let member = Member::start().await;
    let mut client = member.client.clone();
    let lease = client.lease_grant(3, None).await.expect("etcd serves").id();
    let options = SessionOptions { lease: Some(lease), ..SessionOptions::default() };
    let session = Session::new(&client, options.clone()).await.expect("the lease is there");
    assert_eq!((session.lease(), session.ttl()), (lease, 3 * SECOND));
    sleep(5 * SECOND).await;
    assert!(session.is_live());
    session.close().await.expect("etcd serves");
    let again = Session::new(&client, options).await;
    assert!(matches!(again, Err(LockError::SessionExpired)));
}
