//! What a lock asks of etcd: the transactions on the queue, and the wait for a predecessor.
//!
//! After etcd's `concurrency/mutex.go` and `key.go`. Two differences, both for the waiter: it reads
//! its own key and its predecessor in one transaction, so that "I own it" is true at one revision;
//! and it watches its own key beside the predecessor's, so that it ends when that is gone.

use super::{error::LockError, session::Shared};
use crate::{
    etcd::{
        Client, Compare, CompareOp, Error, EventType, GetOptions, GetResponse, KeyValue,
        PutOptions, ResponseHeader, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse,
        WatchOptions, WatchStream,
    },
    time::timeout,
};

/// Creates the own key unless it is there; in both cases reads it and the owner's. One request, as
/// in Go: if the second read shows the own key, the lock is held.
pub(super) fn enqueue(prefix: &str, key: &str, value: &[u8], lease: i64) -> Txn {
    let put = TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease)));
    let read_own = TxnOp::get(key, None);
    let read_owner = TxnOp::get(prefix, Some(first_created()));
    Txn::new()
        .when([Compare::create_revision(key, CompareOp::Equal, 0)])
        .and_then([put, read_owner.clone()])
        .or_else([read_own, read_owner])
}

/// Under a prefix, the owner's key.
fn first_created() -> GetOptions {
    GetOptions::new().with_prefix().with_sort(SortTarget::Create, SortOrder::Ascend).with_limit(1)
}

/// The owner's key, if the queue is not empty, and the revision at which it was read.
pub(super) async fn owner(
    mut client: Client,
    prefix: &str,
) -> Result<(i64, Option<KeyValue>), Error> {
    let reply = client.get(prefix, Some(first_created())).await?;
    let revision = reply.header().map_or(0, |header| header.revision());
    Ok((revision, reply.kvs().first().cloned()))
}

/// The answer to [`enqueue`].
#[derive(Debug)]
pub(super) struct Enqueued {
    /// The answer's header.
    pub(super) header: ResponseHeader,
    /// Create revision of the own key.
    pub(super) revision: i64,
    /// Its mod revision.
    pub(super) mod_revision: i64,
    /// The value with which it was met; none if this request created it.
    pub(super) met: Option<Vec<u8>>,
    /// It is the owner's.
    pub(super) first: bool,
}

impl Enqueued {
    pub(super) fn read(reply: &TxnResponse, key: &str) -> Result<Self, LockError> {
        let created = reply.succeeded();
        let header = reply.header().cloned().ok_or(LockError::Answer("no header"))?;
        let answers = reply.op_responses();
        let (revision, mod_revision, met) = match answers.first() {
            Some(TxnOpResponse::Put(_)) if created => (header.revision(), header.revision(), None),
            Some(TxnOpResponse::Get(own)) if !created => {
                let own = own.kvs().first().ok_or(LockError::Answer("no own key"))?;
                (own.create_revision(), own.mod_revision(), Some(own.value().to_vec()))
            }
            _ => return Err(LockError::Answer("not the operations that were asked for")),
        };
        let Some(TxnOpResponse::Get(owner)) = answers.get(1) else {
            return Err(LockError::Answer("no owner"));
        };
        let owner = owner.kvs().first().ok_or(LockError::Answer("no owner"))?;
        let first = owner.key() == key.as_bytes();
        Ok(Enqueued { header, revision, mod_revision, met, first })
    }
}

/// Gives this incarnation of the key another value, unless it has changed since `seen`, its mod
/// revision; then reads it. With a comparison of the create revision alone, as in Go, an attempt
/// whose answer was lost could land late and undo a newer value.
pub(super) fn proclaim(key: &str, revision: i64, seen: i64, value: &[u8], lease: i64) -> Txn {
    Txn::new()
        .when([
            Compare::create_revision(key, CompareOp::Equal, revision),
            Compare::mod_revision(key, CompareOp::Equal, seen),
        ])
        .and_then([TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease)))])
        .or_else([TxnOp::get(key, None)])
}

/// The answer to [`proclaim`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Proclaimed {
    /// The key has the value; with its mod revision.
    Done(i64),
    /// The key has another value, with this mod revision.
    Changed(i64),
    /// The incarnation is gone.
    Gone,
}

impl Proclaimed {
    pub(super) fn read(
        reply: &TxnResponse,
        revision: i64,
        value: &[u8],
    ) -> Result<Self, LockError> {
        if reply.succeeded() {
            let header = reply.header().ok_or(LockError::Answer("no header"))?;
            return Ok(Proclaimed::Done(header.revision()));
        }
        let answers = reply.op_responses();
        let Some(TxnOpResponse::Get(own)) = answers.first() else {
            return Err(LockError::Answer("not the operations that were asked for"));
        };
        Ok(match own.kvs().first() {
            Some(own) if own.create_revision() != revision => Proclaimed::Gone,
            None => Proclaimed::Gone,
            Some(own) if own.value() == value => Proclaimed::Done(own.mod_revision()),
            Some(own) => Proclaimed::Changed(own.mod_revision()),
        })
    }
}

/// Deletes this incarnation of the key and no other. Definite whatever it answers: afterwards the
/// incarnation is gone.
pub(super) fn delete_incarnation(key: &str, revision: i64) -> Txn {
    Txn::new()
        .when([Compare::create_revision(key, CompareOp::Equal, revision)])
        .and_then([TxnOp::delete(key, None)])
}

/// The store's revision, and the create revision of the own key, if it is there.
pub(super) async fn own_revision(
    mut client: Client,
    key: &str,
) -> Result<(i64, Option<i64>), Error> {
    let reply = client.get(key, None).await?;
    let revision = reply.header().map_or(0, |header| header.revision());
    Ok((revision, first_revision(&reply)))
}

/// Reads the own key and the one just before it, at one revision.
pub(super) fn look(prefix: &str, key: &str, revision: i64) -> Txn {
    let before = GetOptions::new()
        .with_prefix()
        .with_sort(SortTarget::Create, SortOrder::Descend)
        .with_limit(1)
        .with_max_create_revision(revision - 1);
    Txn::new().and_then([TxnOp::get(key, None), TxnOp::get(prefix, Some(before))])
}

/// The answer to [`look`].
#[derive(Debug)]
pub(super) struct View {
    /// The answer's header.
    pub(super) header: ResponseHeader,
    /// The store's revision that this is a picture of.
    pub(super) revision: i64,
    /// Create revision of the own key, if it is there.
    pub(super) own: Option<i64>,
    /// The key to wait for; none: the own key is first.
    pub(super) predecessor: Option<Vec<u8>>,
}

impl View {
    pub(super) fn read(reply: &TxnResponse) -> Result<Self, LockError> {
        let header = reply.header().cloned().ok_or(LockError::Answer("no header"))?;
        let answers = reply.op_responses();
        let [TxnOpResponse::Get(own), TxnOpResponse::Get(before)] = answers.as_slice() else {
            return Err(LockError::Answer("not the operations that were asked for"));
        };
        let predecessor = before.kvs().first().map(|kv| kv.key().to_vec());
        Ok(View { revision: header.revision(), header, own: first_revision(own), predecessor })
    }
}

fn first_revision(reply: &GetResponse) -> Option<i64> {
    reply.kvs().first().map(|kv| kv.create_revision())
}

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The predecessor was deleted: the queue has to be read again.
    Deleted,
    /// The own key was deleted. Whatever is found under it later is another incarnation.
    Expelled,
    /// The watch was cancelled, compacted, broken, or did not come about: as `Deleted`.
    Broken,
}

/// Waits until the predecessor is deleted, or the own key if there is one to watch. The watch
/// begins right behind the picture that named the predecessor: a later start could miss its delete
/// (python-etcd3 #1107).
pub(super) async fn wait_for_delete(shared: &Shared, own: Option<&str>, view: &View) -> Wake {
    let Some(predecessor) = &view.predecessor else { return Wake::Deleted };
    match first_deleted(shared, predecessor, own, view.revision + 1).await {
        None => Wake::Broken,
        Some(key) if own.is_some_and(|own| own.as_bytes() == key) => Wake::Expelled,
        Some(_) => Wake::Deleted,
    }
}

/// Watches a key, and perhaps another one, from a revision on: which of them is deleted first.
/// `None` if the watch was cancelled, compacted, broken, or did not come about.
pub(super) async fn first_deleted(
    shared: &Shared,
    key: &[u8],
    beside: Option<&str>,
    start: i64,
) -> Option<Vec<u8>> {
    let lease = shared.lease();
    let opening = watch(shared.client(), key, beside, start);
    let mut stream = match timeout(shared.options().request_timeout, opening).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(lease, %error, "watch not opened");
            return None;
        }
        Err(_) => return None,
    };
    loop {
        let reply = match stream.message().await {
            Ok(Some(reply)) if !reply.canceled() => reply,
            Ok(_) => return None,
            Err(error) => {
                tracing::debug!(lease, %error, "watch broke");
                return None;
            }
        };
        let mut events = reply.events().iter();
        if let Some(event) = events.find(|event| event.event_type() == EventType::Delete) {
            return event.kv().map(|kv| kv.key().to_vec());
        }
    }
}

async fn watch(
    mut client: Client,
    key: &[u8],
    beside: Option<&str>,
    start: i64,
) -> Result<WatchStream, Error> {
    let options = WatchOptions::new().with_start_revision(start);
    let mut stream = client.watch(key, Some(options.clone())).await?;
    if let Some(beside) = beside {
        stream.watch(beside, Some(options)).await?;
    }
    Ok(stream)
}
