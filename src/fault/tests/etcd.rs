//! Faults of requests, leases, keys and the leader, as clients of etcd see them.

use super::{CLIENT, ETCD, NodeName, begin, ms, skipped, tell, with_etcd};
use crate::{
    cluster::Cluster,
    etcd::{Client, GetOptions, PutOptions},
    plan::{FaultKind, RequestHarm, RequestName},
    time::{Instant, sleep, timeout},
};

const OWNER_KEY: &str = "/lock/a";

/// Grants a lease and puts the owner's key on it; the lease.
async fn own(etcd: &mut Client, ttl_s: i64) -> i64 {
    let lease = etcd.lease_grant(ttl_s, None).await.expect("granted").id();
    let on = PutOptions::new().with_lease(lease);
    etcd.put(OWNER_KEY, "", Some(on)).await.expect("put");
    lease
}

/// Renews a lease every half second; how many of `times` renewals were answered within that.
async fn renew(etcd: &mut Client, lease: i64, times: u32) -> u32 {
    let mut answered = 0;
    for _ in 0..times {
        let once = async {
            let (mut keeper, mut stream) = etcd.lease_keep_alive(lease).await.ok()?;
            keeper.keep_alive().await.ok()?;
            stream.message().await.ok().flatten()
        };
        let told = timeout(ms(500), once).await.ok().flatten();
        answered += u32::from(told.is_some_and(|answer| answer.ttl() > 0));
        sleep(ms(400)).await;
    }
    answered
}

fn harmed(harm: RequestHarm) -> FaultKind {
    FaultKind::Request { request: RequestName::Grant, harm, count: 1 }
}

/// A grant that is lost has no effect, one whose reply is lost has; the next one is not harmed.
#[test]
fn requests_are_lost_before_or_after_their_effect() {
    tell(1, |cluster| async move {
        for (harm, effect) in [(RequestHarm::Lost, 0), (RequestHarm::ReplyLost, 1)] {
            let end = begin(&cluster, 5000, harmed(harm));
            let (told, leases, again) = with_etcd(&cluster, CLIENT, |mut etcd| async move {
                let before = etcd.leases().await.unwrap().leases().len();
                let told = etcd.lease_grant(100, None).await.is_ok();
                let leases = etcd.leases().await.unwrap().leases().len() - before;
                (told, leases, etcd.lease_grant(100, None).await.is_ok())
            })
            .await;
            assert_eq!((told, leases, again), (false, effect, true), "{harm:?}");
            assert_eq!(end(&cluster), 1);
        }
        let unused = begin(&cluster, 5000, harmed(RequestHarm::Lost));
        assert_eq!(unused(&cluster), 0);
        let healed = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            etcd.lease_grant(100, None).await.is_ok()
        });
        assert!(healed.await, "a fault that met no request is taken back");
    });
}

/// A grant that comes twice makes two leases, and the client knows one.
#[test]
fn requests_come_twice() {
    tell(1, |cluster| async move {
        let end = begin(&cluster, 5000, harmed(RequestHarm::Twice));
        let leases = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            etcd.lease_grant(100, None).await.unwrap();
            etcd.leases().await.unwrap().leases().len()
        });
        assert_eq!((leases.await, end(&cluster)), (2, 1));
    });
}

/// While all renewals get lost no client is told of any; afterwards they are answered again.
#[test]
fn renewals_get_lost() {
    tell(1, |cluster| async move {
        let end = begin(&cluster, 5000, FaultKind::LostRenewals);
        let during = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            let lease = own(&mut etcd, 100).await;
            renew(&mut etcd, lease, 3).await
        });
        assert_eq!(during.await, 0);
        assert!(end(&cluster) >= 3);
        let after = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            let lease = own(&mut etcd, 100).await;
            renew(&mut etcd, lease, 3).await
        });
        assert_eq!(after.await, 3);
    });
}

/// The owner's lease runs out under it although it renews; another's does not.
#[test]
fn the_owners_lease_runs_out() {
    tell(1, |cluster| async move {
        assert_eq!(skipped(&cluster, FaultKind::LeaseRunsOut), Some("nobody owned the lock"));
        let lease = with_etcd(&cluster, CLIENT, |mut etcd| async move { own(&mut etcd, 2).await });
        let lease = lease.await;
        let end = begin(&cluster, 5000, FaultKind::LeaseRunsOut);
        let answered = with_etcd(&cluster, CLIENT, move |mut etcd| async move {
            let other = etcd.lease_grant(2, None).await.unwrap().id();
            let mut again = etcd.clone();
            tokio::join!(renew(&mut etcd, lease, 4), renew(&mut again, other, 4))
        });
        assert_eq!(answered.await, (0, 4));
        assert_eq!(cluster.member().owner("/lock"), None, "its lease has run out");
        assert!(end(&cluster) >= 1);
    });
}

/// The owner's key goes, its lease stays.
#[test]
fn the_owners_key_is_deleted() {
    tell(1, |cluster| async move {
        assert!(skipped(&cluster, FaultKind::OutsideDelete).is_some());
        let lease = with_etcd(&cluster, CLIENT, |mut etcd| async move { own(&mut etcd, 9).await });
        let lease = lease.await;
        assert_eq!(begin(&cluster, 0, FaultKind::OutsideDelete)(&cluster), 1);
        assert_eq!(cluster.member().owner("/lock"), None);
        let left = with_etcd(&cluster, CLIENT, move |mut etcd| async move {
            etcd.lease_time_to_live(lease, None).await.unwrap().ttl()
        });
        assert!(left.await > 5, "the lease lives");
    });
}

/// The owner's lease is revoked, and its key goes with it.
#[test]
fn the_owners_lease_is_revoked() {
    tell(1, |cluster| async move {
        let lease = with_etcd(&cluster, CLIENT, |mut etcd| async move { own(&mut etcd, 9).await });
        let lease = lease.await;
        assert_eq!(begin(&cluster, 0, FaultKind::ForcedRevoke)(&cluster), 1);
        assert_eq!(cluster.member().owner("/lock"), None);
        let left = with_etcd(&cluster, CLIENT, move |mut etcd| async move {
            etcd.lease_time_to_live(lease, None).await.unwrap().ttl()
        });
        assert_eq!(left.await, -1, "the lease is gone");
    });
}

/// Past states cannot be read any more; the present one can.
#[test]
fn the_past_is_compacted_away() {
    tell(1, |cluster| async move {
        let revision = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            let first = etcd.put("k", "1", None).await.unwrap().header().unwrap().revision();
            etcd.put("k", "2", None).await.unwrap();
            first
        });
        let revision = revision.await;
        assert_eq!(begin(&cluster, 0, FaultKind::Compaction)(&cluster), 1);
        let (past, present) = with_etcd(&cluster, CLIENT, move |mut etcd| async move {
            let past = GetOptions::new().with_revision(revision);
            let past = etcd.get("k", Some(past)).await.map(|_| ()).map_err(|e| e.to_string());
            (past, etcd.get("k", None).await.unwrap().kvs()[0].value().to_vec())
        })
        .await;
        assert!(past.unwrap_err().contains("compacted"));
        assert_eq!(present, b"2");
        assert!(skipped(&cluster, FaultKind::Compaction).is_some(), "nothing to compact");
    });
}

/// As long as a compaction lasts, the past is compacted away after each change.
#[test]
fn a_compaction_lasts() {
    tell(1, |cluster| async move {
        put(&cluster, CLIENT).await;
        let put_twice = |cluster: Cluster| async move {
            with_etcd(&cluster, CLIENT, |mut etcd| async move {
                let put = etcd.put("k", "1", None).await.expect("put");
                let past = put.header().expect("a header").revision();
                etcd.put("k", "2", None).await.expect("put");
                etcd.get("k", Some(GetOptions::new().with_revision(past))).await.is_ok()
            })
            .await
        };
        let end = begin(&cluster, 1000, FaultKind::Compaction);
        assert!(!put_twice(cluster.clone()).await, "compacted");
        assert!(end(&cluster) >= 2);
        assert!(put_twice(cluster).await, "as always");
    });
}

/// The member dies with its past compacted away, and comes back with all else.
#[test]
fn a_member_dies_in_a_compaction() {
    tell(1, |cluster| async move {
        put(&cluster, CLIENT).await;
        put(&cluster, CLIENT).await;
        let end = begin(&cluster, 1000, FaultKind::CompactionCrash);
        assert!(cluster.is_down(ETCD));
        assert!(skipped(&cluster, FaultKind::CompactionCrash).is_some(), "it is down");
        assert_eq!(end(&cluster), 1);
        sleep(ms(10)).await;
        let (past, present) = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            let past = etcd.get("k", Some(GetOptions::new().with_revision(2))).await.is_ok();
            (past, etcd.get("k", None).await.expect("an answer").kvs().len())
        })
        .await;
        assert_eq!((past, present), (false, 1));
    });
}

/// A lease that has run out stays while revocations fail, and goes 3 s after the last try.
#[test]
fn revocations_fail_and_are_tried_again() {
    tell(1, |cluster| async move {
        with_etcd(&cluster, CLIENT, |mut etcd| async move { own(&mut etcd, 2).await }).await;
        let end = begin(&cluster, 4000, FaultKind::LostRevocations);
        sleep(ms(4000)).await;
        assert!(cluster.member().owner("/lock").is_some(), "its time is over and it is there");
        assert!(end(&cluster) >= 1);
        sleep(ms(3500)).await;
        assert_eq!(cluster.member().owner("/lock"), None);
    });
}

/// Puts a key; how long it took.
async fn put(cluster: &Cluster, from: NodeName) -> std::time::Duration {
    with_etcd(cluster, from, |mut etcd| async move {
        let began = Instant::now();
        etcd.put("k", "1", None).await.expect("it is done in the end");
        began.elapsed()
    })
    .await
}

/// Without a leader a write waits; when there is one again it is done.
#[test]
fn without_a_leader_writes_wait() {
    tell(1, |cluster| async move {
        let end = begin(&cluster, 1500, FaultKind::Leaderless);
        let lead = async {
            sleep(ms(1500)).await;
            end(&cluster)
        };
        let (took, effect) = tokio::join!(put(&cluster, CLIENT), lead);
        assert!(took >= ms(1490) && effect == 1, "{took:?}");
        assert!(put(&cluster, CLIENT).await < ms(30));
    });
}

/// A killed member is gone, and back with its store.
#[test]
fn a_killed_member_keeps_its_store() {
    tell(1, |cluster| async move {
        put(&cluster, CLIENT).await;
        let end = begin(&cluster, 1000, FaultKind::Kill { node: ETCD });
        assert!(skipped(&cluster, FaultKind::Kill { node: ETCD }).is_some(), "it is down");
        assert_eq!(end(&cluster), 1);
        sleep(ms(10)).await;
        let kept = with_etcd(&cluster, CLIENT, |mut etcd| async move {
            etcd.get("k", None).await.unwrap().kvs().len()
        });
        assert_eq!(kept.await, 1);
    });
}
