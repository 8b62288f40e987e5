//! The election against a real etcd.

use std::time::Duration;

use leasehold::{
    concurrency::{Election, ElectionError, FencingToken, Leadership, LockError, Observer},
    time::timeout,
};

use super::member::Member;

const SECOND: Duration = Duration::from_secs(1);

/// Campaign, proclaim, resign: the key is Go's, the token its create revision, and each costs one
/// revision.
#[tokio::test]
async fn campaign_proclaim_resign() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let election = Election::new(&session, "e");
    let before = member.revision().await;
    let token = election.campaign("one").await.expect("nobody else");
    assert_eq!(member.queue("e/").await, [(election.key().to_owned(), token.get())]);
    election.proclaim("two").await.expect("it leads");
    assert_eq!(election.campaign("three").await.expect("it leads"), token);
    let leader = election.leader().await.expect("readable").expect("a leader");
    assert_eq!((leader.value, leader.token), (b"three".to_vec(), token));
    assert_eq!(leader.lease, session.lease());
    assert_eq!(member.revision().await, before + 3);
    election.resign().await.expect("it leads");
    assert_eq!(election.leader().await.expect("readable"), None);
    assert!(matches!(election.resign().await, Err(ElectionError::NotLeader)));
    assert!(matches!(election.proclaim("four").await, Err(ElectionError::NotLeader)));
    assert_eq!(member.revision().await, before + 4);
}

/// Candidates lead one after the other, with rising tokens, and an observer is told of each and of
/// the vacancy at the end.
#[tokio::test]
async fn observer_is_told_of_every_leader() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let first = Election::new(&session, "e");
    let token = first.campaign("a").await.expect("nobody else");
    let mut observer = first.observe();
    let next = async |observer: &mut Observer| {
        timeout(5 * SECOND, observer.next()).await.expect("in time").expect("readable")
    };
    let named = |news: Leadership| match news {
        Leadership::Leader(leader) => (leader.value, leader.token),
        Leadership::Vacant => panic!("somebody leads"),
    };
    assert_eq!(named(next(&mut observer).await), (b"a".to_vec(), token));
    let other = member.session(10).await;
    let standing = tokio::spawn(async move {
        let second = Election::new(&other, "e");
        let token = second.campaign("b").await?;
        Ok::<_, ElectionError>((second, token))
    });
    member.wait_for_queue("e/", 2, SECOND).await;
    first.resign().await.expect("it leads");
    let (second, newer) = standing.await.expect("no panic").expect("first in the queue");
    assert!(newer > token);
    assert_eq!(named(next(&mut observer).await), (b"b".to_vec(), newer));
    second.resign().await.expect("it leads");
    assert_eq!(next(&mut observer).await, Leadership::Vacant);
}

/// A candidate whose lease is revoked fails while the leader still leads; a resumed handle must
/// name the token that leads.
#[tokio::test]
async fn revoked_candidate_fails_and_resume_is_checked() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let first = Election::new(&session, "e");
    let token = first.campaign("a").await.expect("nobody else");
    let other = member.session(10).await;
    let lease = other.lease();
    let standing = tokio::spawn(async move { Election::new(&other, "e").campaign("b").await });
    member.wait_for_queue("e/", 2, SECOND).await;
    member.another_client().await.lease_revoke(lease).await.expect("revoked");
    let outcome = timeout(5 * SECOND, standing).await.expect("in time").expect("no panic");
    assert!(matches!(outcome, Err(ElectionError::Lock(LockError::SessionExpired))), "{outcome:?}");
    let wrong = Election::resume(&session, "e", FencingToken::new(token.get() + 1)).await;
    assert!(matches!(wrong, Err(ElectionError::NotLeader)));
    let resumed = Election::resume(&session, "e", token).await.expect("it leads");
    resumed.resign().await.expect("it leads");
    assert_eq!(first.token(), None);
}
