//! A lock recipe that looks right and is not, to see that leasehold catches it.

use std::{future::Future, time::Duration};

use leasehold::{
    concurrency::{Session, SessionOptions},
    etcd::{self, GetOptions, PutOptions, SortOrder, SortTarget},
    testing::{Check, Grant, LockFailure, LockOptions, LockUnderTest},
    time::{Instant, sleep, timeout},
};

/// A queue of keys below the lock's name. The mistake: whoever has the first *name* goes on, not
/// whoever was there first.
struct ByName {
    client: etcd::Client,
    session: Session,
    limit: Duration,
    key: Option<String>,
}

impl LockUnderTest for ByName {
    async fn open(client: etcd::Client, options: LockOptions) -> Result<Self, LockFailure> {
        let limit = options.request_timeout;
        let options = SessionOptions {
            ttl_s: options.ttl_s,
            request_timeout: limit,
            ..SessionOptions::default()
        };
        let session = Session::new(&client, options).await?;
        Ok(ByName { client, session, limit, key: None })
    }

    async fn acquire(&mut self, name: &str, deadline: Instant) -> Result<Grant, LockFailure> {
        let key = format!("{name}/{:x}", self.session.lease());
        self.key = Some(key.clone());
        let options = PutOptions::new().with_lease(self.session.lease());
        let put = self.client.put(key.clone(), "", Some(options));
        let put = in_time(self.limit, put).await?;
        let token = put.header().map_or(0, |header| header.revision());
        while Instant::now() < deadline {
            let first = GetOptions::new()
                .with_prefix()
                .with_sort(SortTarget::Key, SortOrder::Ascend)
                .with_limit(1);
            let queue = self.client.get(format!("{name}/"), Some(first));
            let queue = in_time(self.limit, queue).await?;
            if queue.kvs().first().is_some_and(|first| first.key() == key.as_bytes()) {
                return Ok(Grant { key, token });
            }
            sleep(Duration::from_millis(50)).await;
        }
        let _ = self.release().await;
        Err(LockFailure::definite("not within the deadline"))
    }

    async fn release(&mut self) -> Result<(), LockFailure> {
        let key = self.key.take().ok_or_else(|| LockFailure::definite("nothing is held"))?;
        in_time(self.limit, self.client.delete(key, None)).await?;
        Ok(())
    }

    fn clean_up(&self) -> Duration {
        self.limit * 2
    }

    fn lease(&self) -> i64 {
        self.session.lease()
    }

    fn ttl_s(&self) -> i64 {
        self.session.ttl_s()
    }

    fn is_live(&self) -> bool {
        self.session.is_live()
    }

    fn deadline(&self) -> Instant {
        self.session.deadline()
    }

    async fn close(&mut self) -> Result<(), LockFailure> {
        Ok(self.session.close().await?)
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

#[test]
fn a_queue_by_name_is_caught() {
    Check::new().lock::<ByName>().seeds(0..50).assert_violates("grant-validity");
}

/// The same without any fault: two clients suffice.
#[test]
fn it_needs_no_fault() {
    Check::new()
        .scenario("calm")
        .clients(2)
        .lock::<ByName>()
        .seeds(0..20)
        .assert_violates("grant-validity");
}
