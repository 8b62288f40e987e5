//! Transactions: all compares are evaluated before anything is written, and all writes share one
//! revision (etcd server/etcdserver/txn/txn.go).

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;

use super::{
    Effects, Model, contains,
    wire::{
        CompareOp, CompareRequest, CompareTarget, DeleteRequest, Failure, KeyValue, RequestOp,
        ResponseOp, StoreEvent, TxnReply, TxnRequest,
    },
};
use crate::history::Cause;

/// The most operations of a transaction (etcd's `--max-txn-ops`).
const OPS_MAX: usize = 128;

/// The branches that were chosen, before anything is written.
struct Chosen<'r> {
    succeeded: bool,
    ops: Vec<(&'r RequestOp, Option<Chosen<'r>>)>,
}

impl Model {
    /// Runs a transaction.
    pub(crate) fn txn(
        &mut self,
        request: &TxnRequest,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<TxnReply, Failure> {
        self.next_id();
        check_shape(request, OPS_MAX)?;
        check_keys(request)?;
        let chosen = self.choose(request);
        self.check_chosen(&chosen)?;
        let mut events = Vec::new();
        let mut reply = self.apply(&chosen, &mut events)?;
        self.commit(events, Cause::Txn, now, effects);
        reply.revision = self.revision();
        Ok(reply)
    }

    fn choose<'r>(&self, request: &'r TxnRequest) -> Chosen<'r> {
        let succeeded = request.compare.iter().all(|compare| self.holds(compare));
        let ops = if succeeded { &request.success } else { &request.failure };
        let nested = |op: &'r RequestOp| match op {
            RequestOp::Txn(txn) => Some(self.choose(txn)),
            _ => None,
        };
        Chosen { succeeded, ops: ops.iter().map(|op| (op, nested(op))).collect() }
    }

    fn holds(&self, compare: &CompareRequest) -> bool {
        if compare.range_end.is_empty() {
            return compares(compare, self.store.get(&compare.key));
        }
        let mut keys = self.store.scan(&compare.key, &compare.range_end).peekable();
        if keys.peek().is_none() {
            return compares(compare, None);
        }
        keys.all(|kv| compares(compare, Some(kv)))
    }

    /// Nothing may fail once something has been written.
    fn check_chosen(&self, chosen: &Chosen<'_>) -> Result<(), Failure> {
        for (op, nested) in &chosen.ops {
            match (op, nested) {
                (RequestOp::Range(range), _) => {
                    self.range(range)?;
                }
                (RequestOp::Put(put), _) => self.check_put(put)?,
                (RequestOp::Delete(_), _) => {}
                (RequestOp::Txn(_), Some(nested)) => self.check_chosen(nested)?,
                (RequestOp::Txn(_), None) => {}
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        chosen: &Chosen<'_>,
        events: &mut Vec<StoreEvent>,
    ) -> Result<TxnReply, Failure> {
        let mut responses = Vec::with_capacity(chosen.ops.len());
        for (op, nested) in &chosen.ops {
            responses.push(match (op, nested) {
                (RequestOp::Range(range), _) => {
                    let mut reply = self.range(range)?;
                    // After the first write of the transaction its revision is already visible.
                    reply.revision += i64::from(!events.is_empty());
                    ResponseOp::Range(reply)
                }
                (RequestOp::Put(put), _) => ResponseOp::Put(self.apply_put(put, events)),
                (RequestOp::Delete(delete), _) => {
                    ResponseOp::Delete(self.apply_delete(delete, events))
                }
                (RequestOp::Txn(_), Some(nested)) => ResponseOp::Txn(self.apply(nested, events)?),
                (RequestOp::Txn(_), None) => ResponseOp::Txn(TxnReply::default()),
            });
        }
        Ok(TxnReply { revision: 0, succeeded: chosen.succeeded, responses })
    }
}

fn compares(compare: &CompareRequest, kv: Option<&KeyValue>) -> bool {
    let number = |value: fn(&KeyValue) -> i64| kv.map_or(0, value);
    let ordering = match &compare.target {
        CompareTarget::Version(with) => number(|kv| kv.version).cmp(with),
        CompareTarget::Create(with) => number(|kv| kv.create_revision).cmp(with),
        CompareTarget::Mod(with) => number(|kv| kv.mod_revision).cmp(with),
        CompareTarget::Lease(with) => number(|kv| kv.lease).cmp(with),
        // The value of an absent key compares with nothing, "not equal" included.
        CompareTarget::Value(with) => match kv {
            Some(kv) => kv.value.cmp(with),
            None => return false,
        },
    };
    match compare.result {
        CompareOp::Equal => ordering.is_eq(),
        CompareOp::NotEqual => ordering.is_ne(),
        CompareOp::Greater => ordering.is_gt(),
        CompareOp::Less => ordering.is_lt(),
    }
}

fn check_shape(request: &TxnRequest, ops_max: usize) -> Result<(), Failure> {
    let most = request.compare.len().max(request.success.len()).max(request.failure.len());
    if most > ops_max {
        return Err(Failure::TooManyOps);
    }
    if request.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Failure::EmptyKey);
    }
    for op in request.success.iter().chain(&request.failure) {
        match op {
            RequestOp::Range(range) if range.key.is_empty() => return Err(Failure::EmptyKey),
            RequestOp::Put(put) if put.key.is_empty() => return Err(Failure::EmptyKey),
            RequestOp::Delete(delete) if delete.key.is_empty() => return Err(Failure::EmptyKey),
            RequestOp::Put(put) if put.ignore_value && !put.value.is_empty() => {
                return Err(Failure::ValueProvided);
            }
            RequestOp::Put(put) if put.ignore_lease && put.lease != 0 => {
                return Err(Failure::LeaseProvided);
            }
            RequestOp::Txn(txn) => check_shape(txn, ops_max - most)?,
            _ => {}
        }
    }
    Ok(())
}

/// No key may be put twice, or put and deleted, in what one branch can do.
fn check_keys(request: &TxnRequest) -> Result<(), Failure> {
    branch_keys(&request.success)?;
    branch_keys(&request.failure)?;
    Ok(())
}

type Touched<'r> = (BTreeSet<&'r Bytes>, Vec<&'r DeleteRequest>);

fn branch_keys(ops: &[RequestOp]) -> Result<Touched<'_>, Failure> {
    let (mut puts, mut deletes): Touched<'_> = Default::default();
    for op in ops {
        match op {
            RequestOp::Put(put) if !puts.insert(&put.key) => return Err(Failure::DuplicateKey),
            RequestOp::Delete(delete) => deletes.push(delete),
            RequestOp::Txn(txn) => {
                // Only one of the two branches runs, so they may share keys with each other.
                let (then_puts, then_deletes) = branch_keys(&txn.success)?;
                let (else_puts, else_deletes) = branch_keys(&txn.failure)?;
                if then_puts.iter().chain(&else_puts).any(|key| puts.contains(key)) {
                    return Err(Failure::DuplicateKey);
                }
                puts.extend(then_puts.iter().chain(&else_puts));
                deletes.extend(then_deletes.iter().chain(&else_deletes));
            }
            _ => {}
        }
    }
    let hit = |delete: &&DeleteRequest| {
        puts.iter().any(|key| contains(&delete.key, &delete.range_end, key))
    };
    if deletes.iter().any(|delete| hit(delete)) {
        return Err(Failure::DuplicateKey);
    }
    Ok((puts, deletes))
}
