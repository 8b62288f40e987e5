//! Field failures of leases, as far as one member can show them; `l10` is scenario L10.
//!
//! Not here: L02 (checkpoints of the remaining time are not modelled), L03 (a deposed leader needs
//! another member that leads). R01, H04 and L01 with a member that does it by itself are among the
//! quirks.

use std::time::Duration;

use futures_util::future::join_all;
use tonic::Code;

use super::world::{World, client, exists, grant, put_on, revision, run, run_with, s, told, ttl};
use crate::{
    etcd::{
        LeaseGrantOptions, PutOptions, Txn, TxnOp,
        server::{Harm, MemberOptions, RequestFault, RequestKind},
    },
    history::{Cause, LeaseChange},
    time::{Instant, sim::ClockSim, sleep},
};

/// Every change of the leader gives every lease its full TTL again, so a flapping leader keeps the
/// lock of a dead holder alive. Given a lease of 60 s that nobody renews; when the leader changes
/// every 40 s, five times; then its key is there at 200 s and goes at 260 s and one election
/// time-out.
#[test]
fn l01_each_change_of_the_leader_starts_leases_anew() {
    run(async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        put_on(&mut client, "k", 7).await;
        for _ in 0..5 {
            sleep(s(40.0)).await;
            assert!(world.state.promote());
        }
        let last = Instant::now();
        assert!(exists(&mut client, "k").await);
        while exists(&mut client, "k").await {
            sleep(s(0.01)).await;
        }
        let lived = last.elapsed();
        assert!(lived >= s(60.99) && lived <= s(61.55), "{lived:?}");
    });
}

/// Short TTLs are raised to one and a half election time-outs, in whole ticks and seconds. Given
/// election time-outs of 1000, 3000 and 1090 ms; when 1, 0 and -1 s are asked; then 2, 5 and 2 s
/// are granted, and the answer says so. The extension after a restart follows it as well.
#[test]
fn l07_a_short_ttl_is_raised_and_the_answer_says_so() {
    let heartbeat = Duration::from_millis(100);
    for (election_ms, floor, after) in [(1000, 2, 3.0), (3000, 5, 8.0), (1090, 2, 3.0)] {
        let election_timeout = Duration::from_millis(election_ms);
        let options = MemberOptions { heartbeat, election_timeout, ..MemberOptions::default() };
        run_with(options, async move |world: &World| {
            let mut client = client().await;
            for asked in [1, 0, -1] {
                let granted = client.lease_grant(asked, None).await.expect("granted");
                assert_eq!(granted.ttl(), floor, "{election_ms} ms");
            }
            grant(&mut client, 7, 1).await;
            put_on(&mut client, "k", 7).await;
            world.restart_after(s(0.2)).await;
            let restarted = Instant::now();
            while exists(&mut client, "k").await {
                sleep(s(0.01)).await;
            }
            let lived = restarted.elapsed();
            assert!(lived >= s(after - 0.05) && lived <= s(after + 0.55), "{lived:?}");
        });
    }
}

/// Nanoseconds taken for seconds overflowed, and the lease was born dead. When 86,400,000,000,000,
/// 9,000,000,000 and 9,000,000,001 s are asked; then the second is granted and lives, and the
/// others are refused and leave no lease.
#[test]
fn l08_an_oversize_ttl_is_refused() {
    run(async |_: &World| {
        let mut client = client().await;
        for asked in [86_400_000_000_000, 9_000_000_001] {
            let refused = told(client.lease_grant(asked, None).await.expect_err("too large"));
            assert_eq!(refused, (Code::OutOfRange, "etcdserver: too large lease TTL".to_owned()));
        }
        let granted = client.lease_grant(9_000_000_000, None).await.expect("granted");
        sleep(s(1.0)).await;
        assert_eq!(ttl(&mut client, granted.id()).await, 8_999_999_998);
        assert_eq!(client.leases().await.expect("an answer").leases().len(), 1);
    });
}

/// Expiry on the wall clock froze or killed leases. Given a lease of 60 s; when the member's wall
/// clock jumps an hour ahead and then two back; then it ends when it would have ended. The rate of
/// the monotonic clock does move the end.
#[test]
fn l09_a_jump_of_the_wall_clock_moves_no_expiry() {
    let lived = |rate: u32| {
        run(async move |world: &World| {
            let (clocks, member) = (ClockSim::current(), world.member.id());
            let mut client = client().await;
            clocks.add_rate(member, rate);
            grant(&mut client, 7, 60).await;
            put_on(&mut client, "k", 7).await;
            let granted = Instant::now();
            sleep(s(10.0)).await;
            clocks.step_wall(member, 3_600_000);
            sleep(s(10.0)).await;
            assert!(exists(&mut client, "k").await);
            clocks.step_wall(member, -7_200_000);
            while exists(&mut client, "k").await {
                sleep(s(0.01)).await;
            }
            granted.elapsed()
        })
    };
    let steady = lived(1000);
    assert!(steady >= s(59.99) && steady <= s(60.52), "{steady:?}");
    let fast = lived(2000);
    assert!(fast >= s(29.99) && fast <= s(30.3), "{fast:?}");
}

/// A lease was taken off the queue before its revocation was known to have worked, and stayed for
/// ever. Given 100 leases that end together while there is no quorum for 10 s; when it is back;
/// then all keys are gone within the interval of a retry and one look, and no lease is left.
#[test]
fn l10_a_failed_revocation_is_tried_again() {
    run(async |world: &World| {
        let mut client = client().await;
        for id in 1..=100 {
            grant(&mut client, id, 5).await;
            put_on(&mut client, &format!("k{id:03}"), id).await;
        }
        let (kind, harm) = (RequestKind::Expiry, Harm::Lost);
        let no_quorum = RequestFault { kind, harm, skip: 0, count: u64::MAX };
        let no_quorum = world.state.inject(no_quorum);
        sleep(s(15.0)).await;
        assert!(exists(&mut client, "k001").await && ttl(&mut client, 1).await < 0);
        assert!(world.state.withdraw(no_quorum) >= 300, "each was tried several times");
        sleep(s(3.6)).await;
        assert_eq!(client.leases().await.expect("an answer").leases().len(), 0);
        let ends = world.log.commits().into_iter().skip(100);
        assert!(ends.map(|end| end.cause).eq((1..=100).map(Cause::Expiry)), "in their order");
    });
}

/// Grants and revokes were applied a second time after a crash. Given lease 7 granted, used,
/// revoked, granted again and used again; when the member is killed and starts anew; then lease 7
/// and the second key are there, and nothing has been applied twice.
#[test]
fn l11_a_restart_applies_nothing_twice() {
    run(async |world: &World| {
        let mut client = client().await;
        grant(&mut client, 7, 60).await;
        put_on(&mut client, "first", 7).await;
        client.lease_revoke(7).await.expect("revoked");
        grant(&mut client, 7, 60).await;
        put_on(&mut client, "second", 7).await;
        let before = (world.log.commits(), world.log.leases());
        for _ in 0..2 {
            world.restart_after(s(0.5)).await;
        }
        assert!(!exists(&mut client, "first").await && exists(&mut client, "second").await);
        assert_eq!(ttl(&mut client, 7).await, 60);
        assert_eq!((revision(&mut client).await, &before), (4, &before));
        assert_eq!((world.log.commits(), world.log.leases()), before);
    });
}

/// A key belongs to the lease it was put with last. Given k on lease 1; when it is put again with
/// lease 2, with lease 1, or with none, and lease 1 ends; then it is there, gone, there. The same
/// if the member was restarted in between.
#[test]
fn l13_a_key_belongs_to_its_last_lease() {
    for restart in [false, true] {
        for (again, stays) in [(2, true), (1, false), (0, true)] {
            run(async move |world: &World| {
                let mut client = client().await;
                grant(&mut client, 1, 5).await;
                grant(&mut client, 2, 600).await;
                put_on(&mut client, "k", 1).await;
                put_on(&mut client, "k", again).await;
                if restart {
                    world.restart_after(s(0.5)).await;
                }
                sleep(s(6.6)).await;
                assert_eq!(ttl(&mut client, 1).await, -1, "lease 1 has ended");
                assert_eq!(exists(&mut client, "k").await, stays, "{again}, {restart}");
                client.lease_revoke(2).await.expect("revoked");
                assert_eq!(exists(&mut client, "k").await, stays && again != 2);
            });
        }
    }
}

/// A put with the lease of a wiped server killed etcd. When a put, and a transaction whose second
/// put does it, name an unknown lease; then both are refused and have no effect at all.
#[test]
fn l14_an_unknown_lease_refuses_the_whole_transaction() {
    run(async |world: &World| {
        let mut client = client().await;
        let on = |lease| Some(PutOptions::new().with_lease(lease));
        let unknown = (Code::NotFound, "etcdserver: requested lease not found".to_owned());
        let put = client.put("x", "", on(424_242)).await.expect_err("unknown lease");
        assert_eq!(told(put), unknown);
        let ops = [TxnOp::put("x", "", None), TxnOp::put("y", "", on(424_242))];
        let txn = client.txn(Txn::new().and_then(ops)).await.expect_err("unknown lease");
        assert_eq!(told(txn), unknown);
        assert!(!exists(&mut client, "x").await && !exists(&mut client, "y").await);
        assert_eq!((revision(&mut client).await, world.log.commits().len()), (1, 0));
        assert!(client.leases().await.expect("an answer").leases().is_empty());
    });
}

/// Fifty leases of twenty keys that end at one instant give one order of events: by the instant,
/// then the lease's id, then the key; each lease in a revision of its own (H02). Every one of
/// fifty watchers sees its part of it.
#[test]
fn h02_leases_that_end_together_end_in_one_order() {
    let (commits, leases, watched) = run(async |world: &World| {
        let client = client().await;
        let grants = (0..50).map(|n| {
            let mut client = client.clone();
            // Not in the order of their ids.
            let id = n * 7 % 50 + 1;
            let options = LeaseGrantOptions::new().with_id(id);
            async move { client.lease_grant(10, Some(options)).await.map(drop) }
        });
        for granted in join_all(grants).await {
            granted.expect("granted");
        }
        let puts = (0..1000).map(|n| {
            let mut client = client.clone();
            let (key, lease) = (n / 50 * 13 % 20, n * 7 % 50 + 1);
            async move { put_on(&mut client, &format!("{key:02}/{lease:02}"), lease).await }
        });
        join_all(puts).await;
        let mut streams = Vec::new();
        for n in 0..50 {
            let options = crate::etcd::WatchOptions::new().with_prefix();
            let prefix = format!("{:02}/", n % 20);
            let mut stream = client.clone().watch(prefix, Some(options)).await.expect("watching");
            stream.message().await.expect("created");
            streams.push(stream);
        }
        sleep(s(11.0)).await;
        let mut watched = Vec::new();
        for stream in &mut streams {
            let told = stream.message().await.expect("a message").expect("no end");
            watched.push(told.events()[0].kv().expect("a pair").key().to_vec());
        }
        let leases = world.log.leases();
        (world.log.commits().split_off(1000), leases, watched)
    });
    let granted: Vec<_> = leases.iter().take(50).map(|event| event.member_ns).collect();
    assert!(granted.iter().all(|at| *at == granted[0]), "one instant");
    let ended = leases.iter().filter(|event| event.change == LeaseChange::Expired);
    assert!(ended.map(|event| event.lease).eq(1..=50));
    assert_eq!(commits.len(), 50);
    for (lease, commit) in (1..).zip(&commits) {
        assert_eq!((commit.cause, commit.revision), (Cause::Expiry(lease), 1001 + lease));
        // What is on this lease, in the order of the keys.
        let keys: Vec<_> = (0..20).map(|key| format!("{key:02}/{lease:02}")).collect();
        assert!(commit.events.iter().map(|event| &event.key).eq(&keys), "{commit:?}");
    }
    let first = |n: usize| format!("{:02}/01", n % 20).into_bytes();
    assert!(watched.into_iter().eq((0..50).map(first)));
}
