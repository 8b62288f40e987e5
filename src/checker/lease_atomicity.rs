//! Lease atomicity (D9): a lease and its keys end together, in one revision, and for a reason.
//!
//! A key that hangs on a lease goes by a delete, a transaction, or the end of that lease; the end
//! of a lease takes all its keys, and nothing else, in one commit; no key names a lease that has
//! ended. Judged where the grants are known: a watch of a real etcd does not tell them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checker, Finding, Idle, Violation, assumption::Assumption, index::Index};
use crate::history::{Cause, Commit, EventKind, KeyChange, LeaseChange, LeaseEvent};

const NAME: &str = "lease-atomicity";

/// Judges every end of a lease, and every key put on or taken off one.
#[derive(Debug)]
pub struct LeaseAtomicity;

impl Checker for LeaseAtomicity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "the end of a lease takes all its keys in one revision, and nothing else takes them unasked"
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
                EventKind::Lease(lease) => pass.lease(event.seq, lease),
                EventKind::Commit(commit) => pass.commit(event.seq, commit),
                _ => {}
            }
        }
        pass.look_for_left_behind();
        let missing = "no key was put on a lease whose grant is known";
        Finding::of(NAME, pass.judged, pass.violation, missing)
    }
}

#[derive(Debug)]
enum State {
    Lives,
    /// Ended at this event.
    Ended(u64),
}

#[derive(Debug, Default)]
struct Pass<'h> {
    /// Every lease that was granted.
    leases: BTreeMap<i64, State>,
    /// Live keys with the lease that they hang on, and the event that hung them there.
    keys: BTreeMap<&'h str, (i64, u64)>,
    /// The same by lease.
    hanging: BTreeMap<i64, BTreeSet<&'h str>>,
    /// The lease that ended last, if it had keys and its commit has not come yet.
    ending: Option<(i64, u64)>,
    judged: u64,
    violation: Option<Violation>,
}

impl<'h> Pass<'h> {
    fn lease(&mut self, seq: u64, event: &LeaseEvent) {
        match event.change {
            LeaseChange::Granted { .. } => {
                self.leases.insert(event.lease, State::Lives);
            }
            LeaseChange::Expired | LeaseChange::Revoked => {
                self.look_for_left_behind();
                if let Some(state) = self.leases.get_mut(&event.lease) {
                    *state = State::Ended(seq);
                }
                if self.hanging.contains_key(&event.lease) {
                    self.ending = Some((event.lease, seq));
                }
            }
            LeaseChange::Renewed | LeaseChange::Promoted { .. } => {}
        }
    }

    fn commit(&mut self, seq: u64, commit: &'h Commit) {
        let ends = match commit.cause {
            Cause::Revoke(lease) | Cause::Expiry(lease) => Some(lease),
            _ => None,
        };
        match self.ending {
            Some((lease, _)) if ends == Some(lease) => self.ending = None,
            _ => self.look_for_left_behind(),
        }
        for change in &commit.events {
            match change.change {
                KeyChange::Put => self.put(seq, &change.key, change.lease),
                KeyChange::Delete => self.delete(seq, &change.key, commit.cause, ends),
            }
        }
        if let Some(lease) = ends {
            self.look_for_rest(seq, lease);
        }
    }

    fn put(&mut self, seq: u64, key: &'h str, lease: i64) {
        self.take_off(key);
        let Some(state) = self.leases.get(&lease) else {
            // Of a lease whose grant nobody recorded there is nothing to say, unless the others'
            // are.
            if lease != 0 && !self.leases.is_empty() {
                self.judged += 1;
                self.blame("dead-lease", vec![seq], || {
                    format!("{key} was put on lease {lease:x}, which was never granted")
                });
            }
            return;
        };
        self.judged += 1;
        match *state {
            State::Lives => {
                self.keys.insert(key, (lease, seq));
                self.hanging.entry(lease).or_default().insert(key);
            }
            State::Ended(ended) => self.blame("dead-lease", vec![ended, seq], || {
                format!("{key} was put on lease {lease:x} after the end of that lease")
            }),
        }
    }

    fn delete(&mut self, seq: u64, key: &'h str, cause: Cause, ends: Option<i64>) {
        let hung = self.take_off(key);
        let asked = matches!(cause, Cause::Delete | Cause::Txn);
        let (Some((lease, put)), false) = (hung, asked) else {
            if let (Some(lease), None) = (ends.filter(|l| self.leases.contains_key(l)), hung) {
                self.judged += 1;
                self.blame("without-cause", vec![seq], || {
                    format!("{key} went with lease {lease:x}, on which it did not hang")
                });
            }
            return;
        };
        self.judged += 1;
        let ended = matches!(self.leases.get(&lease), Some(State::Ended(_)));
        if ends != Some(lease) || !ended {
            self.blame("without-cause", vec![put, seq], || {
                format!("{key} went, yet nobody deleted it and its lease {lease:x} had not ended")
            });
        }
    }

    fn take_off(&mut self, key: &str) -> Option<(i64, u64)> {
        let (lease, put) = self.keys.remove(key)?;
        if let Some(keys) = self.hanging.get_mut(&lease) {
            keys.remove(key);
            if keys.is_empty() {
                self.hanging.remove(&lease);
            }
        }
        Some((lease, put))
    }

    /// After the commit that ends a lease nothing may hang on it.
    fn look_for_rest(&mut self, seq: u64, lease: i64) {
        self.judged += 1;
        let Some(rest) = self.hanging.remove(&lease) else { return };
        let puts = rest.iter().filter_map(|key| self.keys.remove(*key)).map(|(_, put)| put);
        let events = puts.chain([seq]).collect();
        let rest: Vec<&str> = rest.into_iter().collect();
        self.blame("not-atomic", events, || {
            format!("the end of lease {lease:x} left {} for another revision", rest.join(", "))
        });
    }

    /// A lease ended, and its keys did not go with it.
    fn look_for_left_behind(&mut self) {
        let Some((lease, seq)) = self.ending.take() else { return };
        self.look_for_rest(seq, lease);
    }

    /// Only the first counts: it is the cause of what follows it.
    fn blame(&mut self, rule: &'static str, events: Vec<u64>, message: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation::new(NAME, rule, message(), events));
        }
    }
}
