//! The lessor: which leases there are, when they end, which keys hang on them.
//!
//! `server/lease/lessor.go`. A lease that has run out stays until the member revokes it; until then
//! a put on it succeeds (and vanishes with it), and a renewal of it waits and does not revive it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;

use super::error::Refusal;

/// The shortest TTL that is granted: 1.5 election time-outs of 10 heartbeats of 100 ms, in whole
/// seconds (`minLeaseTTL` in `server/etcdserver/server.go`).
pub(crate) const TTL_MIN_S: i64 = 2;
/// The longest TTL that may be asked (`MaxLeaseTTL` in `server/lease/lessor.go`).
pub(crate) const TTL_MAX_S: i64 = 9_000_000_000;
/// How many leases one look for expired ones revokes (`leaseRevokeRate / 2`).
pub(crate) const REVOKES_PER_TICK: usize = 500;

/// One lease.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) ttl_s: i64,
    /// On the member's monotonic clock.
    pub(crate) expiry: Duration,
    pub(crate) keys: BTreeSet<Bytes>,
}

/// What a renewal finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// Renewed for so many seconds.
    Renewed(i64),
    /// There is no such lease.
    Unknown,
    /// It has run out and waits to be revoked; the answer comes then.
    RunOut,
}

/// All leases.
#[derive(Debug, Default)]
pub(crate) struct Lessor {
    leases: BTreeMap<i64, Lease>,
    by_expiry: BTreeSet<(Duration, i64)>,
}

fn seconds(ttl_s: i64) -> Duration {
    Duration::from_secs(ttl_s.max(0) as u64)
}

impl Lessor {
    /// Grants a lease and gives the granted TTL.
    pub(crate) fn grant(&mut self, now: Duration, id: i64, ttl_s: i64) -> Result<i64, Refusal> {
        if ttl_s > TTL_MAX_S {
            return Err(Refusal::LeaseTtlTooLarge);
        }
        if self.leases.contains_key(&id) {
            return Err(Refusal::LeaseExists);
        }
        let ttl_s = ttl_s.max(TTL_MIN_S);
        let expiry = now + seconds(ttl_s);
        self.leases.insert(id, Lease { ttl_s, expiry, keys: BTreeSet::new() });
        self.by_expiry.insert((expiry, id));
        Ok(ttl_s)
    }

    /// The lease, run out or not, if it has not been revoked.
    pub(crate) fn get(&self, id: i64) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// Renews a lease for its full TTL.
    pub(crate) fn renew(&mut self, now: Duration, id: i64) -> Renewal {
        let Some(lease) = self.leases.get_mut(&id) else { return Renewal::Unknown };
        if lease.expiry <= now {
            return Renewal::RunOut;
        }
        self.by_expiry.remove(&(lease.expiry, id));
        lease.expiry = now + seconds(lease.ttl_s);
        self.by_expiry.insert((lease.expiry, id));
        Renewal::Renewed(lease.ttl_s)
    }

    /// Takes a lease out, for its revocation.
    pub(crate) fn remove(&mut self, id: i64) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.by_expiry.remove(&(lease.expiry, id));
        Some(lease)
    }

    /// The leases that have run out, the longest dead first.
    pub(crate) fn run_out(&self, now: Duration) -> Vec<i64> {
        self.by_expiry
            .iter()
            .take_while(|(expiry, _)| *expiry <= now)
            .take(REVOKES_PER_TICK)
            .map(|(_, id)| *id)
            .collect()
    }

    /// All leases, by expiry.
    pub(crate) fn by_expiry(&self) -> impl Iterator<Item = i64> + '_ {
        self.by_expiry.iter().map(|(_, id)| *id)
    }

    /// Hangs a key on a lease; nothing happens if there is no such lease.
    pub(crate) fn attach(&mut self, id: i64, key: &Bytes) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.keys.insert(key.clone());
        }
    }

    /// Takes a key off a lease.
    pub(crate) fn detach(&mut self, id: i64, key: &Bytes) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.keys.remove(key);
        }
    }

    /// The member leads (again): every lease lives on for its full TTL and `extend` more, because
    /// nobody knows which renewals it has missed (`Promote` in `lessor.go`).
    pub(crate) fn promote(&mut self, now: Duration, extend: Duration) {
        self.by_expiry.clear();
        for (id, lease) in &mut self.leases {
            lease.expiry = now + seconds(lease.ttl_s) + extend;
            self.by_expiry.insert((lease.expiry, *id));
        }
    }
}
