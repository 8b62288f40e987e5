//! Keys and values: what the requests of the KV service do.
//!
//! `server/etcdserver/apply.go`. A refused proposal has used up its id and its index, and nothing
//! else.

use std::time::Duration;

use bytes::Bytes;

use crate::history::Cause;

use super::{
    Model,
    error::Refusal,
    range::{Range, prefix_end},
    request::{DeleteRangeRequest, PutRequest, RangeRequest, TxnRequest},
    response::{CompactionResponse, DeleteResponse, GetResponse, PutResponse, TxnResponse},
    size, txn,
};

impl Model {
    /// Answers a range request.
    pub(crate) fn range(&mut self, request: &RangeRequest) -> Result<GetResponse, Refusal> {
        txn::check_range(request)?;
        if !request.serializable {
            // A linearizable read asks the leader for its index under an id of its own.
            self.ids.next();
        }
        self.read(request)
    }

    pub(super) fn read(&self, request: &RangeRequest) -> Result<GetResponse, Refusal> {
        let found = self.store.range(request)?;
        Ok(GetResponse {
            header: Some(self.header()),
            kvs: found.kvs,
            more: found.more,
            count: found.count,
        })
    }

    pub(super) fn put(
        &mut self,
        now: Duration,
        request: PutRequest,
    ) -> Result<PutResponse, Refusal> {
        txn::check_put(&request)?;
        self.propose(size::put(&request))?;
        self.check_put_lease(&request)?;
        self.check_put_previous(&request)?;
        let response = self.apply_put(request);
        self.commit(now, Cause::Put);
        Ok(response)
    }

    pub(super) fn check_put_lease(&self, put: &PutRequest) -> Result<(), Refusal> {
        match put.lease {
            0 => Ok(()),
            lease => self.lessor.get(lease).map(|_| ()).ok_or(Refusal::LeaseNotFound),
        }
    }

    pub(super) fn check_put_previous(&self, put: &PutRequest) -> Result<(), Refusal> {
        let needed = put.ignore_value || put.ignore_lease;
        if needed && self.store.get(&put.key).is_none() {
            return Err(Refusal::KeyNotFound);
        }
        Ok(())
    }

    pub(super) fn apply_put(&mut self, put: PutRequest) -> PutResponse {
        let before = self.store.get(&put.key);
        let value = match before {
            Some(kv) if put.ignore_value => kv.value.clone(),
            _ => Bytes::from(put.value),
        };
        let lease = match before {
            Some(kv) if put.ignore_lease => kv.lease,
            _ => put.lease,
        };
        let key = before.map_or_else(|| Bytes::from(put.key), |kv| kv.key.clone());
        let prev_kv = self.store.put(key.clone(), value, lease);
        let old_lease = prev_kv.as_ref().map_or(0, |kv| kv.lease);
        if old_lease != lease {
            self.lessor.detach(old_lease, &key);
            self.lessor.attach(lease, &key);
        }
        PutResponse {
            header: Some(self.header()),
            prev_kv: if put.prev_kv { prev_kv } else { None },
        }
    }

    pub(super) fn delete_range(
        &mut self,
        now: Duration,
        request: &DeleteRangeRequest,
    ) -> Result<DeleteResponse, Refusal> {
        txn::check_delete(request)?;
        self.propose(size::delete_range(request))?;
        let response = self.apply_delete(request);
        self.commit(now, Cause::Delete);
        Ok(response)
    }

    pub(super) fn apply_delete(&mut self, request: &DeleteRangeRequest) -> DeleteResponse {
        let range = Range::new(&request.key, &request.range_end);
        let keys: Vec<Bytes> = self.store.live(&range).map(|kv| kv.key.clone()).collect();
        let mut prev_kvs = Vec::new();
        for key in &keys {
            let Some(prev) = self.store.delete(key) else { continue };
            self.lessor.detach(prev.lease, key);
            if request.prev_kv {
                prev_kvs.push(prev);
            }
        }
        DeleteResponse { header: Some(self.header()), deleted: keys.len() as i64, prev_kvs }
    }

    pub(super) fn txn(
        &mut self,
        now: Duration,
        request: TxnRequest,
    ) -> Result<TxnResponse, Refusal> {
        txn::check(&request)?;
        if request.is_write() {
            self.propose(size::txn(&request))?;
        } else {
            self.ids.next();
        }
        let response = self.execute_txn(request)?;
        self.commit(now, Cause::Txn);
        Ok(response)
    }

    pub(super) fn compact(&mut self, revision: i64) -> Result<CompactionResponse, Refusal> {
        self.propose(0)?;
        let version = self.identity.version;
        self.store.compact(revision, version.keeps_tombstone_of_compaction())?;
        Ok(CompactionResponse { header: Some(self.header()) })
    }

    /// The owner of a lock: key and lease of the live key of least create revision directly under
    /// `name/`.
    pub(crate) fn owner(&self, name: &str) -> Option<(String, i64)> {
        let prefix = format!("{name}/");
        let range = Range::new(prefix.as_bytes(), &prefix_end(prefix.as_bytes()));
        let owner = self.store.live(&range).min_by_key(|kv| kv.create_revision)?;
        Some((String::from_utf8_lossy(&owner.key).into_owned(), owner.lease))
    }
}
