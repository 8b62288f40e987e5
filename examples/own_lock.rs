//! A lock recipe of your own, on etcd's Lock RPC, that looks right and is not: it renews its lease
//! in the background, and believes in it whatever becomes of that.
//! Run it with `cargo run --release --example own_lock`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::{
    etcd,
    testing::{Check, Grant, LockFailure, LockOptions, LockUnderTest, explain},
    time::{Instant, sleep, timeout},
};

/// A session with its lease, and the key that the Lock RPC gave.
pub struct Hopeful {
    client: etcd::Client,
    lease: i64,
    ttl: Duration,
    /// When the newest renewal that got an answer was asked for.
    renewed: Arc<Mutex<Instant>>,
    key: Option<Vec<u8>>,
}

impl LockUnderTest for Hopeful {
    async fn open(mut client: etcd::Client, options: LockOptions) -> Result<Self, LockFailure> {
        let renewed = Arc::new(Mutex::new(Instant::now()));
        let grant = in_time(options.request_timeout, client.lease_grant(options.ttl_s, None));
        let grant = grant.await?;
        let (lease, ttl) = (grant.id(), Duration::from_secs(grant.ttl().unsigned_abs()));
        let (mut renewing, newest) = (client.clone(), renewed.clone());
        tokio::spawn(async move {
            loop {
                sleep(ttl / 3).await;
                let asked = Instant::now();
                if renewing.lease_keep_alive(lease).await.is_err() {
                    // The first mistake: nobody is told.
                    return;
                }
                *newest.lock().expect("nobody panics with it") = asked;
            }
        });
        Ok(Hopeful { client, lease, ttl, renewed, key: None })
    }

    fn lease(&self) -> i64 {
        self.lease
    }

    fn ttl_s(&self) -> i64 {
        self.ttl.as_secs() as i64
    }

    async fn acquire(&mut self, name: &str, deadline: Instant) -> Result<Grant, LockFailure> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let options = etcd::LockOptions::new().with_lease(self.lease);
        let locked = in_time(limit, self.client.lock(name, Some(options))).await?;
        let key = locked.key().to_vec();
        // The token is right: the create revision of the owner key.
        let read = in_time(Duration::from_secs(2), self.client.get(key.clone(), None)).await?;
        let own = read.kvs().first().ok_or_else(|| LockFailure::definite("the key is gone"))?;
        let grant =
            Grant { key: String::from_utf8_lossy(&key).into_owned(), token: own.create_revision() };
        self.key = Some(key);
        Ok(grant)
    }

    /// The token is read after the lock is there.
    fn clean_up(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn is_live(&self) -> bool {
        // The second: nobody looks at the deadline either.
        true
    }

    fn deadline(&self) -> Instant {
        *self.renewed.lock().expect("nobody panics with it") + self.ttl
    }

    async fn release(&mut self) -> Result<(), LockFailure> {
        let key = self.key.take().ok_or_else(|| LockFailure::definite("nothing is held"))?;
        in_time(Duration::from_secs(2), self.client.unlock(key)).await?;
        Ok(())
    }

    async fn close(&mut self) -> Result<(), LockFailure> {
        in_time(Duration::from_secs(2), self.client.lease_revoke(self.lease)).await?;
        Ok(())
    }
}

/// An answer of etcd, or a failure of unknown outcome.
async fn in_time<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, etcd::Error>>,
) -> Result<T, LockFailure> {
    match timeout(limit, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(LockFailure::unknown(format!("no answer within {limit:?}"))),
    }
}

/// Status 0 if the harness caught the lock.
pub fn main() -> ExitCode {
    let summary = match Check::new().lock::<Hopeful>().seeds(0..300).run() {
        Ok(summary) => summary,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if summary.violations == 0 {
        println!("no violation in {} runs", summary.runs);
        return ExitCode::FAILURE;
    }
    println!("{}", explain(&summary));
    for (checker, (runs, first)) in &summary.caught {
        println!("caught by {checker} in {runs} of {} runs, first seed {first}", summary.runs);
    }
    ExitCode::SUCCESS
}
