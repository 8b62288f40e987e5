//! From the arguments of a recorded step to a request.

use serde_json::Value;

use crate::etcd::model::{
    request::{
        Compare, CompareOp, CompareTarget, DeleteRangeRequest, PutRequest, RangeRequest, Request,
        RequestOp, SortOrder, SortTarget, TxnRequest, WatchCreateRequest, WatchFilterType,
    },
    response::LeaderKey,
};

type Asked<T> = Result<T, &'static str>;

const UNKNOWN_ENUM: &str = "an unknown enumeration value";
/// What a real server refuses for its size (`--max-request-bytes` and gRPC's own limit).
const SIZE_MAX: usize = 2 << 20;

/// Reads arguments with the revisions and leases of a case.
struct Args<'a> {
    args: &'a Value,
    base: i64,
    chosen: &'a [i64],
}

/// The request of a step.
pub(super) fn request(op: &str, args: &Value, base: i64, chosen: &[i64]) -> Asked<Request> {
    let args = Args { args, base, chosen };
    Ok(match op {
        "range" => Request::Range(args.range()?),
        "put" => Request::Put(args.put()?),
        "delete_range" => Request::DeleteRange(args.delete()),
        "txn" => Request::Txn(args.txn()?),
        "compact" => Request::Compact(args.revision("revision")),
        "lease_grant" => Request::LeaseGrant { ttl_s: args.int("TTL"), id: args.lease("ID") },
        "lease_revoke" => Request::LeaseRevoke(args.lease("ID")),
        "lease_keepalive" => Request::KeepAlive(args.lease("ID")),
        "lease_time_to_live" => {
            Request::LeaseTimeToLive { id: args.lease("ID"), keys: args.flag("keys") }
        }
        "lease_leases" => Request::Leases,
        "watch_create" => Request::WatchCreate(args.watch()?),
        "watch_cancel" => Request::WatchCancel(args.int("watch_id")),
        "watch_progress" => Request::WatchProgress,
        "lock" => Request::Lock { name: args.bytes("name"), lease: args.lease("lease") },
        "unlock" => Request::Unlock(args.bytes("key")),
        "campaign" => Request::Campaign {
            name: args.bytes("name"),
            value: args.bytes("value"),
            lease: args.lease("lease"),
        },
        "proclaim" => Request::Proclaim { leader: args.leader(), value: args.bytes("value") },
        "leader" => Request::Leader(args.bytes("name")),
        "resign" => Request::Resign(args.leader()),
        "observe_open" => Request::Observe(args.bytes("name")),
        other => panic!("unknown operation {other}"),
    })
}

impl Args<'_> {
    fn of<'b>(&'b self, args: &'b Value) -> Args<'b> {
        Args { args, base: self.base, chosen: self.chosen }
    }

    fn int(&self, field: &str) -> i64 {
        self.args[field].as_i64().unwrap_or(0)
    }

    fn flag(&self, field: &str) -> bool {
        self.args[field].as_bool().unwrap_or(false)
    }

    /// `"r+N"` is relative to the first revision, a number is absolute.
    fn revision(&self, field: &str) -> i64 {
        match self.args[field].as_str().and_then(|text| text.strip_prefix('r')) {
            Some(offset) => self.base + offset.parse::<i64>().expect("an offset"),
            None => self.int(field),
        }
    }

    /// `"L1"` is the first id that the server chose, a number is the id.
    fn lease(&self, field: &str) -> i64 {
        match self.args[field].as_str().and_then(|text| text.strip_prefix('L')) {
            Some(number) => self.chosen[number.parse::<usize>().expect("a number") - 1],
            None => self.int(field),
        }
    }

    fn bytes(&self, field: &str) -> Vec<u8> {
        super::answer::bytes(&self.args[field], self.chosen)
    }

    fn leader(&self) -> Option<LeaderKey> {
        let args = self.of(self.args.get("leader")?);
        Some(LeaderKey {
            name: args.bytes("name"),
            key: args.bytes("key"),
            rev: args.revision("rev"),
            lease: args.lease("lease"),
        })
    }

    fn choose<T: Copy>(&self, field: &str, choices: &[(&str, T)]) -> Asked<Option<T>> {
        match &self.args[field] {
            Value::Null => Ok(None),
            Value::String(name) => {
                let found = choices.iter().find(|(choice, _)| choice == name);
                found.map(|(_, value)| Some(*value)).ok_or(UNKNOWN_ENUM)
            }
            _ => Err(UNKNOWN_ENUM),
        }
    }

    fn range(&self) -> Asked<RangeRequest> {
        let orders = [
            ("NONE", SortOrder::None),
            ("ASCEND", SortOrder::Ascend),
            ("DESCEND", SortOrder::Descend),
        ];
        let targets = [
            ("KEY", SortTarget::Key),
            ("VERSION", SortTarget::Version),
            ("CREATE", SortTarget::Create),
            ("MOD", SortTarget::Mod),
            ("VALUE", SortTarget::Value),
        ];
        Ok(RangeRequest {
            key: self.bytes("key"),
            range_end: self.bytes("range_end"),
            limit: self.int("limit"),
            revision: self.revision("revision"),
            sort_order: self.choose("sort_order", &orders)?.unwrap_or_default(),
            sort_target: self.choose("sort_target", &targets)?.unwrap_or_default(),
            serializable: self.flag("serializable"),
            keys_only: self.flag("keys_only"),
            count_only: self.flag("count_only"),
            min_mod_revision: self.revision("min_mod_revision"),
            max_mod_revision: self.revision("max_mod_revision"),
            min_create_revision: self.revision("min_create_revision"),
            max_create_revision: self.revision("max_create_revision"),
        })
    }

    fn put(&self) -> Asked<PutRequest> {
        let value = self.bytes("value");
        if value.len() > SIZE_MAX {
            return Err("limits on message size");
        }
        Ok(PutRequest {
            key: self.bytes("key"),
            value,
            lease: self.lease("lease"),
            prev_kv: self.flag("prev_kv"),
            ignore_value: self.flag("ignore_value"),
            ignore_lease: self.flag("ignore_lease"),
        })
    }

    fn delete(&self) -> DeleteRangeRequest {
        DeleteRangeRequest {
            key: self.bytes("key"),
            range_end: self.bytes("range_end"),
            prev_kv: self.flag("prev_kv"),
        }
    }

    fn txn(&self) -> Asked<TxnRequest> {
        let list = |field: &str| self.args[field].as_array().cloned().unwrap_or_default();
        let ops = |field: &str| -> Asked<Vec<RequestOp>> {
            list(field).iter().map(|op| self.operation(op)).collect()
        };
        Ok(TxnRequest {
            compare: list("compare")
                .iter()
                .map(|compare| self.of(compare).compare())
                .collect::<Asked<Vec<_>>>()?,
            success: ops("success")?,
            failure: ops("failure")?,
        })
    }

    fn operation(&self, op: &Value) -> Asked<RequestOp> {
        let Some((kind, args)) = op.as_object().and_then(|op| op.iter().next()) else {
            return Err("an empty operation");
        };
        let args = self.of(args);
        Ok(match kind.as_str() {
            "request_range" => RequestOp::Range(args.range()?),
            "request_put" => RequestOp::Put(args.put()?),
            "request_delete_range" => RequestOp::DeleteRange(args.delete()),
            "request_txn" => RequestOp::Txn(args.txn()?),
            other => panic!("unknown operation {other}"),
        })
    }

    fn compare(&self) -> Asked<Compare> {
        let ops = [
            ("EQUAL", CompareOp::Equal),
            ("GREATER", CompareOp::Greater),
            ("LESS", CompareOp::Less),
            ("NOT_EQUAL", CompareOp::NotEqual),
        ];
        let target = match self.args["target"].as_str() {
            Some("VERSION") | None => CompareTarget::Version(self.int("version")),
            Some("CREATE") => CompareTarget::Create(self.revision("create_revision")),
            Some("MOD") => CompareTarget::Mod(self.revision("mod_revision")),
            Some("VALUE") => CompareTarget::Value(self.bytes("value")),
            Some("LEASE") => CompareTarget::Lease(self.lease("lease")),
            Some(_) => return Err(UNKNOWN_ENUM),
        };
        Ok(Compare {
            key: self.bytes("key"),
            range_end: self.bytes("range_end"),
            op: self.choose("result", &ops)?.unwrap_or(CompareOp::Equal),
            target,
        })
    }

    fn watch(&self) -> Asked<WatchCreateRequest> {
        let filters = self.args["filters"].as_array().cloned().unwrap_or_default();
        Ok(WatchCreateRequest {
            key: self.bytes("key"),
            range_end: self.bytes("range_end"),
            start_revision: self.revision("start_revision"),
            filters: filters
                .iter()
                .map(|filter| match filter.as_str() {
                    Some("NOPUT") => Ok(WatchFilterType::NoPut),
                    Some("NODELETE") => Ok(WatchFilterType::NoDelete),
                    _ => Err(UNKNOWN_ENUM),
                })
                .collect::<Asked<Vec<_>>>()?,
            prev_kv: self.flag("prev_kv"),
            watch_id: self.int("watch_id"),
        })
    }
}
