//! Builders of transactions.

use super::{Compare, CompareOp, DeleteOptions, GetOptions, PutOptions};
use crate::etcd::model::{
    range::prefix_end,
    request::{CompareTarget, Enumerated, RequestOp, TxnRequest},
};

impl Compare {
    fn new(key: impl Into<Vec<u8>>, op: CompareOp, target: CompareTarget) -> Self {
        Compare { key: key.into(), range_end: Vec::new(), op: Enumerated::Known(op), target }
    }

    /// Compares the version; 0 for a key that does not exist.
    pub fn version(key: impl Into<Vec<u8>>, cmp: CompareOp, version: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Version(version))
    }

    /// Compares the create revision; 0 for a key that does not exist.
    pub fn create_revision(key: impl Into<Vec<u8>>, cmp: CompareOp, revision: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Create(revision))
    }

    /// Compares the mod revision; 0 for a key that does not exist.
    pub fn mod_revision(key: impl Into<Vec<u8>>, cmp: CompareOp, revision: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Mod(revision))
    }

    /// Compares the value; never true for a key that does not exist.
    pub fn value(key: impl Into<Vec<u8>>, cmp: CompareOp, value: impl Into<Vec<u8>>) -> Self {
        Self::new(key, cmp, CompareTarget::Value(value.into()))
    }

    /// Compares the lease; 0 for a key that does not exist.
    pub fn lease(key: impl Into<Vec<u8>>, cmp: CompareOp, lease: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Lease(lease))
    }

    /// Compares every key up to `end`.
    pub fn with_range(mut self, end: impl Into<Vec<u8>>) -> Self {
        self.range_end = end.into();
        self
    }

    /// Compares every key that begins with the key.
    pub fn with_prefix(mut self) -> Self {
        self.range_end = prefix_end(&self.key);
        self
    }
}

/// An operation of a transaction.
#[derive(Debug, Clone)]
pub struct TxnOp(RequestOp);

impl TxnOp {
    /// A put.
    pub fn put(
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        options: Option<PutOptions>,
    ) -> Self {
        let options = options.unwrap_or_default();
        TxnOp(RequestOp::Put(options.into_request(key.into(), value.into())))
    }

    /// A get.
    pub fn get(key: impl Into<Vec<u8>>, options: Option<GetOptions>) -> Self {
        TxnOp(RequestOp::Range(options.unwrap_or_default().into_request(key.into())))
    }

    /// A delete.
    pub fn delete(key: impl Into<Vec<u8>>, options: Option<DeleteOptions>) -> Self {
        TxnOp(RequestOp::DeleteRange(options.unwrap_or_default().into_request(key.into())))
    }

    /// A nested transaction.
    pub fn txn(txn: Txn) -> Self {
        TxnOp(RequestOp::Txn(txn.into_request()))
    }
}

/// A transaction: comparisons, and what to do if they hold or not.
#[derive(Debug, Default, Clone)]
pub struct Txn {
    request: TxnRequest,
    c_when: bool,
    c_then: bool,
    c_else: bool,
}

impl Txn {
    /// An empty transaction.
    pub const fn new() -> Self {
        let request = TxnRequest { compare: Vec::new(), success: Vec::new(), failure: Vec::new() };
        Txn { request, c_when: false, c_then: false, c_else: false }
    }

    /// The comparisons; all must hold.
    ///
    /// # Panics
    /// If called twice, or after the operations, as etcd-client does.
    pub fn when(mut self, compares: impl Into<Vec<Compare>>) -> Self {
        assert!(!self.c_when, "cannot call when twice");
        assert!(!self.c_then, "cannot call when after and_then");
        assert!(!self.c_else, "cannot call when after or_else");
        self.c_when = true;
        self.request.compare = compares.into();
        self
    }

    /// What to do if all comparisons hold.
    ///
    /// # Panics
    /// If called twice, or after `or_else`, as etcd-client does.
    pub fn and_then(mut self, operations: impl Into<Vec<TxnOp>>) -> Self {
        assert!(!self.c_then, "cannot call and_then twice");
        assert!(!self.c_else, "cannot call and_then after or_else");
        self.c_then = true;
        self.request.success = operations.into().into_iter().map(|op| op.0).collect();
        self
    }

    /// What to do if some comparison does not hold.
    ///
    /// # Panics
    /// If called twice, as etcd-client does.
    pub fn or_else(mut self, operations: impl Into<Vec<TxnOp>>) -> Self {
        assert!(!self.c_else, "cannot call or_else twice");
        self.c_else = true;
        self.request.failure = operations.into().into_iter().map(|op| op.0).collect();
        self
    }

    pub(super) fn into_request(self) -> TxnRequest {
        self.request
    }
}
