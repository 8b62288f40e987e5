//! Speed of the simulated etcd's model, on one core and without the network.
//!
//! `cargo bench --bench etcd` prints time and throughput of: puts, the lock's transaction with
//! three comparisons, puts under the eyes of many watchers, leases. Watchers cost time linear in
//! those that a put concerns: compare the rows with equal `matching` over sizes of `watchers`.

use std::{hint::black_box, time::Duration};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leasehold::etcd::{
    Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp, WatchOptions, server::InProcess,
};

/// Keys that are put in turn.
const KEYS: usize = 10_000;
/// Requests of one round; a compaction after each keeps the memory of long rounds level.
const ROUND: usize = 10_000;

/// Small values on many keys, in an order that is not theirs.
fn puts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("put");
    group.throughput(Throughput::Elements(ROUND as u64));
    let keys: Vec<String> = (0..KEYS).map(|n| format!("key/{:05}", n * 7919 % KEYS)).collect();
    group.bench_function("10000 keys", |bencher| {
        let mut member = InProcess::default();
        bencher.iter(|| {
            let mut revision = 0;
            for key in keys.iter().cycle().take(ROUND) {
                let answer = member.put(key.as_str(), "value", None).expect("it is a put");
                revision = answer.header().map_or(0, |header| header.revision());
            }
            member.compact(revision).expect("a new revision");
        });
    });
    group.sample_size(10).throughput(Throughput::Elements(20 * ROUND as u64));
    group.bench_function("200000 keys, all new, nothing compacted", |bencher| {
        let key = |n| format!("key/{:06}", n * 7919 % (20 * ROUND));
        let keys: Vec<String> = (0..20 * ROUND).map(key).collect();
        bencher.iter_batched_ref(
            InProcess::default,
            |member| {
                for key in &keys {
                    black_box(member.put(key.as_str(), "value", None).expect("it is a put"));
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// The lock's own transaction, with two comparisons more: the queue key is absent, so is a second
/// key, and the lease is none; else a get. It succeeds every other time.
fn lock_txn(key: &str, lease: i64) -> Txn {
    let absent = |key: &str| Compare::create_revision(key, CompareOp::Equal, 0);
    let first = GetOptions::new()
        .with_prefix()
        .with_sort(leasehold::etcd::SortTarget::Create, leasehold::etcd::SortOrder::Ascend)
        .with_limit(1);
    Txn::new()
        .when([absent(key), absent("lock/other"), Compare::lease(key, CompareOp::Equal, 0)])
        .and_then([
            TxnOp::put(key, "", Some(PutOptions::new().with_lease(lease))),
            TxnOp::get(key, Some(first.clone())),
        ])
        .or_else([TxnOp::get(key, None), TxnOp::get(key, Some(first))])
}

fn txns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("txn");
    group.throughput(Throughput::Elements(ROUND as u64));
    let keys: Vec<String> = (0..ROUND / 2).map(|n| format!("lock/{n:05}/1")).collect();
    group.bench_function("three comparisons, put or get, first of the queue", |bencher| {
        bencher.iter_batched_ref(
            || {
                let mut member = InProcess::default();
                let lease = member.lease_grant(3600, None).expect("it is new").id();
                (member, lease)
            },
            |(member, lease)| {
                for key in keys.iter().chain(&keys) {
                    black_box(member.txn(lock_txn(key, *lease)).expect("it is well formed"));
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// One put, with so many watchers on one prefix, of which so many are concerned.
fn watchers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("put with watchers");
    for (watchers, matching) in [
        (0, 0),
        (1_000, 0),
        (10_000, 0),
        (1_000, 100),
        (10_000, 100),
        (1_000, 1_000),
        (10_000, 1_000),
        (10_000, 10_000),
    ] {
        let name = BenchmarkId::from_parameter(format!("{watchers}, {matching} matching"));
        group.bench_function(name, |bencher| {
            let mut member = InProcess::default();
            for n in 0..watchers {
                // All ranges begin at or before the key that is put; those that are not to match
                // end before it.
                let end =
                    if n < matching { "watched/2".to_owned() } else { format!("watched/0{n}") };
                let options = WatchOptions::new().with_range(end);
                member.watch("watched/", Some(options)).expect("it is a range");
            }
            bencher.iter(|| {
                let put = member.put("watched/1", "value", None).expect("it is a put");
                let told = member.take_messages();
                assert_eq!(told.len(), matching);
                let revision = put.header().map_or(0, |header| header.revision());
                if revision % 1_000 == 0 {
                    member.compact(revision).expect("a new revision");
                }
                told
            });
        });
    }
    group.finish();
}

/// Leases with a key each are granted, renewed and run out.
fn leases(criterion: &mut Criterion) {
    const LEASES: usize = 1_000;
    let mut group = criterion.benchmark_group("lease");
    group.throughput(Throughput::Elements(LEASES as u64));
    let granted = || {
        let mut member = InProcess::default();
        let grant = |n| {
            let id = member.lease_grant(5, None).expect("it is new").id();
            let options = PutOptions::new().with_lease(id);
            member.put(format!("leased/{n}"), "", Some(options)).expect("the lease is there");
            id
        };
        let ids: Vec<i64> = (0..LEASES).map(grant).collect();
        (member, ids)
    };
    group.bench_function("grant, put", |bencher| bencher.iter_with_large_drop(granted));
    group.bench_function("renew", |bencher| {
        let (mut member, ids) = granted();
        bencher.iter(|| {
            for id in &ids {
                black_box(member.lease_keep_alive(*id).expect("it is known"));
            }
        });
    });
    group.bench_function("run out", |bencher| {
        bencher.iter_batched_ref(
            granted,
            |(member, _)| member.advance(Duration::from_secs(8)),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, puts, txns, watchers, leases);
criterion_main!(benches);
