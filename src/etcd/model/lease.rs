//! The lessor: grant, renew, revoke, expire (etcd server/lease/lessor.go).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;

use super::{Effects, Model, wire::Failure};
use crate::history::{Cause, LeaseChange};

/// Three election ticks halved, 1.5 s by default, in whole seconds: no lease lives shorter.
const TTL_MIN_S: i64 = 2;
/// etcd refuses longer leases.
const TTL_MAX_S: i64 = 9_000_000_000;

#[derive(Debug)]
struct Lease {
    ttl_s: i64,
    /// On the member's monotonic clock.
    expires: Duration,
    keys: BTreeSet<Bytes>,
}

impl Lease {
    fn refresh(&mut self, now: Duration) {
        self.expires = now + Duration::from_secs(self.ttl_s.unsigned_abs());
    }
}

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Leases {
    all: BTreeMap<i64, Lease>,
}

impl Leases {
    pub(super) fn exists(&self, lease: i64) -> bool {
        self.all.contains_key(&lease)
    }

    pub(super) fn attach(&mut self, lease: i64, key: &Bytes) {
        if let Some(lease) = self.all.get_mut(&lease) {
            lease.keys.insert(key.clone());
        }
    }

    pub(super) fn detach(&mut self, lease: i64, key: &Bytes) {
        if let Some(lease) = self.all.get_mut(&lease) {
            lease.keys.remove(key);
        }
    }

    pub(super) fn refresh_all(&mut self, now: Duration) {
        self.all.values_mut().for_each(|lease| lease.refresh(now));
    }
}

/// What a renewal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// Renewed for this many seconds.
    Renewed(i64),
    /// It has run out and will be revoked: the answer waits for that.
    Expired,
    /// There is none.
    Gone,
}

/// What is known of a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TimeToLive {
    /// Remaining whole seconds; -1 if there is no such lease.
    pub(crate) ttl_s: i64,
    /// Granted seconds.
    pub(crate) granted_s: i64,
    /// Its keys, in order.
    pub(crate) keys: Vec<Bytes>,
}

impl Model {
    /// Grants a lease; `id` 0 lets the member choose. Gives the id and the granted time to live.
    pub(crate) fn lease_grant(
        &mut self,
        id: i64,
        ttl_s: i64,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(i64, i64), Failure> {
        let id = if id == 0 { self.next_id() } else { id };
        self.next_id();
        if ttl_s > TTL_MAX_S {
            return Err(Failure::LeaseTtlTooLarge);
        }
        if self.leases.exists(id) {
            return Err(Failure::LeaseExists);
        }
        let ttl_s = ttl_s.max(TTL_MIN_S);
        let mut lease = Lease { ttl_s, expires: now, keys: BTreeSet::new() };
        lease.refresh(now);
        self.leases.all.insert(id, lease);
        Model::note_lease(id, LeaseChange::Granted { ttl_s }, now, effects);
        Ok((id, ttl_s))
    }

    /// Renews a lease. One that has run out is not revived, though its keys are still there.
    pub(crate) fn lease_renew(&mut self, id: i64, now: Duration, effects: &mut Effects) -> Renewal {
        let Some(lease) = self.leases.all.get_mut(&id) else { return Renewal::Gone };
        if lease.expires <= now {
            return Renewal::Expired;
        }
        lease.refresh(now);
        let ttl_s = lease.ttl_s;
        Model::note_lease(id, LeaseChange::Renewed, now, effects);
        Renewal::Renewed(ttl_s)
    }

    /// Revokes a lease: its keys are deleted in their order, in one revision.
    pub(crate) fn lease_revoke(
        &mut self,
        id: i64,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        self.next_id();
        self.end_lease(id, (Cause::Revoke(id), LeaseChange::Revoked), now, effects)
    }

    /// Revokes the leases that have run out, each in a revision of its own.
    pub(crate) fn expire(&mut self, now: Duration, effects: &mut Effects) -> Vec<i64> {
        let mut due: Vec<(Duration, i64)> = self
            .leases
            .all
            .iter()
            .filter(|(_, lease)| lease.expires <= now)
            .map(|(id, lease)| (lease.expires, *id))
            .collect();
        due.sort_unstable();
        let ended: Vec<i64> = due.into_iter().map(|(_, id)| id).collect();
        for id in &ended {
            self.next_id();
            let why = (Cause::Expiry(*id), LeaseChange::Expired);
            self.end_lease(*id, why, now, effects).expect("it was found a moment ago");
        }
        ended
    }

    fn end_lease(
        &mut self,
        id: i64,
        (cause, change): (Cause, LeaseChange),
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        let lease = self.leases.all.remove(&id).ok_or(Failure::LeaseNotFound)?;
        let events = lease.keys.iter().filter_map(|key| self.store.delete(key)).collect();
        self.commit(events, cause, now, effects);
        Model::note_lease(id, change, now, effects);
        Ok(())
    }

    /// What is known of a lease.
    pub(crate) fn lease_time_to_live(&self, id: i64, now: Duration) -> TimeToLive {
        match self.leases.all.get(&id) {
            None => TimeToLive { ttl_s: -1, ..TimeToLive::default() },
            Some(lease) => TimeToLive {
                ttl_s: lease.expires.saturating_sub(now).as_secs() as i64,
                granted_s: lease.ttl_s,
                keys: lease.keys.iter().cloned().collect(),
            },
        }
    }

    /// All leases, in the order in which they run out.
    pub(crate) fn leases(&self) -> Vec<i64> {
        let mut leases: Vec<(Duration, i64)> =
            self.leases.all.iter().map(|(id, lease)| (lease.expires, *id)).collect();
        leases.sort_unstable();
        leases.into_iter().map(|(_, id)| id).collect()
    }
}
