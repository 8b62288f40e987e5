//! Transactions: compares, operations, answers.

use bytes::Bytes;

use super::{
    CompareOp, DeleteOptions, DeleteResponse, GetOptions, GetResponse, PutOptions, PutResponse,
    ResponseHeader, kv, prefix_end,
};
use crate::etcd::model::wire::{
    CompareRequest, CompareTarget, RequestOp, ResponseOp, TxnReply, TxnRequest,
};

/// A condition on a key.
#[derive(Debug, Clone)]
pub struct Compare(CompareRequest);

impl Compare {
    fn new(key: impl Into<Vec<u8>>, result: CompareOp, target: CompareTarget) -> Self {
        let key = Bytes::from(key.into());
        Compare(CompareRequest { key, range_end: Bytes::new(), result, target })
    }

    /// On its version.
    pub fn version(key: impl Into<Vec<u8>>, cmp: CompareOp, version: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Version(version))
    }

    /// On its create revision.
    pub fn create_revision(key: impl Into<Vec<u8>>, cmp: CompareOp, revision: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Create(revision))
    }

    /// On its mod revision.
    pub fn mod_revision(key: impl Into<Vec<u8>>, cmp: CompareOp, revision: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Mod(revision))
    }

    /// On its value.
    pub fn value(key: impl Into<Vec<u8>>, cmp: CompareOp, value: impl Into<Vec<u8>>) -> Self {
        Self::new(key, cmp, CompareTarget::Value(value.into().into()))
    }

    /// On its lease.
    pub fn lease(key: impl Into<Vec<u8>>, cmp: CompareOp, lease: i64) -> Self {
        Self::new(key, cmp, CompareTarget::Lease(lease))
    }

    /// On all keys up to `end`.
    pub fn with_range(mut self, end: impl Into<Vec<u8>>) -> Self {
        self.0.range_end = end.into().into();
        self
    }

    /// On all keys that begin with the key.
    pub fn with_prefix(mut self) -> Self {
        self.0.range_end = prefix_end(&self.0.key).into();
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
        TxnOp(RequestOp::Put(kv::put_request(key.into(), value.into(), options)))
    }

    /// A get.
    pub fn get(key: impl Into<Vec<u8>>, options: Option<GetOptions>) -> Self {
        TxnOp(RequestOp::Range(kv::range_request(key.into(), options)))
    }

    /// A delete.
    pub fn delete(key: impl Into<Vec<u8>>, options: Option<DeleteOptions>) -> Self {
        TxnOp(RequestOp::Delete(kv::delete_request(key.into(), options)))
    }

    /// A transaction within.
    pub fn txn(txn: Txn) -> Self {
        TxnOp(RequestOp::Txn(txn.into_request()))
    }
}

/// A transaction: when all compares hold, then these operations, or else those.
#[derive(Debug, Clone, Default)]
pub struct Txn(TxnRequest);

impl Txn {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its conditions.
    pub fn when(mut self, compares: impl Into<Vec<Compare>>) -> Self {
        self.0.compare = compares.into().into_iter().map(|compare| compare.0).collect();
        self
    }

    /// What is done if all hold.
    pub fn and_then(mut self, operations: impl Into<Vec<TxnOp>>) -> Self {
        self.0.success = operations.into().into_iter().map(|op| op.0).collect();
        self
    }

    /// What is done if one does not.
    pub fn or_else(mut self, operations: impl Into<Vec<TxnOp>>) -> Self {
        self.0.failure = operations.into().into_iter().map(|op| op.0).collect();
        self
    }

    pub(super) fn into_request(self) -> TxnRequest {
        self.0
    }
}

/// The answer to a transaction.
#[derive(Debug, Clone)]
pub struct TxnResponse {
    header: ResponseHeader,
    succeeded: bool,
    responses: Vec<TxnOpResponse>,
}

/// The answer to an operation of a transaction.
#[derive(Debug, Clone)]
pub enum TxnOpResponse {
    /// Of a put.
    Put(PutResponse),
    /// Of a get.
    Get(GetResponse),
    /// Of a delete.
    Delete(DeleteResponse),
    /// Of a transaction within.
    Txn(TxnResponse),
}

impl TxnResponse {
    pub(super) fn new(reply: TxnReply) -> Self {
        let response = |op| match op {
            ResponseOp::Put(reply) => TxnOpResponse::Put(PutResponse::new(reply)),
            ResponseOp::Range(reply) => TxnOpResponse::Get(GetResponse::new(reply)),
            ResponseOp::Delete(reply) => TxnOpResponse::Delete(DeleteResponse::new(reply)),
            ResponseOp::Txn(reply) => TxnOpResponse::Txn(TxnResponse::new(reply)),
        };
        TxnResponse {
            header: ResponseHeader::new(reply.revision),
            succeeded: reply.succeeded,
            responses: reply.responses.into_iter().map(response).collect(),
        }
    }

    /// The header.
    pub fn header(&self) -> Option<&ResponseHeader> {
        Some(&self.header)
    }

    /// Whether all conditions held.
    pub const fn succeeded(&self) -> bool {
        self.succeeded
    }

    /// The answers to the operations that were done, in their order.
    pub fn op_responses(&self) -> Vec<TxnOpResponse> {
        self.responses.clone()
    }
}
