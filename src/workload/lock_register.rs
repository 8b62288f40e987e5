//! `lock_register`: acquire, enter, read-modify-write two keys under the token, release; and
//! `leader_register`, the same with an election instead of the lock.
//!
//! It is what a careful user of an etcd lock does: it enters before it relies on any state, asks
//! its session before each write whether the lock is still held, and gives up when it is not. The
//! window between that question and the write is the one that only fencing can close.

use std::time::Duration;

use super::{
    Process, Workload,
    client::{Told, life},
};
use crate::{
    etcd,
    history::{EventKind, Function, HoldingId, OpId, Reply},
    point,
    storage::{self, ClientOptions},
    system::{Lock, LockOptions, Recipe},
    time::{self, Instant, sleep},
};

/// Two keys: a mark per key instead of per domain would let an old holder write the second.
const KEYS: [&str; 2] = ["key0", "key1"];

pub(super) const LOCK_REGISTER: Workload = Workload {
    name: "lock_register",
    keys: &KEYS,
    recipe: Recipe::Mutex,
    thinkers: 150,
    client: |process| life(run(process)),
};
pub(super) const LEADER_REGISTER: Workload =
    Workload { name: "leader_register", recipe: Recipe::Election, ..LOCK_REGISTER };
pub(super) const SLOW_REGISTER: Workload =
    Workload { name: "slow_register", thinkers: 900, ..LOCK_REGISTER };

/// Why a holding ended early.
enum GaveUp {
    /// The session's time is over.
    Lost,
    /// The storage refused or did not answer.
    Storage,
    /// etcd refused or did not answer.
    Lock,
}

async fn run(mut process: Process) {
    let storage_options = ClientOptions {
        attempt_timeout: Duration::from_millis(800),
        give_up_after: Duration::from_millis(2500),
        retry_pause: Duration::from_millis(50),
    };
    let mut storage = match storage::Client::new(&process.storage_url, storage_options) {
        Ok(storage) => storage,
        Err(error) => panic!("the harness made a wrong URL: {error}"),
    };
    let mut left = if process.holdings == 0 { u32::MAX } else { process.holdings };
    while !process.is_stopped() {
        if left == 0 {
            sleep(ms(500)).await;
            continue;
        }
        let Some(client) = connect(&mut process).await else { continue };
        let Some(mut lock) = open_session(&mut process, client.clone()).await else { continue };
        if process.announces {
            announce(&process, client, lock.lease()).await;
        }
        let holdings = process.stream.between(1, 4);
        for _ in 0..holdings {
            if process.is_stopped() || !lock.is_live() || left == 0 {
                break;
            }
            left -= 1;
            if hold(&mut process, lock.as_mut(), &mut storage).await.is_err() {
                break;
            }
            let pause = process.stream.duration(ms(20), ms(700));
            sleep(pause).await;
        }
        close_session(&mut process, lock.as_mut()).await;
    }
    process.finish_life();
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

async fn connect(process: &mut Process) -> Option<etcd::Client> {
    let options = etcd::ConnectOptions::new()
        .with_connect_timeout(Duration::from_secs(1))
        .with_timeout(Duration::from_secs(2));
    match etcd::Client::connect(&process.etcd_endpoints, Some(options)).await {
        Ok(client) => Some(client),
        Err(_) => {
            sleep(ms(200)).await;
            None
        }
    }
}

async fn open_session(process: &mut Process, client: etcd::Client) -> Option<Box<dyn Lock>> {
    let ttl_s = ttl_s(process);
    let options = LockOptions { ttl_s, request_timeout: ms(1000) };
    let opened = process
        .run(
            None,
            Function::OpenSession { ttl_s },
            async |_| process.make_lock.open(client, options).await,
            |lock| Reply::Session { lease: lock.lease(), ttl_s: lock.ttl_s() },
        )
        .await;
    match opened {
        Ok((_, lock)) => Some(lock),
        Err(_) => {
            sleep(ms(100)).await;
            None
        }
    }
}

/// The lifetime to ask for. Most are short, to run out within the run; in a long one a lost renewal
/// can be made good.
fn ttl_s(process: &mut Process) -> i64 {
    if process.ttl_s > 0 {
        return i64::from(process.ttl_s);
    }
    let long = process.stream.chance(250);
    process.stream.between(if long { 6 } else { 2 }, if long { 9 } else { 4 }) as i64
}

/// Says under its lease that it is there, as members of a service do: its lease has more than one
/// key. Nobody waits for it, and nothing depends on it.
async fn announce(process: &Process, mut client: etcd::Client, lease: i64) {
    let options = etcd::PutOptions::new().with_lease(lease);
    let key = format!("/members/{}", process.node);
    if let Err(error) = client.put(key, "", Some(options)).await {
        tracing::debug!(%error, "not announced");
    }
}

async fn close_session(process: &mut Process, lock: &mut dyn Lock) {
    let close = async |_| lock.close().await;
    // Whatever came of it, the session is not used again; its lease ends by itself.
    let _ = process.run(None, Function::CloseSession, close, |()| Reply::Done).await;
}

/// One holding, from the lock to its release.
async fn hold(
    process: &mut Process,
    lock: &mut dyn Lock,
    storage: &mut storage::Client,
) -> Result<(), GaveUp> {
    let name = process.lock.clone();
    let holding = process.ids.holding();
    let started = Instant::now();
    let deadline = started + patience(process);
    let mut asked = None;
    let acquired = process
        .run(
            Some(holding),
            Function::Lock { name: name.clone() },
            async |op| {
                asked = Some(op);
                lock.acquire(&name, deadline).await
            },
            |grant| Reply::Acquired { key: grant.key.clone(), token: grant.token },
        )
        .await;
    if let Some(op) = asked {
        ended(process, op, (started, deadline), lock.clean_up());
    }
    let Ok((_, grant)) = acquired else { return Err(GaveUp::Lock) };
    // Nothing can come between the acquire and this: a lock may not be given out when it is lost.
    still_held(process, lock, holding);
    point::reach("client.after_lock").await;
    let worked = work(process, lock, storage, holding, grant.token).await;
    match worked {
        Err(GaveUp::Lost) => {
            process.record(EventKind::LossNoticed { holding });
            return Err(GaveUp::Lost);
        }
        Err(_) if !lock.is_live() => {
            process.record(EventKind::LossNoticed { holding });
            return Err(GaveUp::Lost);
        }
        Ok(()) | Err(_) => {}
    }
    point::reach("client.before_unlock").await;
    let unlock = async |_| lock.release().await;
    let unlocked =
        process.run(Some(holding), Function::Unlock { name }, unlock, |()| Reply::Done).await;
    match (worked, unlocked) {
        (Err(gave_up), _) => Err(gave_up),
        // Some go on with the session: it must not take the old place for a new one.
        (Ok(()), Err(_)) if lock.is_live() && process.stream.chance(500) => Ok(()),
        (Ok(()), Err(_)) => Err(GaveUp::Lock),
        (Ok(()), Ok(_)) => Ok(()),
    }
}

/// How long a client waits for the lock: some give up before a lease runs out, most never.
fn patience(process: &mut Process) -> Duration {
    if process.stream.chance(250) {
        process.stream.duration(ms(500), ms(6000))
    } else {
        Duration::from_secs(60)
    }
}

/// Records that a call with a deadline has ended, by the node's own clock.
fn ended(process: &Process, op: OpId, times: (Instant, Instant), clean_up: Duration) {
    let local_ns = |at| process.witness.local_ns(at);
    process.record(EventKind::Deadline {
        op,
        started_ns: local_ns(times.0),
        deadline_ns: local_ns(times.1),
        ended_ns: local_ns(Instant::now()),
        cleanup_ns: clean_up.as_nanos() as u64,
    });
}

async fn work(
    process: &mut Process,
    lock: &dyn Lock,
    storage: &mut storage::Client,
    holding: HoldingId,
    token: i64,
) -> Result<(), GaveUp> {
    let mut fenced = storage.holding(&process.domain, token);
    let enter = Function::Enter { domain: process.domain.clone(), key: KEYS[0].into() };
    let entered = process
        .run(
            Some(holding),
            enter,
            async |op: OpId| {
                fenced.enter(KEYS[0], Some(op.0)).await.map_err(|error| process.told(error))
            },
            |value| Reply::Value(value.clone()),
        )
        .await;
    let mut base = Some(entered.map_err(|_| GaveUp::Storage)?);
    point::reach("client.after_enter").await;
    if process.stream.chance(process.thinkers) {
        // A holder that thinks before it writes: so far it has only read.
        let thought = process.stream.duration(ms(300), ms(2000));
        sleep(thought).await;
    }
    // Without readers nothing is drawn: a case of before there were any is the same run.
    let reads_only = process.readers > 0 && process.stream.chance(process.readers.into());
    for key in KEYS {
        let pause = process.stream.duration(ms(2), ms(120));
        sleep(pause).await;
        let (read, value) = match base.take() {
            Some(entered) => entered,
            None => read(process, &mut fenced, holding, key).await.map_err(|_| GaveUp::Storage)?,
        };
        if !still_held(process, lock, holding) {
            return Err(GaveUp::Lost);
        }
        if reads_only {
            continue;
        }
        point::reach("client.before_write").await;
        if !process.linger.is_zero() {
            let linger = process.stream.duration(Duration::ZERO, process.linger);
            sleep(linger).await;
        }
        let written = write(process, &mut fenced, holding, key, read, value.as_deref()).await;
        written.map_err(|_| GaveUp::Storage)?;
        point::reach("client.after_write").await;
    }
    Ok(())
}

/// Asks the lock, and records what it said beside the node's own clock. The clock is read first:
/// a process that is stopped between the two has asked no earlier than that.
fn still_held(process: &Process, lock: &dyn Lock, holding: HoldingId) -> bool {
    let local_ns = process.witness.local_ns(Instant::now());
    let held = lock.is_live();
    let deadline_ns = process.witness.local_ns(lock.deadline());
    process.record(EventKind::Held { holding, held, local_ns, deadline_ns });
    held
}

async fn read(
    process: &Process,
    fenced: &mut storage::Holding<'_>,
    holding: HoldingId,
    key: &str,
) -> Result<(OpId, Option<String>), Told> {
    let f = Function::Read { domain: process.domain.clone(), key: key.into() };
    let read =
        async |op: OpId| fenced.read(key, Some(op.0)).await.map_err(|error| process.told(error));
    process.run(Some(holding), f, read, |value| Reply::Value(value.clone())).await
}

/// Writes the next count. The value says whose it is, so that no two are alike, and when, by the
/// wall clock of its writer.
async fn write(
    process: &Process,
    fenced: &mut storage::Holding<'_>,
    holding: HoldingId,
    key: &str,
    based_on: OpId,
    base: Option<&str>,
) -> Result<OpId, Told> {
    let count = base.and_then(|value| value.split(':').next()?.parse().ok()).unwrap_or(0u64) + 1;
    let value = format!("{count}:{holding} {key} at {}", time::wall_ms());
    let f = Function::Write {
        domain: process.domain.clone(),
        key: key.into(),
        value: value.clone(),
        based_on: Some(based_on),
    };
    let write = async |op: OpId| {
        fenced.write(key, &value, Some(op.0)).await.map_err(|error| process.told(error))
    };
    process.run(Some(holding), f, write, |_| Reply::Done).await.map(|(op, _)| op)
}

/// The final reads: a read without a token.
pub(crate) async fn final_read(
    process: &Process,
    storage: &mut storage::Client,
    key: &str,
) -> bool {
    let f = Function::FinalRead { domain: process.domain.clone(), key: key.into() };
    let read = async |op: OpId| {
        let read = storage.read_unfenced(&process.domain, key, Some(op.0)).await;
        read.map_err(|error| process.told(error))
    };
    process.run(None, f, read, |value| Reply::Value(value.clone())).await.is_ok()
}
