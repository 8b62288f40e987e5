//! Arguments of calls, built with the API's option types.

use super::super::{
    api::{
        Compare, CompareOp, DeleteOptions, GetOptions, LeaderKey, LeaseGrantOptions,
        LeaseTimeToLiveOptions, LockOptions, ProclaimOptions, PutOptions, ResignOptions, SortOrder,
        SortTarget, Txn, TxnOp, WatchFilterType, WatchOptions,
    },
    client_driver::{
        ask::{Ask, Asked, UNKNOWN_ENUM},
        value,
    },
};

type Bytes = Vec<u8>;

/// A call with its arguments.
pub enum Request {
    Range(Bytes, GetOptions),
    Put(Bytes, Bytes, PutOptions),
    Delete(Bytes, DeleteOptions),
    Txn(Txn),
    Compact(i64),
    Grant(i64, LeaseGrantOptions),
    Revoke(i64),
    KeepAlive(i64),
    TimeToLive(i64, LeaseTimeToLiveOptions),
    Leases,
    Lock(Bytes, Option<LockOptions>),
    Unlock(Bytes),
    Campaign { name: Bytes, value: Bytes, lease: i64 },
    Proclaim(Bytes, Option<ProclaimOptions>),
    Leader(Bytes),
    Resign(Option<ResignOptions>),
    Observe(Bytes),
    Watch(Bytes, WatchOptions),
    WatchCancel(i64),
    WatchProgress,
    Status,
    MemberList,
}

impl Request {
    pub fn new(ask: &Ask) -> Asked<Self> {
        Ok(match ask.op.as_str() {
            "range" => Request::Range(ask.bytes("key"), get(ask)?),
            "put" => Request::Put(ask.bytes("key"), ask.bytes("value"), put(ask)),
            "delete_range" => Request::Delete(ask.bytes("key"), delete(ask)),
            "txn" => Request::Txn(txn(ask)?),
            "compact" => Request::Compact(ask.revision("revision")),
            "lease_grant" => {
                Request::Grant(ask.int("TTL"), LeaseGrantOptions::new().with_id(ask.int("ID")))
            }
            "lease_revoke" => Request::Revoke(ask.int("ID")),
            "lease_keepalive" => Request::KeepAlive(ask.int("ID")),
            "lease_time_to_live" => {
                let options = LeaseTimeToLiveOptions::new();
                let options = if ask.flag("keys") { options.with_keys() } else { options };
                Request::TimeToLive(ask.int("ID"), options)
            }
            "lease_leases" => Request::Leases,
            "lock" => {
                let options = LockOptions::new().with_lease(ask.int("lease"));
                Request::Lock(ask.bytes("name"), ask.has("lease").then_some(options))
            }
            "unlock" => Request::Unlock(ask.bytes("key")),
            "status" => Request::Status,
            "member_list" => Request::MemberList,
            "watch_create" => Request::Watch(ask.bytes("key"), watch(ask)?),
            "watch_cancel" => Request::WatchCancel(ask.int("watch_id")),
            "watch_progress" => Request::WatchProgress,
            _ => return election(ask),
        })
    }
}

fn election(ask: &Ask) -> Asked<Request> {
    let leader = ask.has("leader").then(|| leader(&ask.of(&ask.args["leader"])));
    Ok(match ask.op.as_str() {
        "campaign" => Request::Campaign {
            name: ask.bytes("name"),
            value: ask.bytes("value"),
            lease: ask.int("lease"),
        },
        "proclaim" => {
            let options = leader.map(|leader| ProclaimOptions::new().with_leader(leader));
            Request::Proclaim(ask.bytes("value"), options)
        }
        "leader" => Request::Leader(ask.bytes("name")),
        "resign" => Request::Resign(leader.map(|leader| ResignOptions::new().with_leader(leader))),
        "observe_open" => Request::Observe(ask.bytes("name")),
        _ => return Err("no such operation"),
    })
}

fn leader(ask: &Ask) -> LeaderKey {
    LeaderKey::new()
        .with_name(ask.bytes("name"))
        .with_key(ask.bytes("key"))
        .with_rev(ask.revision("rev"))
        .with_lease(ask.int("lease"))
}

fn get(ask: &Ask) -> Asked<GetOptions> {
    let orders =
        [("NONE", SortOrder::None), ("ASCEND", SortOrder::Ascend), ("DESCEND", SortOrder::Descend)];
    let targets = [
        ("KEY", SortTarget::Key),
        ("VERSION", SortTarget::Version),
        ("CREATE", SortTarget::Create),
        ("MOD", SortTarget::Mod),
        ("VALUE", SortTarget::Value),
    ];
    let order = ask.choose("sort_order", &orders)?.unwrap_or(SortOrder::None);
    let target = ask.choose("sort_target", &targets)?.unwrap_or(SortTarget::Key);
    let mut options = GetOptions::new()
        .with_range(ask.bytes("range_end"))
        .with_limit(ask.int("limit"))
        .with_revision(ask.revision("revision"))
        .with_sort(target, order)
        .with_min_mod_revision(ask.revision("min_mod_revision"))
        .with_max_mod_revision(ask.revision("max_mod_revision"))
        .with_min_create_revision(ask.revision("min_create_revision"))
        .with_max_create_revision(ask.revision("max_create_revision"));
    if ask.flag("serializable") {
        options = options.with_serializable();
    }
    if ask.flag("keys_only") {
        options = options.with_keys_only();
    }
    Ok(if ask.flag("count_only") { options.with_count_only() } else { options })
}

fn put(ask: &Ask) -> PutOptions {
    let mut options = PutOptions::new().with_lease(ask.int("lease"));
    if ask.flag("prev_kv") {
        options = options.with_prev_key();
    }
    if ask.flag("ignore_value") {
        options = options.with_ignore_value();
    }
    if ask.flag("ignore_lease") { options.with_ignore_lease() } else { options }
}

fn delete(ask: &Ask) -> DeleteOptions {
    let options = DeleteOptions::new().with_range(ask.bytes("range_end"));
    if ask.flag("prev_kv") { options.with_prev_key() } else { options }
}

fn txn(ask: &Ask) -> Asked<Txn> {
    let compares = ask.list("compare");
    let compares = compares.iter().map(|one| compare(&ask.of(one))).collect::<Asked<Vec<_>>>()?;
    let ops = |field: &str| {
        ask.list(field).iter().map(|one| operation(ask, one)).collect::<Asked<Vec<_>>>()
    };
    Ok(Txn::new().when(compares).and_then(ops("success")?).or_else(ops("failure")?))
}

fn operation(ask: &Ask, op: &serde_json::Value) -> Asked<TxnOp> {
    let Some((kind, args)) = op.as_object().and_then(|op| op.iter().next()) else {
        return Err("an empty operation");
    };
    let ask = ask.of(args);
    let key = ask.bytes("key");
    Ok(match kind.as_str() {
        "request_range" => TxnOp::get(key, Some(get(&ask)?)),
        "request_put" => TxnOp::put(key, ask.bytes("value"), Some(put(&ask))),
        "request_delete_range" => TxnOp::delete(key, Some(delete(&ask))),
        "request_txn" => TxnOp::txn(txn(&ask)?),
        _ => return Err("no such operation"),
    })
}

fn compare(ask: &Ask) -> Asked<Compare> {
    let ops = [
        ("EQUAL", CompareOp::Equal),
        ("GREATER", CompareOp::Greater),
        ("LESS", CompareOp::Less),
        ("NOT_EQUAL", CompareOp::NotEqual),
    ];
    let op = ask.choose("result", &ops)?.unwrap_or(CompareOp::Equal);
    let key = ask.bytes("key");
    // The server takes an absent operand for the default, which is what the API sends then.
    let (field, compare) = match ask.args["target"].as_str() {
        Some("VERSION") | None if !ask.args["target"].is_number() => {
            ("version", Compare::version(key, op, ask.int("version")))
        }
        Some("CREATE") => {
            let revision = ask.revision("create_revision");
            ("create_revision", Compare::create_revision(key, op, revision))
        }
        Some("MOD") => {
            ("mod_revision", Compare::mod_revision(key, op, ask.revision("mod_revision")))
        }
        Some("VALUE") => ("value", Compare::value(key, op, ask.bytes("value"))),
        Some("LEASE") => ("lease", Compare::lease(key, op, ask.int("lease"))),
        _ => return Err(UNKNOWN_ENUM),
    };
    let operands = ["version", "create_revision", "mod_revision", "value", "lease"];
    if operands.iter().any(|operand| *operand != field && ask.has(operand)) {
        return Err("an operand of another target");
    }
    Ok(if ask.has("range_end") { compare.with_range(ask.bytes("range_end")) } else { compare })
}

fn watch(ask: &Ask) -> Asked<WatchOptions> {
    let filters = ask.list("filters").into_iter().map(|filter| match filter.as_str() {
        Some("NOPUT") => Ok(WatchFilterType::NoPut),
        Some("NODELETE") => Ok(WatchFilterType::NoDelete),
        _ => Err(UNKNOWN_ENUM),
    });
    let mut options = WatchOptions::new()
        .with_range(value::bytes(&ask.args["range_end"]))
        .with_start_revision(ask.revision("start_revision"))
        .with_filters(filters.collect::<Asked<Vec<_>>>()?)
        .with_watch_id(ask.int("watch_id"));
    if ask.flag("prev_kv") {
        options = options.with_prev_key();
    }
    if ask.flag("progress_notify") {
        options = options.with_progress_notify();
    }
    Ok(if ask.flag("fragment") { options.with_fragment() } else { options })
}
