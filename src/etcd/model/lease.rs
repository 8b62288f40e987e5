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

/// The shortest TTL that is granted if nothing else is set: that of an election time-out of 10
/// heartbeats of 100 ms.
const TTL_MIN_S: i64 = 2;
/// The longest TTL that may be asked (`MaxLeaseTTL` in `server/lease/lessor.go`).
pub(crate) const TTL_MAX_S: i64 = 9_000_000_000;
/// How many leases are revoked in a second (`defaultLeaseRevokeRate`).
const REVOKE_RATE: usize = 1000;
/// How many leases one look for expired ones revokes.
pub(crate) const REVOKES_PER_TICK: usize = REVOKE_RATE / 2;

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
#[derive(Debug)]
pub(crate) struct Lessor {
    leases: BTreeMap<i64, Lease>,
    by_expiry: BTreeSet<(Duration, i64)>,
    /// Leases whose revocation got lost, with the time of the next try.
    postponed: BTreeMap<i64, Duration>,
    ttl_min_s: i64,
    /// Whether the time of leases counts.
    leads: bool,
}

impl Default for Lessor {
    fn default() -> Self {
        Lessor {
            leases: BTreeMap::new(),
            by_expiry: BTreeSet::new(),
            postponed: BTreeMap::new(),
            ttl_min_s: TTL_MIN_S,
            leads: true,
        }
    }
}

fn seconds(ttl_s: i64) -> Duration {
    Duration::from_secs(ttl_s.max(0) as u64)
}

impl Lessor {
    /// Sets the shortest TTL, in seconds.
    pub(crate) fn set_ttl_min(&mut self, ttl_min_s: i64) {
        self.ttl_min_s = ttl_min_s;
    }

    /// Grants a lease and gives the granted TTL.
    pub(crate) fn grant(&mut self, now: Duration, id: i64, ttl_s: i64) -> Result<i64, Refusal> {
        if ttl_s > TTL_MAX_S {
            return Err(Refusal::LeaseTtlTooLarge);
        }
        if self.leases.contains_key(&id) {
            return Err(Refusal::LeaseExists);
        }
        let ttl_s = ttl_s.max(self.ttl_min_s);
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
        let Some(lease) = self.leases.get(&id) else { return Renewal::Unknown };
        if lease.expiry <= now {
            return Renewal::RunOut;
        }
        Renewal::Renewed(self.refresh(now, id))
    }

    /// Lets a lease live for its full TTL from now, and gives that; 0 if there is no such lease.
    pub(crate) fn refresh(&mut self, now: Duration, id: i64) -> i64 {
        let Some(lease) = self.leases.get_mut(&id) else { return 0 };
        self.by_expiry.remove(&(lease.expiry, id));
        lease.expiry = now + seconds(lease.ttl_s);
        self.by_expiry.insert((lease.expiry, id));
        lease.ttl_s
    }

    /// Takes a lease out, for its revocation.
    pub(crate) fn remove(&mut self, id: i64) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        self.by_expiry.remove(&(lease.expiry, id));
        self.postponed.remove(&id);
        Some(lease)
    }

    /// The leases that end by `until` and are to be revoked now, the longest dead first. A tie goes
    /// to the lesser id.
    pub(crate) fn run_out(&self, until: Duration, now: Duration) -> Vec<i64> {
        if !self.leads {
            return Vec::new();
        }
        self.by_expiry
            .iter()
            .take_while(|(expiry, _)| *expiry <= until)
            .filter(|(_, id)| self.postponed.get(id).is_none_or(|retry| *retry <= now))
            .take(REVOKES_PER_TICK)
            .map(|(_, id)| *id)
            .collect()
    }

    /// The revocation of a lease did not come about: the next try is not before `retry`.
    pub(crate) fn postpone(&mut self, id: i64, retry: Duration) {
        self.postponed.insert(id, retry);
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

    /// The member leads no more: time stands still for leases.
    pub(crate) fn demote(&mut self) {
        self.leads = false;
        self.postponed.clear();
    }

    /// The member leads (again): every lease lives on for its full TTL and `extend` more, because
    /// nobody knows which renewals it has missed (`Promote` in `lessor.go`).
    pub(crate) fn promote(&mut self, now: Duration, extend: Duration) {
        self.leads = true;
        self.postponed.clear();
        self.by_expiry.clear();
        for (id, lease) in &mut self.leases {
            lease.expiry = now + seconds(lease.ttl_s) + extend;
            self.by_expiry.insert((lease.expiry, *id));
        }
        if self.leases.len() >= REVOKE_RATE {
            self.spread(now, extend);
        }
    }

    /// Puts leases off that would all end within a second: at most three quarters of what can be
    /// revoked in it may. The arithmetic is etcd's; of leases that end at once the lesser id goes
    /// first, where etcd's order is random.
    fn spread(&mut self, now: Duration, extend: Duration) {
        const SECOND: Duration = Duration::from_secs(1);
        let target = (3 * REVOKE_RATE / 4) as u32;
        let order: Vec<(Duration, i64)> = self.by_expiry.iter().copied().collect();
        let mut base = order[0].0;
        let mut next = base + SECOND;
        let mut expires = 0u32;
        for (expiry, id) in order {
            if expiry > next {
                (base, next, expires) = (expiry, expiry + SECOND, 1);
                continue;
            }
            expires += 1;
            if expires <= target {
                continue;
            }
            // Already so far behind the window's base as `expiry` is.
            let delay = (SECOND * expires / target).saturating_sub(expiry - base);
            next = base + delay;
            let Some(lease) = self.leases.get_mut(&id) else { continue };
            self.by_expiry.remove(&(expiry, id));
            lease.expiry = now + seconds(lease.ttl_s) + delay + extend;
            self.by_expiry.insert((lease.expiry, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The instant of its expiry is too late for a lease: it has run out and cannot be renewed
    /// (`Remaining() <= 0` in `lessor.go`). One nanosecond before that it can.
    #[test]
    fn a_lease_has_run_out_at_its_expiry() {
        let mut lessor = Lessor::default();
        lessor.grant(Duration::ZERO, 1, 5).expect("it is new");
        let expiry = Duration::from_secs(5);
        let before = expiry - Duration::from_nanos(1);
        assert!(lessor.run_out(before, before).is_empty());
        assert_eq!(lessor.run_out(expiry, expiry), [1]);
        assert_eq!(lessor.renew(expiry, 1), Renewal::RunOut);
        assert_eq!(lessor.renew(before, 1), Renewal::Renewed(5));
        assert!(lessor.run_out(expiry, expiry).is_empty());
    }
}
