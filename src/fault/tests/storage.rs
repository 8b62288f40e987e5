//! Kills of the storage, and faults of its disk and of the requests to it.

use std::{collections::BTreeSet, sync::Arc};

use super::{CLIENT, NodeName, ask, begin, ms, skipped, stored, tell, write};
use crate::{
    cluster::{Cluster, ClusterOptions, sim},
    history::{EventKind, Recorder},
    plan::{FaultKind, RequestHarm, RequestName},
    seed::Seed,
    storage::{Applied, GuardKind, Request, StateMachine, Store, disk::LyingDisk},
    time::sleep,
};

const KILL: FaultKind = FaultKind::Kill { node: NodeName::Storage };

/// What was answered outlives a kill; what was not synced may be lost or not, as the seed says.
#[test]
fn a_kill_takes_what_was_not_synced() {
    let mut found = BTreeSet::new();
    for seed in 0..20 {
        let left = tell(seed, |cluster| async move {
            assert!(write(&cluster, "synced", 1).await.0);
            let slow = begin(&cluster, 5000, FaultKind::SlowSync { latency_ms: 1000 });
            let killed = async {
                sleep(ms(500)).await;
                begin(&cluster, 500, KILL)
            };
            let ((written, _), end) = tokio::join!(write(&cluster, "torn", 2), killed);
            assert!(!written, "it was not answered");
            slow(&cluster);
            assert_eq!(end(&cluster), 1);
            cluster.storage_listens().await;
            let left = stored(&cluster).await;
            assert!(write(&cluster, "after", 3).await.0);
            assert_eq!(stored(&cluster).await.as_deref(), Some("after"));
            left
        });
        found.extend(left);
    }
    assert_eq!(found, BTreeSet::from(["synced".to_owned(), "torn".to_owned()]));
}

/// The marks are kept: after a kill the fence refuses what it refused before. And the indexes of
/// the record go on.
#[test]
fn a_kill_leaves_the_fence_standing() {
    let events = tell(1, |cluster| async move {
        assert!(write(&cluster, "new", 5).await.0);
        let end = begin(&cluster, 500, KILL);
        assert!(cluster.is_down(NodeName::Storage));
        end(&cluster);
        cluster.storage_listens().await;
        let (answer, _) = ask(&cluster, CLIENT, Request::write("k", "old", 4)).await;
        assert!(!answer.unwrap().err.is_empty(), "refused");
        assert_eq!(stored(&cluster).await.as_deref(), Some("new"));
        cluster.recorder().finish().0.events
    });
    let rows = events.iter().filter_map(|event| match &event.kind {
        EventKind::Apply(row) => Some((row.boot, row.index)),
        _ => None,
    });
    assert_eq!(rows.collect::<Vec<_>>(), [(1, 1), (2, 2), (2, 3)]);
}

/// A storage that cannot be kept is served from memory and not killed, and has no disk to fail.
#[test]
fn a_storage_without_a_disk_is_left_alone() {
    struct Forgetful;
    impl StateMachine for Forgetful {
        fn apply(&mut self, _request: &Request) -> Applied {
            Applied::refused("never")
        }
    }
    let run = sim::run(Seed(1), || async {
        let options = ClusterOptions {
            quirks: Default::default(),
            clients: 1,
            latency: (ms(1), ms(1)),
            storage: Arc::new(|| Box::new(Forgetful)),
            wrap_disk: None,
        };
        let cluster = Cluster::start(Seed(1), options, Recorder::default());
        cluster.storage_listens().await;
        let silent = FaultKind::SilentDeath { node: NodeName::Storage };
        let full = FaultKind::DiskFailure { full: true };
        for kind in [KILL, silent, full, FaultKind::SlowSync { latency_ms: 9 }] {
            assert_eq!(skipped(&cluster, kind), Some("the storage cannot be kept on a disk"));
        }
        let (answer, _) = ask(&cluster, CLIENT, Request::read("k")).await;
        assert_eq!(answer.unwrap().err, "never");
        cluster.shut_down().await;
    });
    run.unwrap();
}

/// A disk that lies loses what was answered, and whatever it leaves, the storage starts again: what
/// is missing is for the judge to see.
#[test]
fn a_disk_that_lies_loses_what_was_answered() {
    let mut lost = 0;
    for seed in 0..30 {
        let left = sim::run(Seed(seed), move || async move {
            let options = ClusterOptions {
                quirks: Default::default(),
                clients: 2,
                latency: (ms(1), ms(1)),
                storage: Arc::new(|| Box::new(Store::of_kind(GuardKind::Monotonic))),
                wrap_disk: Some(|disk| Arc::new(LyingDisk(disk))),
            };
            let cluster = Cluster::start(Seed(seed), options, Recorder::default());
            cluster.storage_listens().await;
            assert!(write(&cluster, "a", 1).await.0);
            begin(&cluster, 100, KILL)(&cluster);
            cluster.storage_listens().await;
            let left = stored(&cluster).await;
            assert!(write(&cluster, "b", 2).await.0);
            cluster.shut_down().await;
            left
        });
        lost += u32::from(left.unwrap().is_none());
    }
    assert!((5..30).contains(&lost), "lost in {lost} of 30 runs");
}

/// While the syncs are slow each answer waits for its own.
#[test]
fn slow_syncs_make_answers_wait() {
    tell(1, |cluster| async move {
        assert!(write(&cluster, "a", 1).await.1 < ms(30));
        let end = begin(&cluster, 5000, FaultKind::SlowSync { latency_ms: 800 });
        let (written, took) = write(&cluster, "b", 2).await;
        assert!(written && took >= ms(800), "{took:?}");
        assert_eq!(end(&cluster), 1);
        assert!(write(&cluster, "c", 3).await.1 < ms(30));
    });
}

/// A disk that fails, in its syncs or because it is full, takes no write; when it works again the
/// storage is started anew and has what it had answered.
#[test]
fn a_failed_disk_takes_no_write_and_loses_none() {
    for full in [false, true] {
        tell(1, move |cluster| async move {
            assert!(write(&cluster, "a", 1).await.0);
            let end = begin(&cluster, 2000, FaultKind::DiskFailure { full });
            assert!(!write(&cluster, "b", 2).await.0, "full: {full}");
            assert!(!write(&cluster, "c", 3).await.0, "and it answers no more");
            assert!(end(&cluster) >= 1);
            cluster.storage_listens().await;
            let left = stored(&cluster).await;
            assert!(matches!(left.as_deref(), Some("a" | "b")), "{left:?}");
            assert!(write(&cluster, "d", 4).await.0);
        });
    }
}

/// A killed storage cannot start on a disk that fails; when the disk works again it does.
#[test]
fn a_storage_starts_when_its_disk_works_again() {
    tell(1, |cluster| async move {
        assert!(write(&cluster, "a", 1).await.0);
        let failing = begin(&cluster, 2000, FaultKind::DiskFailure { full: false });
        begin(&cluster, 100, KILL)(&cluster);
        sleep(ms(1000)).await;
        assert!(ask(&cluster, CLIENT, Request::read("k")).await.0.is_err(), "it is not there");
        failing(&cluster);
        cluster.storage_listens().await;
        assert_eq!(stored(&cluster).await.as_deref(), Some("a"));
    });
}

/// A request to the storage that is lost has no effect, one whose reply is lost has.
#[test]
fn requests_are_lost_before_or_after_their_effect() {
    tell(1, |cluster| async move {
        assert!(write(&cluster, "a", 1).await.0);
        for (harm, token, found) in [(RequestHarm::Lost, 2, "a"), (RequestHarm::ReplyLost, 3, "b")]
        {
            let request = RequestName::Storage;
            let end = begin(&cluster, 5000, FaultKind::Request { request, harm, count: 1 });
            let (written, took) = write(&cluster, "b", token).await;
            assert!(!written && took < ms(100), "{harm:?}: told at once, {took:?}");
            assert_eq!(end(&cluster), 1, "{harm:?}");
            assert_eq!(stored(&cluster).await.as_deref(), Some(found), "{harm:?}");
        }
        assert!(write(&cluster, "c", 4).await.0, "nothing is left of it");
    });
}
