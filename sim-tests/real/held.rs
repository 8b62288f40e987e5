//! A holding as a value, the header of a handle, and waiting as Go does, against a real etcd.

use std::time::Duration;

use leasehold::{
    concurrency::{LockError, Mutex, WaitProfile},
    etcd::{Compare, Txn, TxnOp},
    time::{Instant, sleep, timeout},
};

use super::member::Member;

const SECOND: Duration = Duration::from_secs(1);

async fn committed(member: &Member, owner: Compare) -> bool {
    let txn = Txn::new().when([owner]).and_then([TxnOp::put("data", "x", None)]);
    member.client.clone().txn(txn).await.expect("etcd serves").succeeded()
}

/// What a holding tells is what etcd has: key, token, a deadline within the TTL, a comparison that
/// holds; and its unlock ends it for every handle.
#[tokio::test]
async fn holding_tells_what_etcd_has() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let (mutex, sibling) = (Mutex::new(&session, "l"), Mutex::new(&session, "l"));
    let held = mutex.acquire().await.expect("nobody else");
    assert_eq!(member.queue("l/").await, [(held.key().to_owned(), held.token().get())]);
    assert_eq!(mutex.token(), Some(held.token()));
    assert_eq!(held.session().lease(), session.lease());
    assert!(held.is_live());
    assert!(held.remaining() > 5 * SECOND && held.remaining() <= 10 * SECOND);
    assert!(held.deadline() <= Instant::now() + 10 * SECOND);
    assert!(committed(&member, held.is_owner()).await);
    let again = sibling.acquire().await.expect("re-entry");
    assert_eq!(again.token(), held.token());
    let owner = held.is_owner();
    held.unlock().await.expect("held");
    assert!(!again.is_live());
    assert_eq!(again.remaining(), Duration::ZERO);
    assert!(matches!(again.unlock().await, Err(LockError::Released)));
    assert!(!committed(&member, owner).await);
    assert!(member.queue("l/").await.is_empty());
}

/// Dropped, it stays locked; and an old one does not unlock what was locked after it.
#[tokio::test]
async fn dropped_stays_locked_and_an_old_one_spares_the_new() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let mutex = Mutex::new(&session, "l");
    drop(mutex.acquire().await.expect("nobody else"));
    assert_eq!(member.queue("l/").await.len(), 1);
    let old = mutex.held().expect("still held");
    mutex.unlock().await.expect("held");
    let new = mutex.acquire().await.expect("nobody else");
    assert!(new.token() > old.token());
    assert!(!old.is_live() && new.is_live());
    assert!(matches!(old.unlock().await, Err(LockError::Released)));
    assert_eq!(member.queue("l/").await, [(new.key().to_owned(), new.token().get())]);
}

/// A holding learns of the end of its lease, and of its nearness when etcd is silent.
#[tokio::test]
async fn holding_ends_with_its_lease() {
    let member = Member::start().await;
    let session = member.session(3).await;
    let held = Mutex::new(&session, "l").acquire().await.expect("nobody else");
    member.freeze();
    let frozen = Instant::now();
    timeout(3 * SECOND, held.expires_within(SECOND)).await.expect("it comes near");
    assert!(held.is_live() && held.remaining() <= SECOND);
    timeout(2 * SECOND, held.lost()).await.expect("and then it is over");
    assert!(!held.is_live());
    assert_eq!(held.remaining(), Duration::ZERO);
    assert!(frozen.elapsed() < 4 * SECOND);
    member.thaw();
    let other = member.session(3).await;
    let held = Mutex::new(&other, "m").acquire().await.expect("nobody else");
    member.client.clone().lease_revoke(other.lease()).await.expect("etcd serves");
    timeout(2 * SECOND, held.lost()).await.expect("the next renewal tells");
    // The token stays: it is what the storage has to refuse.
    assert!(held.token().get() > 0 && !held.is_live());
}

/// The header is of the answer that showed the key to be first: at the token for the first comer,
/// later for one that came again or had to wait; of this member; and none without a holding.
#[tokio::test]
async fn header_is_of_the_deciding_answer() {
    let member = Member::start().await;
    let (session, other) = (member.session(10).await, member.session(10).await);
    let mutex = Mutex::new(&session, "l");
    assert!(mutex.header().is_none());
    let token = mutex.lock().await.expect("nobody else");
    let header = mutex.header().expect("it holds");
    assert_eq!(header.revision(), token.get());
    let status = member.client.clone().status().await.expect("etcd serves");
    let expected = status.header().expect("a header").member_id();
    assert_eq!(header.member_id(), expected);
    let mut client = member.client.clone();
    for n in 0..3 {
        client.put("noise", n.to_string(), None).await.expect("etcd serves");
    }
    let again = Mutex::new(&session, "l");
    assert_eq!(again.lock().await.expect("re-entry"), token);
    assert_eq!(again.header().expect("it holds").revision(), token.get() + 3);
    let waiter = Mutex::new(&other, "l");
    let (late, ()) = tokio::join!(waiter.acquire(), async {
        member.wait_for_queue("l/", 2, SECOND).await;
        mutex.unlock().await.expect("held");
    });
    let late = late.expect("its turn");
    // Its own key, and the holder's delete.
    assert_eq!(late.token().get(), token.get() + 4);
    assert_eq!(late.header().revision(), token.get() + 5);
    assert!(mutex.header().is_none() && again.header().is_none());
}

/// As Go does, a waiter without a lease stays where it is until its predecessor leaves, and is then
/// told that it has none; beside it a strict one ends at once.
#[tokio::test]
async fn go_compatible_waiter_learns_late() {
    let member = Member::start().await;
    let (a, b, c) = (member.session(60).await, member.session(60).await, member.session(60).await);
    let holder = Mutex::new(&a, "l");
    let go = Mutex::with_profile(&b, "l", WaitProfile::GoCompatible);
    let strict = Mutex::new(&c, "l");
    holder.lock().await.expect("nobody else");
    let go = tokio::spawn(async move { go.lock().await });
    member.wait_for_queue("l/", 2, SECOND).await;
    let strict = tokio::spawn(async move { strict.lock().await });
    member.wait_for_queue("l/", 3, SECOND).await;
    for session in [&b, &c] {
        member.client.clone().lease_revoke(session.lease()).await.expect("etcd serves");
    }
    let strict = timeout(SECOND, strict).await.expect("one watch delivery").expect("no panic");
    assert!(matches!(strict, Err(LockError::SessionExpired)), "{strict:?}");
    sleep(2 * SECOND).await;
    assert!(!go.is_finished());
    holder.unlock().await.expect("held");
    let go = timeout(SECOND, go).await.expect("its predecessor left").expect("no panic");
    assert!(matches!(go, Err(LockError::SessionExpired)), "{go:?}");
}

/// In turn it acquires as the other does, with a token that is newer.
#[tokio::test]
async fn go_compatible_waiter_acquires_in_turn() {
    let member = Member::start().await;
    let (a, b) = (member.session(60).await, member.session(60).await);
    let holder = Mutex::with_profile(&a, "l", WaitProfile::GoCompatible);
    let waiter = Mutex::with_profile(&b, "l", WaitProfile::GoCompatible);
    let first = holder.lock().await.expect("nobody else");
    let waiting = tokio::spawn(async move { (waiter.lock().await, waiter) });
    member.wait_for_queue("l/", 2, SECOND).await;
    holder.unlock().await.expect("held");
    let (second, waiter) = timeout(SECOND, waiting).await.expect("its turn").expect("no panic");
    assert!(second.expect("acquired") > first);
    waiter.unlock().await.expect("held");
    assert!(member.queue("l/").await.is_empty());
}
