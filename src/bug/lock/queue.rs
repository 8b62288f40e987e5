//! What the plain lock asks of etcd.

use std::time::Duration;

use super::{
    LockPolicy, Turn,
    session::{Session, within},
};
use crate::{
    etcd::{
        self, Compare, CompareOp, EventType, GetOptions, PutOptions, SortOrder, SortTarget, Txn,
        TxnOp, TxnOpResponse, WatchOptions,
    },
    system::LockFailure,
    time::sleep,
};

/// The queue as it was read: keys with their create revisions, the first first.
pub(super) struct Queue {
    pub(super) revision: i64,
    /// The term of etcd's leader.
    pub(super) term: u64,
    pub(super) keys: Vec<(String, i64)>,
}

/// Puts the own key, or finds it; its create revision, and what the answer says of etcd.
pub(super) async fn enqueue<P: LockPolicy>(
    session: &Session<P>,
    policy: &P,
    key: &str,
) -> Result<Turn, LockFailure> {
    let options = PutOptions::new().with_lease(policy.lease_of_key(session.lease));
    let txn = Txn::new()
        .when([Compare::create_revision(key, CompareOp::Equal, 0)])
        .and_then([TxnOp::put(key, "", Some(options)), TxnOp::get(key, None)])
        .or_else([TxnOp::get(key, None)]);
    loop {
        let mut client = session.client.clone();
        let asked = within(session.request_timeout, async { Ok(client.txn(txn.clone()).await?) });
        let Ok(reply) = asked.await else {
            if !session.is_live() {
                return Err(LockFailure::unknown("the session is over"));
            }
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (header_revision, term) = told(reply.header());
        let Some(TxnOpResponse::Get(own)) = reply.op_responses().pop() else { continue };
        if let Some(own) = own.kvs().first() {
            let create_revision = own.create_revision();
            return Ok(Turn { create_revision, header_revision, term });
        }
    }
}

/// The revision and the term of a header.
fn told(header: Option<&etcd::ResponseHeader>) -> (i64, u64) {
    header.map_or((0, 0), |header| (header.revision(), header.raft_term()))
}

/// Reads the queue.
pub(super) async fn read<P: LockPolicy>(
    session: &Session<P>,
    name: &str,
    by: SortTarget,
) -> Result<Queue, LockFailure> {
    loop {
        if let Ok(queue) = read_once(session.detached(), name, by).await {
            return Ok(queue);
        }
        if !session.is_live() {
            return Err(LockFailure::unknown("the session is over"));
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Reads the queue, or fails; also for a session that may be gone.
pub(super) async fn read_once(
    (mut client, limit): (etcd::Client, Duration),
    name: &str,
    by: SortTarget,
) -> Result<Queue, LockFailure> {
    let options = GetOptions::new().with_prefix().with_sort(by, SortOrder::Ascend);
    let get = async { Ok(client.get(format!("{name}/"), Some(options)).await?) };
    let reply = within(limit, get).await?;
    let key =
        |kv: &etcd::KeyValue| (String::from_utf8_lossy(kv.key()).into(), kv.create_revision());
    let (revision, term) = told(reply.header());
    Ok(Queue { revision, term, keys: reply.kvs().iter().map(key).collect() })
}

/// Waits until one of the two keys is deleted, or the watch breaks.
pub(super) async fn wait_for_delete<P: LockPolicy>(
    session: &Session<P>,
    before: &str,
    own: &str,
    from: Option<i64>,
) {
    let options = from.map(|from| WatchOptions::new().with_start_revision(from));
    let mut client = session.client.clone();
    let opened = within(session.request_timeout, async {
        let mut stream = client.watch(before, options.clone()).await?;
        stream.watch(own, options).await?;
        Ok(stream)
    });
    let Ok(mut stream) = opened.await else {
        return sleep(Duration::from_millis(100)).await;
    };
    while let Ok(Some(reply)) = stream.message().await {
        let deleted = |event: &etcd::Event| event.event_type() == EventType::Delete;
        if reply.canceled() || reply.events().iter().any(deleted) {
            return;
        }
    }
    sleep(Duration::from_millis(100)).await;
}

/// Deletes a key if it has this create revision; 0 is any.
pub(super) async fn delete<P: LockPolicy>(
    session: &Session<P>,
    key: &str,
    revision: i64,
) -> Result<(), LockFailure> {
    delete_with(session.detached(), key, revision).await
}

/// As [`delete`], when the session may be gone.
pub(super) async fn delete_with(
    (mut client, limit): (etcd::Client, Duration),
    key: &str,
    revision: i64,
) -> Result<(), LockFailure> {
    let mut txn = Txn::new();
    if revision != 0 {
        txn = txn.when([Compare::create_revision(key, CompareOp::Equal, revision)]);
    }
    let txn = txn.and_then([TxnOp::delete(key, None)]);
    within(limit, async { client.txn(txn).await.map(|_| ()).map_err(Into::into) }).await
}
