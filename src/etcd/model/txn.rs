//! Transactions: what is refused, which branches are taken, what they do.
//!
//! `server/etcdserver/api/v3rpc/key.go` (the checks of form) and `server/etcdserver/txn/txn.go`
//! (comparisons and execution). All comparisons, nested ones too, are decided before anything is
//! written; whatever can fail is checked before, so a refused transaction leaves nothing behind.

use std::{cmp::Ordering, collections::BTreeSet, slice::Iter};

use super::{
    Model,
    error::Refusal,
    mvcc::Store,
    range::{End, Range},
    request::{
        Compare, CompareOp, CompareTarget, DeleteRangeRequest, Enumerated, PutRequest,
        RangeRequest, RequestOp, TxnRequest,
    },
    response::{
        DeleteResponse, GetResponse, KeyValue, PutResponse, ResponseHeader, TxnOpResponse,
        TxnResponse,
    },
};

/// The most comparisons or operations of one branch (`--max-txn-ops`).
const OPS_MAX: usize = 128;

/// An unknown sort target that would be sorted by kills a real member of the simulated versions;
/// newer ones refuse it with this. An unknown order is served unsorted (`Range` in `apply.go`).
pub(super) fn check_range(request: &RangeRequest) -> Result<(), Refusal> {
    if request.key.is_empty() {
        return Err(Refusal::EmptyKey);
    }
    match (request.sort_order, request.sort_target) {
        (Enumerated::Known(_), Enumerated::Unknown(_)) => Err(Refusal::InvalidSortOption),
        _ => Ok(()),
    }
}

pub(super) fn check_put(request: &PutRequest) -> Result<(), Refusal> {
    if request.key.is_empty() {
        Err(Refusal::EmptyKey)
    } else if request.ignore_value && !request.value.is_empty() {
        Err(Refusal::ValueProvided)
    } else if request.ignore_lease && request.lease != 0 {
        Err(Refusal::LeaseProvided)
    } else {
        Ok(())
    }
}

pub(super) fn check_delete(request: &DeleteRangeRequest) -> Result<(), Refusal> {
    if request.key.is_empty() { Err(Refusal::EmptyKey) } else { Ok(()) }
}

/// The form of a transaction: limits, keys, and that no key is written twice.
pub(super) fn check(txn: &TxnRequest) -> Result<(), Refusal> {
    check_form(txn, OPS_MAX)?;
    intervals(&txn.success)?;
    intervals(&txn.failure)?;
    Ok(())
}

fn check_form(txn: &TxnRequest, ops_max: usize) -> Result<(), Refusal> {
    let ops = txn.compare.len().max(txn.success.len()).max(txn.failure.len());
    if ops > ops_max {
        return Err(Refusal::TooManyOps);
    }
    if txn.compare.iter().any(|compare| compare.key.is_empty()) {
        return Err(Refusal::EmptyKey);
    }
    txn.success.iter().chain(&txn.failure).try_for_each(|op| match op {
        RequestOp::Range(request) => check_range(request),
        RequestOp::Put(request) => check_put(request),
        RequestOp::DeleteRange(request) => check_delete(request),
        RequestOp::Txn(nested) => check_form(nested, ops_max - ops),
        RequestOp::Empty => Err(Refusal::KeyNotFound),
    })
}

type Written<'a> = (BTreeSet<&'a [u8]>, Vec<Range>);

/// What a branch puts and deletes (`checkIntervals`). Its blind spot is etcd's own: a deletion with
/// the end `"\0"` is taken for an empty interval, so an overlap with it goes unnoticed.
fn intervals(ops: &[RequestOp]) -> Result<Written<'_>, Refusal> {
    let mut deleted: Vec<Range> = ops
        .iter()
        .filter_map(|op| match op {
            RequestOp::DeleteRange(request) => Some(Range::new(&request.key, &request.range_end)),
            _ => None,
        })
        .filter(|range| range.end != End::Open)
        .collect();
    let hit = |deleted: &[Range], key: &[u8]| deleted.iter().any(|range| range.contains(key));
    let mut put = BTreeSet::new();
    for op in ops {
        let RequestOp::Txn(nested) = op else { continue };
        let (then_put, then_deleted) = intervals(&nested.success)?;
        let (else_put, else_deleted) = intervals(&nested.failure)?;
        for key in &then_put {
            if !put.insert(*key) || hit(&deleted, key) {
                return Err(Refusal::DuplicateKey);
            }
        }
        for key in else_put {
            // Only one of the two branches is taken, so they may write the same key.
            if (!put.insert(key) && !then_put.contains(key)) || hit(&deleted, key) {
                return Err(Refusal::DuplicateKey);
            }
        }
        deleted.extend(then_deleted);
        deleted.extend(else_deleted);
    }
    for op in ops {
        let RequestOp::Put(request) = op else { continue };
        if !put.insert(&request.key) || hit(&deleted, &request.key) {
            return Err(Refusal::DuplicateKey);
        }
    }
    Ok((put, deleted))
}

/// Decides all comparisons: one entry a transaction, outer before nested, in order.
fn decide(store: &Store, txn: &TxnRequest, path: &mut Vec<bool>) {
    let succeeded = txn.compare.iter().all(|compare| holds(store, compare));
    path.push(succeeded);
    for op in if succeeded { &txn.success } else { &txn.failure } {
        if let RequestOp::Txn(nested) = op {
            decide(store, nested, path);
        }
    }
}

/// A comparison of a range must hold for every key in it; an absent key compares as zeros, except
/// that a comparison of its value never holds (`applyCompare`).
fn holds(store: &Store, compare: &Compare) -> bool {
    if compare.range_end.is_empty() {
        return match store.get(&compare.key) {
            Some(kv) => holds_for(compare, kv),
            None => holds_for_absent(compare),
        };
    }
    let mut any = false;
    let all = store.live(&Range::new(&compare.key, &compare.range_end)).all(|kv| {
        any = true;
        holds_for(compare, kv)
    });
    if any { all } else { holds_for_absent(compare) }
}

fn holds_for_absent(compare: &Compare) -> bool {
    !matches!(compare.target, CompareTarget::Value(_)) && holds_for(compare, &KeyValue::default())
}

fn holds_for(compare: &Compare, kv: &KeyValue) -> bool {
    let order = match &compare.target {
        CompareTarget::Version(version) => kv.version.cmp(version),
        CompareTarget::Create(revision) => kv.create_revision.cmp(revision),
        CompareTarget::Mod(revision) => kv.mod_revision.cmp(revision),
        CompareTarget::Value(value) => kv.value[..].cmp(value),
        CompareTarget::Lease(lease) => kv.lease.cmp(lease),
        CompareTarget::Unknown(_) => Ordering::Equal,
    };
    match compare.op {
        Enumerated::Known(CompareOp::Equal) => order == Ordering::Equal,
        Enumerated::Known(CompareOp::NotEqual) => order != Ordering::Equal,
        Enumerated::Known(CompareOp::Greater) => order == Ordering::Greater,
        Enumerated::Known(CompareOp::Less) => order == Ordering::Less,
        Enumerated::Unknown(_) => true,
    }
}

fn taken<'a>(txn: &'a TxnRequest, path: &mut Iter<'_, bool>) -> &'a [RequestOp] {
    let succeeded = *path.next().expect("the path has an entry for each transaction taken");
    if succeeded { &txn.success } else { &txn.failure }
}

impl Model {
    pub(super) fn execute_txn(&mut self, txn: TxnRequest) -> Result<TxnResponse, Refusal> {
        check(&txn)?;
        let mut path = Vec::new();
        decide(&self.store, &txn, &mut path);
        self.check_taken_puts(&txn, &mut path.iter())?;
        self.check_taken_ranges(&txn, &mut path.iter())?;
        let mut response = self.apply_txn(txn, &mut path.iter())?;
        response.header = Some(self.header());
        Ok(response)
    }

    fn check_taken_puts(&self, txn: &TxnRequest, path: &mut Iter<'_, bool>) -> Result<(), Refusal> {
        taken(txn, path).iter().try_for_each(|op| match op {
            RequestOp::Txn(nested) => self.check_taken_puts(nested, path),
            RequestOp::Put(put) => {
                self.check_put_previous(put)?;
                self.check_put_lease(put)
            }
            _ => Ok(()),
        })
    }

    fn check_taken_ranges(
        &self,
        txn: &TxnRequest,
        path: &mut Iter<'_, bool>,
    ) -> Result<(), Refusal> {
        taken(txn, path).iter().try_for_each(|op| match op {
            RequestOp::Txn(nested) => self.check_taken_ranges(nested, path),
            RequestOp::Range(range) => self.store.check_revision_of_txn(range.revision),
            _ => Ok(()),
        })
    }

    fn apply_txn(
        &mut self,
        txn: TxnRequest,
        path: &mut Iter<'_, bool>,
    ) -> Result<TxnResponse, Refusal> {
        let succeeded = *path.next().expect("the path has an entry for each transaction taken");
        let ops = if succeeded { txn.success } else { txn.failure };
        let mut responses = Vec::with_capacity(ops.len());
        for op in ops {
            responses.push(match op {
                RequestOp::Range(range) => {
                    let header = self.inner_header();
                    TxnOpResponse::Get(GetResponse { header, ..self.read(&range)? })
                }
                RequestOp::Put(put) => {
                    let response = self.apply_put(put);
                    TxnOpResponse::Put(PutResponse { header: self.inner_header(), ..response })
                }
                RequestOp::DeleteRange(delete) => {
                    let response = self.apply_delete(&delete);
                    let header = self.inner_header();
                    TxnOpResponse::Delete(DeleteResponse { header, ..response })
                }
                RequestOp::Txn(nested) => TxnOpResponse::Txn(self.apply_txn(nested, path)?),
                RequestOp::Empty => return Err(Refusal::KeyNotFound),
            });
        }
        // The header of a nested answer is there, and empty.
        Ok(TxnResponse { header: Some(ResponseHeader::default()), succeeded, responses })
    }

    /// The header of an operation's answer says the revision and nothing else.
    fn inner_header(&self) -> Option<ResponseHeader> {
        let revision = self.store.revision();
        Some(ResponseHeader { revision, ..ResponseHeader::default() })
    }
}
