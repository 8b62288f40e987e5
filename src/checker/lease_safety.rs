//! Lease safety (D9): a lease does not run out before its time, and none comes back to life.
//!
//! Both on the monotonic clock of the member that decided it. The time counts from the last grant
//! or renewal that the member processed, acknowledged or not, or from its promotion, which lets
//! every lease live for its full TTL and one election time-out more.

use std::collections::BTreeMap;

use super::{Checker, Finding, Idle, Violation, assumption::Assumption, index::Index};
use crate::history::{Cause, EventKind, LeaseChange};

const NAME: &str = "lease-safety";

/// Judges every expiry and every renewal that a member processed.
#[derive(Debug)]
pub struct LeaseSafety;

impl Checker for LeaseSafety {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "no lease runs out before its time, and no renewal revives one that has run out"
    }

    fn leans_on(&self) -> &'static [Assumption] {
        &[]
    }

    fn idle(&self) -> Idle {
        Idle::InARun
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let mut pass = Pass::default();
        for event in &index.beside {
            match &event.kind {
                EventKind::Lease(lease) => match lease.change {
                    LeaseChange::Granted { ttl_s } => {
                        let ttl_ns = ttl_s.unsigned_abs().saturating_mul(1_000_000_000);
                        let until_ns = lease.member_ns.saturating_add(ttl_ns);
                        let base = event.seq;
                        pass.living.insert(lease.lease, Life { ttl_ns, until_ns, base });
                    }
                    LeaseChange::Renewed => pass.renew(lease.lease, lease.member_ns, event.seq),
                    LeaseChange::Expired => {
                        pass.expire(lease.lease, lease.member_ns, event.seq);
                    }
                    LeaseChange::Revoked => {
                        if pass.living.remove(&lease.lease).is_some() {
                            pass.ended.insert(lease.lease, event.seq);
                        }
                    }
                    LeaseChange::Promoted { extend_ms } => {
                        let extend_ns = extend_ms.saturating_mul(1_000_000);
                        for life in pass.living.values_mut() {
                            let span = life.ttl_ns.saturating_add(extend_ns);
                            life.until_ns = lease.member_ns.saturating_add(span);
                            life.base = event.seq;
                        }
                    }
                },
                // A store that deletes without having ended the lease has decided it all the same.
                EventKind::Commit(commit) => {
                    if let Cause::Expiry(lease) = commit.cause
                        && pass.living.contains_key(&lease)
                    {
                        pass.expire(lease, commit.member_ns, event.seq);
                    }
                }
                _ => {}
            }
        }
        Finding::of(NAME, pass.judged, pass.violation, "no lease was renewed or ran out")
    }
}

/// A lease that lives.
#[derive(Debug)]
struct Life {
    ttl_ns: u64,
    /// When it runs out, on the member's clock.
    until_ns: u64,
    /// `seq` of what that time counts from.
    base: u64,
}

#[derive(Debug, Default)]
struct Pass {
    living: BTreeMap<i64, Life>,
    /// `seq` of the last end of each lease that ended. One that was granted anew is among the
    /// living, and is not looked for here until it ends again.
    ended: BTreeMap<i64, u64>,
    judged: u64,
    violation: Option<Violation>,
}

impl Pass {
    fn renew(&mut self, lease: i64, member_ns: u64, seq: u64) {
        let Some(life) = self.living.get_mut(&lease) else {
            let Some(ended) = self.ended.get(&lease).copied() else { return };
            self.judged += 1;
            self.blame("revived", vec![ended, seq], || {
                format!("a renewal of lease {lease:x} was processed after its end")
            });
            return;
        };
        self.judged += 1;
        let Life { until_ns, base, ttl_ns } = *life;
        (life.until_ns, life.base) = (member_ns.saturating_add(ttl_ns), seq);
        if member_ns >= until_ns {
            self.blame("revived", vec![base, seq], || {
                let late = milliseconds(member_ns - until_ns);
                format!("a renewal revived lease {lease:x}, which had run out {late} ms before")
            });
        }
    }

    fn expire(&mut self, lease: i64, member_ns: u64, seq: u64) {
        let Some(life) = self.living.remove(&lease) else { return };
        self.ended.insert(lease, seq);
        self.judged += 1;
        if member_ns < life.until_ns {
            self.blame("early", vec![life.base, seq], || {
                let early = milliseconds(life.until_ns - member_ns);
                format!("lease {lease:x} ran out {early} ms before its time on etcd's own clock")
            });
        }
    }

    /// Only the first counts: it is the cause of what follows it.
    fn blame(&mut self, rule: &'static str, events: Vec<u64>, message: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation::new(NAME, rule, message(), events));
        }
    }
}

fn milliseconds(ns: u64) -> u64 {
    ns.div_ceil(1_000_000)
}
