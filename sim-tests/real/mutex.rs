//! The lock against a real etcd.

use std::time::Duration;

use leasehold::{
    concurrency::{FencingToken, LockError, Mutex, owner_key},
    etcd::{Txn, TxnOp},
    time::{Instant, sleep, timeout},
};

use super::member::Member;

const SECOND: Duration = Duration::from_secs(1);

/// Uncontended: the key is Go's, the token its create revision, and the whole costs two revisions,
/// one to create and one to delete.
#[tokio::test]
async fn lock_and_unlock() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let mutex = Mutex::new(&session, "l");
    let before = member.revision().await;
    let token = mutex.lock().await.expect("nobody else");
    assert_eq!(mutex.key(), owner_key("l", session.lease()));
    assert_eq!(member.queue("l/").await, [(mutex.key().to_owned(), token.get())]);
    assert_eq!(mutex.token(), Some(token));
    assert!(mutex.is_held());
    mutex.unlock().await.expect("held");
    assert!(member.queue("l/").await.is_empty());
    assert_eq!(member.revision().await, before + 2);
    assert_eq!(mutex.token(), None);
}

/// Unlock without a holding, or twice, sends nothing: the revision stands.
#[tokio::test]
async fn unlock_of_nothing_is_refused() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let mutex = Mutex::new(&session, "l");
    assert!(matches!(mutex.unlock().await, Err(LockError::Released)));
    mutex.lock().await.expect("nobody else");
    mutex.unlock().await.expect("held");
    let before = member.revision().await;
    assert!(matches!(mutex.unlock().await, Err(LockError::Released)));
    assert!(mutex.is_owner().is_err());
    assert_eq!(member.revision().await, before);
}

/// Five sessions in turn: never two inside, and tokens that rise from holder to holder.
#[tokio::test]
async fn contended_lock_is_exclusive_and_tokens_rise() {
    let member = Member::start().await;
    let (entered, mut log) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for _ in 0..5 {
        let session = member.session(10).await;
        let entered = entered.clone();
        tasks.push(tokio::spawn(async move {
            let mutex = Mutex::new(&session, "l");
            for _ in 0..4 {
                let token = mutex.lock().await.expect("the session lives");
                entered.send((true, token)).expect("the test listens");
                tokio::task::yield_now().await;
                entered.send((false, token)).expect("the test listens");
                mutex.unlock().await.expect("held");
            }
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    drop(entered);
    let mut tokens: Vec<FencingToken> = Vec::new();
    while let Some((inside, token)) = log.recv().await {
        assert!(inside);
        assert_eq!(log.recv().await, Some((false, token)));
        tokens.push(token);
    }
    assert_eq!(tokens.len(), 20);
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    assert!(member.queue("l/").await.is_empty());
}

/// A waiter whose lease is revoked ends at once although the holder stays, and the waiter behind it
/// is next (etcd #19597, #11429).
#[tokio::test]
async fn waiter_without_lease_ends() {
    let member = Member::start().await;
    let (a, b, c) = (member.session(60).await, member.session(60).await, member.session(60).await);
    let (a, b, c) = (Mutex::new(&a, "l"), Mutex::new(&b, "l"), Mutex::new(&c, "l"));
    a.lock().await.expect("nobody else");
    let b_lease = b.session().lease();
    let b = tokio::spawn(async move { b.lock().await });
    member.wait_for_queue("l/", 2, SECOND).await;
    let c = tokio::spawn(async move { (c.lock().await, c) });
    member.wait_for_queue("l/", 3, SECOND).await;
    member.client.clone().lease_revoke(b_lease).await.expect("etcd serves");
    let b = timeout(SECOND, b).await.expect("one watch delivery").expect("no panic");
    assert!(matches!(b, Err(LockError::SessionExpired)), "{b:?}");
    assert!(!c.is_finished());
    a.unlock().await.expect("held");
    let (token, c) = timeout(SECOND, c).await.expect("its turn").expect("no panic");
    assert_eq!(c.token(), token.ok());
}

/// A waiter whose key was deleted from outside must not acquire; deleting the holder's key lets the
/// waiter in, and its token is newer.
#[tokio::test]
async fn outside_delete() {
    let member = Member::start().await;
    let (a, b) = (member.session(60).await, member.session(60).await);
    let (a, b) = (Mutex::new(&a, "l"), Mutex::new(&b, "l"));
    let first = a.lock().await.expect("nobody else");
    let mut client = member.client.clone();
    let (gone, ()) = tokio::join!(b.lock(), async {
        member.wait_for_queue("l/", 2, SECOND).await;
        client.delete(b.key(), None).await.expect("etcd serves");
    });
    assert!(matches!(gone, Err(LockError::SessionExpired)), "{gone:?}");
    let mut client = member.client.clone();
    let (second, ()) = tokio::join!(b.lock(), async {
        member.wait_for_queue("l/", 2, SECOND).await;
        client.delete(a.key(), None).await.expect("etcd serves");
    });
    assert!(second.expect("its turn") > first);
    // The old holder's comparison fails now, the new one's holds.
    for (mutex, owner) in [(&a, false), (&b, true)] {
        let compare = mutex.is_owner().expect("it has a token");
        let txn = Txn::new().when([compare]).and_then([TxnOp::put("data", "x", None)]);
        let reply = client.txn(txn).await.expect("etcd serves");
        assert_eq!(reply.succeeded(), owner);
    }
    // Nothing of the new tenure falls with the old one's unlock.
    a.unlock().await.expect("gone is as good as deleted");
    assert_eq!(member.queue("l/").await.len(), 1);
}

/// A losing `try_lock` leaves no key, and does not take the key of a waiting call of its session.
#[tokio::test]
async fn losing_try_lock_leaves_no_trace() {
    let member = Member::start().await;
    let (a, b) = (member.session(60).await, member.session(60).await);
    let (a, b, b2) = (Mutex::new(&a, "l"), Mutex::new(&b, "l"), Mutex::new(&b, "l"));
    a.lock().await.expect("nobody else");
    assert!(matches!(b.try_lock().await, Err(LockError::Locked)));
    assert_eq!(member.queue("l/").await.len(), 1);
    let waiting = tokio::spawn(async move { b2.lock().await });
    member.wait_for_queue("l/", 2, SECOND).await;
    assert!(matches!(b.try_lock().await, Err(LockError::Locked)));
    assert_eq!(member.queue("l/").await.len(), 2);
    a.unlock().await.expect("held");
    waiting.await.expect("no panic").expect("its key was spared");
    b.try_lock().await.expect("re-entry");
}

/// A cancelled `lock` and one that ran out of time leave the queue while their session lives on.
#[tokio::test]
async fn cancelled_lock_leaves_the_queue() {
    let member = Member::start().await;
    let (a, b) = (member.session(60).await, member.session(60).await);
    let (a, b) = (Mutex::new(&a, "l"), Mutex::new(&b, "l"));
    a.lock().await.expect("nobody else");
    let late = b.lock_for(SECOND / 5).await;
    assert!(matches!(late, Err(LockError::TimedOut(_))), "{late:?}");
    member.wait_for_queue("l/", 1, SECOND).await;
    // Dropped at its very first wait: the enqueue is on its way, and nobody reads the answer.
    for _ in 0..5 {
        tokio::select! {
            biased;
            _ = b.lock() => unreachable!("a holds it"),
            () = tokio::task::yield_now() => {}
        }
        sleep(SECOND / 20).await;
    }
    member.wait_for_queue("l/", 1, 3 * SECOND).await;
    a.unlock().await.expect("held");
    b.lock().await.expect("nobody else");
}

/// Two handles of one session share a holding: same token, and an unlock through one ends both.
#[tokio::test]
async fn handles_of_one_session_share_the_holding() {
    let member = Member::start().await;
    let (session, other) = (member.session(60).await, member.session(60).await);
    let (first, second) = (Mutex::new(&session, "l"), Mutex::new(&session, "l"));
    let token = first.lock().await.expect("nobody else");
    assert_eq!(second.lock().await.expect("re-entry"), token);
    first.unlock().await.expect("held");
    assert_eq!(second.token(), None);
    assert!(matches!(second.unlock().await, Err(LockError::Released)));
    let other = Mutex::new(&other, "l");
    assert!(other.lock().await.expect("free") > token);
}

/// An unlock whose answer was lost is settled before the session locks the name again: the late
/// delete must not hit the new holding, and the old incarnation is not acquired again.
#[tokio::test]
async fn unlock_of_unknown_outcome_is_settled_first() {
    let member = Member::start().await;
    let session = member.session(60).await;
    let mutex = Mutex::new(&session, "l");
    let old = mutex.lock().await.expect("nobody else");
    member.freeze();
    assert!(timeout(SECOND / 2, mutex.unlock()).await.is_err());
    assert_eq!(mutex.token(), None);
    let (new, ()) = tokio::join!(mutex.lock(), async {
        sleep(SECOND / 2).await;
        member.thaw();
    });
    let new = new.expect("nobody else");
    assert!(new > old);
    sleep(2 * SECOND).await;
    assert_eq!(member.queue("l/").await, [(mutex.key().to_owned(), new.get())]);
}

/// A deadline holds while etcd does not answer, also for the clean-up (etcd #18082); what was sent
/// by then is taken away afterwards.
#[tokio::test]
async fn deadline_holds_without_etcd() {
    let member = Member::start().await;
    let session = member.session(60).await;
    let mutex = Mutex::new(&session, "l");
    member.freeze();
    let before = Instant::now();
    let late = mutex.lock_for(SECOND / 2).await;
    assert!(matches!(late, Err(LockError::TimedOut(_))), "{late:?}");
    assert!(before.elapsed() < SECOND);
    member.thaw();
    // Long enough for the request that was under way and for both looks after it.
    sleep(3 * SECOND).await;
    assert!(member.queue("l/").await.is_empty());
}

/// A compaction during the wait does not lose the wake-up (etcd #9715).
#[tokio::test]
async fn waiter_outlives_a_compaction() {
    let member = Member::start().await;
    let (a, b) = (member.session(60).await, member.session(60).await);
    let (a, b) = (Mutex::new(&a, "l"), Mutex::new(&b, "l"));
    a.lock().await.expect("nobody else");
    let b = tokio::spawn(async move { b.lock().await });
    member.wait_for_queue("l/", 2, SECOND).await;
    let mut client = member.another_client().await;
    for n in 0..20 {
        client.put("noise", n.to_string(), None).await.expect("etcd serves");
    }
    let revision = member.revision().await;
    client.compact(revision, None).await.expect("etcd serves");
    a.unlock().await.expect("held");
    let token = timeout(SECOND, b).await.expect("its turn").expect("no panic").expect("acquired");
    assert!(token.get() > 0);
}
