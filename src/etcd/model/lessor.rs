//! Leases: what the requests of the lease service do, and what happens when one runs out.
//!
//! `server/etcdserver/v3_server.go` and `server/lease/lessor.go`. Only the deletion of keys moves
//! the revision: a grant, a renewal, and the end of a lease without keys do not.

use std::time::Duration;

use crate::{
    etcd::quirk::Quirk,
    history::{Cause, LeaseChange},
};

use super::{
    Model,
    error::Refusal,
    response::{
        LeaseGrantResponse, LeaseLeasesResponse, LeaseRevokeResponse, LeaseStatus,
        LeaseTimeToLiveResponse,
    },
};

impl Model {
    pub(super) fn grant(
        &mut self,
        now: Duration,
        ttl_s: i64,
        id: i64,
    ) -> Result<LeaseGrantResponse, Refusal> {
        let id = if id == 0 { self.ids.next_lease() } else { id };
        self.propose(0)?;
        let ttl = self.lessor.grant(now, id, ttl_s)?;
        self.lease_event(now, id, LeaseChange::Granted { ttl_s: ttl });
        let error = String::new();
        Ok(LeaseGrantResponse { header: Some(self.header()), id, ttl, error })
    }

    /// Revokes a lease on request.
    pub(crate) fn revoke(
        &mut self,
        now: Duration,
        id: i64,
    ) -> Result<LeaseRevokeResponse, Refusal> {
        self.propose(0)?;
        self.end_lease(now, id, LeaseChange::Revoked, Cause::Revoke(id))?;
        Ok(LeaseRevokeResponse { header: Some(self.header()) })
    }

    /// Revokes the leases that have run out, each in a revision of its own. To be called every
    /// 500 ms (`revokeExpiredLeases` in `lessor.go`).
    pub(crate) fn expire(&mut self, now: Duration) {
        for id in self.run_out(now) {
            self.note_early(now, id);
            let ended = self
                .propose(0)
                .and_then(|()| self.end_lease(now, id, LeaseChange::Expired, Cause::Expiry(id)));
            debug_assert!(ended.is_ok(), "a lease that has run out is known");
        }
    }

    /// Deletes the keys of a lease, sorted, in one revision (none if there are no keys), and tells
    /// the renewals that waited for this.
    fn end_lease(
        &mut self,
        now: Duration,
        id: i64,
        change: LeaseChange,
        cause: Cause,
    ) -> Result<(), Refusal> {
        let lease = self.lessor.remove(id).ok_or(Refusal::LeaseNotFound)?;
        self.lease_event(now, id, change);
        let one_by_one = self.quirks.has(Quirk::RevokeNotAtomic) && lease.keys.len() > 1;
        self.quirks.count(Quirk::RevokeNotAtomic, one_by_one.into());
        for key in &lease.keys {
            self.store.delete(key);
            if one_by_one {
                self.commit(now, cause);
            }
        }
        self.commit(now, cause);
        self.tell_renewals(now, id);
        Ok(())
    }

    pub(super) fn time_to_live(
        &self,
        now: Duration,
        id: i64,
        keys: bool,
    ) -> LeaseTimeToLiveResponse {
        let header = Some(self.header());
        let Some(lease) = self.lessor.get(id) else {
            let (ttl, granted_ttl) = (-1, 0);
            return LeaseTimeToLiveResponse { header, id, ttl, granted_ttl, keys: Vec::new() };
        };
        // Whole seconds, cut off; a lease that ran out less than a second ago shows 0.
        let left = lease.expiry.as_nanos() as i128 - now.as_nanos() as i128;
        let ttl = (left / 1_000_000_000) as i64;
        let keys = match keys {
            true => lease.keys.iter().map(|key| key.to_vec()).collect(),
            false => Vec::new(),
        };
        LeaseTimeToLiveResponse { header, id, ttl, granted_ttl: lease.ttl_s, keys }
    }

    pub(super) fn leases(&self) -> LeaseLeasesResponse {
        let leases = self.lessor.by_expiry().map(|id| LeaseStatus { id }).collect();
        LeaseLeasesResponse { header: Some(self.header()), leases }
    }
}
