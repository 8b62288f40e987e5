//! The lock service of the member.
//!
//! `server/etcdserver/api/v3lock/lock.go` over `client/v3/concurrency/mutex.go`. The key of least
//! create revision under `name/` holds the lock, whoever put it there. The versions differ in one
//! thing: after a wait 3.5 looks whether the call's own key is still there, and 3.4 does not (etcd
//! issue 11456), so a waiter whose lease has ended is told in 3.4 that it holds the lock.

use std::time::Duration;

use super::{
    Answer, Model, StreamId,
    error::Refusal,
    request::RequestOp,
    response::{LockResponse, Response, ResponseHeader, UnlockResponse},
    service::{
        Place, Purpose, delete, first_created, first_pair, if_created_at, key_of, of_key, put,
    },
    version::EtcdVersion,
};

impl Model {
    /// Answers a lock call, or lets it wait. Calls with one lease share one key: they are one
    /// acquisition.
    pub(super) fn lock(
        &mut self,
        now: Duration,
        stream: StreamId,
        name: &[u8],
        lease: i64,
    ) -> Option<Answer> {
        match self.enqueue(now, name, lease) {
            Err(refusal) => Some(Err(refusal.in_service())),
            Ok((header, place, owner)) if owner == Some(place.revision) => {
                Some(Ok(Response::Lock(LockResponse { header, key: place.key })))
            }
            Ok((_, place, _)) => self.take_turn(stream, place, Purpose::Lock),
        }
    }

    /// The place of a call, and the create revision of the owner (`tryAcquire` in `mutex.go`).
    fn enqueue(
        &mut self,
        now: Duration,
        name: &[u8],
        lease: i64,
    ) -> Result<(Option<ResponseHeader>, Place, Option<i64>), Refusal> {
        let lease = self.session(now, lease)?;
        let (prefix, key) = key_of(name, lease);
        let get_owner = || RequestOp::Range(first_created(&prefix));
        let success = vec![put(&key, Vec::new(), lease), get_owner()];
        let failure = vec![RequestOp::Range(of_key(&key)), get_owner()];
        let response = self.txn(now, if_created_at(&key, 0, success, failure))?;
        let known = first_pair(response.responses.first()).map(|own| own.create_revision);
        let created = response.header.map_or(0, |header| header.revision);
        let owner = first_pair(response.responses.get(1)).map(|owner| owner.create_revision);
        let place = Place { prefix, key, revision: known.unwrap_or(created) };
        Ok((response.header, place, owner))
    }

    /// Nothing is before the call any more; `header` is of the read that found that out.
    pub(super) fn after_waiting(
        &mut self,
        place: Place,
        header: Option<ResponseHeader>,
    ) -> Result<LockResponse, Refusal> {
        if self.identity.version < EtcdVersion::V3_5 {
            return Ok(LockResponse { header, key: place.key });
        }
        let own = self.range(&of_key(&place.key)).map_err(Refusal::in_service)?;
        match own.kvs.is_empty() {
            true => Err(Refusal::SessionExpired),
            false => Ok(LockResponse { header: own.header, key: place.key }),
        }
    }

    /// Deletes a key: any key, and one that does not exist just as well.
    pub(super) fn unlock(&mut self, now: Duration, key: &[u8]) -> Result<UnlockResponse, Refusal> {
        let deleted = self.delete_range(now, &delete(key)).map_err(Refusal::in_service)?;
        Ok(UnlockResponse { header: deleted.header })
    }
}
