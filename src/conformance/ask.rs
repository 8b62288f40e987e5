//! From the arguments of a recorded step to a request of the model.
//!
//! Arguments have the names of the protos; one that is absent has its proto3 default. An argument
//! that is not known here is an error: to leave it out would be to ask something else.

use serde_json::{Map, Value};

use crate::etcd::model::{
    request::{
        Compare, CompareOp, CompareTarget, DeleteRangeRequest, Enumerated, PutRequest,
        RangeRequest, Request, RequestOp, SortOrder, SortTarget, TxnRequest, WatchCreateRequest,
        WatchFilterType,
    },
    response::LeaderKey,
};

use super::{lease::ChosenLeases, recording::FIRST_REVISION};

/// What can be asked, or why not.
pub(super) type Asked<T> = Result<T, String>;

/// No key or value is longer, in bytes; a real server takes messages of up to 2 MiB.
const BYTES_MAX: usize = 16 << 20;
/// Transactions are not nested deeper.
const NESTING_MAX: usize = 160;

/// The bytes of `{"hex":"ff00"}` or `{"repeat":"x","n":3}`; None for any other object.
pub(super) fn plain_bytes(value: &Value) -> Option<Asked<Vec<u8>>> {
    let object = value.as_object()?;
    if let (1, Some(Value::String(digits))) = (object.len(), object.get("hex")) {
        let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
            [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
            }
            _ => None,
        });
        let bytes: Option<Vec<u8>> = pairs.collect();
        return Some(bytes.ok_or_else(|| format!("{digits:?} is not hexadecimal")));
    }
    let (2, Some(Value::String(part)), Some(count)) =
        (object.len(), object.get("repeat"), object.get("n"))
    else {
        return None;
    };
    let length = count.as_u64().and_then(|count| part.len().checked_mul(count as usize));
    Some(match (length, count.as_u64()) {
        (Some(0..=BYTES_MAX), Some(count)) => Ok(part.repeat(count as usize).into_bytes()),
        _ => Err(format!("n is {count}: that is no length of up to {BYTES_MAX} bytes")),
    })
}

/// Reads the arguments of a message, with the names of leases of the case.
#[derive(Clone, Copy)]
pub(super) struct Args<'a> {
    fields: &'a Map<String, Value>,
    chosen: &'a ChosenLeases,
}

impl<'a> Args<'a> {
    /// Arguments of which only these are known.
    pub(super) fn new(
        fields: &'a Map<String, Value>,
        chosen: &'a ChosenLeases,
        known: &[&str],
    ) -> Asked<Self> {
        match fields.keys().find(|name| !known.contains(&&name[..])) {
            Some(name) => Err(format!("argument {name:?} is not known")),
            None => Ok(Args { fields, chosen }),
        }
    }

    /// The arguments of a message inside; None if it is absent.
    pub(super) fn inner(&self, field: &str, known: &[&str]) -> Asked<Option<Args<'a>>> {
        match self.fields.get(field) {
            None => Ok(None),
            Some(Value::Object(fields)) => Args::new(fields, self.chosen, known).map(Some),
            Some(_) => Err(format!("argument {field:?} is not an object")),
        }
    }

    pub(super) fn int(&self, field: &str) -> Asked<i64> {
        match self.fields.get(field) {
            None => Ok(0),
            Some(value) => value
                .as_i64()
                .ok_or_else(|| format!("argument {field:?} is {value}, expected an integer")),
        }
    }

    fn flag(&self, field: &str) -> Asked<bool> {
        match self.fields.get(field) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(value) => Err(format!("argument {field:?} is {value}, expected true or false")),
        }
    }

    /// `"r+2"` is relative to the first revision, a number is absolute.
    pub(super) fn revision(&self, field: &str) -> Asked<i64> {
        match self.fields.get(field) {
            Some(Value::String(text)) => text
                .strip_prefix('r')
                .and_then(|offset| offset.parse::<i64>().ok())
                .and_then(|offset| offset.checked_add(FIRST_REVISION))
                .ok_or_else(|| format!("argument {field:?} is {text:?}, expected like \"r+1\"")),
            _ => self.int(field),
        }
    }

    /// `"L1"` is the first id that the server chose, a number is the id.
    pub(super) fn lease(&self, field: &str) -> Asked<i64> {
        match self.fields.get(field) {
            Some(Value::String(name)) => self
                .chosen
                .id(name)
                .ok_or_else(|| format!("argument {field:?}: no lease {name:?} was chosen")),
            _ => self.int(field),
        }
    }

    pub(super) fn bytes(&self, field: &str) -> Asked<Vec<u8>> {
        match self.fields.get(field) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => {
                let text = self.chosen.spell_out(text);
                match text.find("${L").map(|at| &text[at..]) {
                    Some(name) if name.contains(":hex}") => {
                        Err(format!("argument {field:?}: no lease was chosen yet for {name:?}"))
                    }
                    _ => Ok(text.into_bytes()),
                }
            }
            Some(value) => match plain_bytes(value) {
                Some(bytes) => bytes.map_err(|what| format!("argument {field:?}: {what}")),
                None => Err(format!("argument {field:?} is {value}, expected bytes")),
            },
        }
    }

    fn list(&self, field: &str) -> Asked<&'a [Value]> {
        match self.fields.get(field) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(format!("argument {field:?} is not a list")),
        }
    }

    /// A value by its name, or by its number, which may be one without a name.
    fn enumerated<T: Copy + Default>(
        &self,
        field: &str,
        names: &[(&str, T)],
    ) -> Asked<Enumerated<T>> {
        match self.fields.get(field) {
            None => Ok(Enumerated::default()),
            Some(value) => enumerated(field, value, names),
        }
    }
}

fn enumerated<T: Copy>(field: &str, value: &Value, names: &[(&str, T)]) -> Asked<Enumerated<T>> {
    let unknown = || format!("argument {field:?} is {value}, expected a name or a number of it");
    if let Some(name) = value.as_str() {
        let found = names.iter().find(|(known, _)| *known == name);
        return found.map(|(_, value)| Enumerated::Known(*value)).ok_or_else(unknown);
    }
    let number =
        value.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or_else(unknown)?;
    let named = usize::try_from(number).ok().and_then(|index| names.get(index));
    Ok(named.map_or(Enumerated::Unknown(number), |(_, value)| Enumerated::Known(*value)))
}

const ORDERS: &[(&str, SortOrder)] =
    &[("NONE", SortOrder::None), ("ASCEND", SortOrder::Ascend), ("DESCEND", SortOrder::Descend)];
const TARGETS: &[(&str, SortTarget)] = &[
    ("KEY", SortTarget::Key),
    ("VERSION", SortTarget::Version),
    ("CREATE", SortTarget::Create),
    ("MOD", SortTarget::Mod),
    ("VALUE", SortTarget::Value),
];
const RESULTS: &[(&str, CompareOp)] = &[
    ("EQUAL", CompareOp::Equal),
    ("GREATER", CompareOp::Greater),
    ("LESS", CompareOp::Less),
    ("NOT_EQUAL", CompareOp::NotEqual),
];
const FILTERS: &[(&str, WatchFilterType)] =
    &[("NOPUT", WatchFilterType::NoPut), ("NODELETE", WatchFilterType::NoDelete)];

/// The request of a step; None for an operation that is no request.
pub(super) fn request(
    op: &str,
    fields: &Map<String, Value>,
    chosen: &ChosenLeases,
) -> Asked<Option<Request>> {
    let args = |known: &[&str]| Args::new(fields, chosen, known);
    Ok(Some(match op {
        "range" => Request::Range(range(fields, chosen)?),
        "put" => Request::Put(put(fields, chosen)?),
        "delete_range" => Request::DeleteRange(delete_range(fields, chosen)?),
        "txn" => Request::Txn(txn(fields, chosen, 0)?),
        "compact" => Request::Compact(args(&["revision", "physical"])?.revision("revision")?),
        "lease_grant" => {
            let args = args(&["ID", "TTL"])?;
            Request::LeaseGrant { ttl_s: args.int("TTL")?, id: args.lease("ID")? }
        }
        "lease_revoke" => Request::LeaseRevoke(args(&["ID"])?.lease("ID")?),
        "lease_keepalive" => Request::KeepAlive(args(&["ID"])?.lease("ID")?),
        "lease_time_to_live" => {
            let args = args(&["ID", "keys"])?;
            Request::LeaseTimeToLive { id: args.lease("ID")?, keys: args.flag("keys")? }
        }
        "lease_leases" => args(&[]).map(|_| Request::Leases)?,
        "status" => args(&[]).map(|_| Request::Status)?,
        "member_list" => args(&["linearizable"]).map(|_| Request::MemberList)?,
        "watch_create" => Request::WatchCreate(watch(fields, chosen)?),
        "watch_cancel" => Request::WatchCancel(args(&["watch_id"])?.int("watch_id")?),
        "watch_progress" => args(&[]).map(|_| Request::WatchProgress)?,
        _ => return service(op, fields, chosen),
    }))
}

/// A request of the lock or the election service.
fn service(op: &str, fields: &Map<String, Value>, chosen: &ChosenLeases) -> Asked<Option<Request>> {
    let args = |known: &[&str]| Args::new(fields, chosen, known);
    let name = || args(&["name"])?.bytes("name");
    Ok(Some(match op {
        "lock" => {
            let args = args(&["name", "lease"])?;
            Request::Lock { name: args.bytes("name")?, lease: args.lease("lease")? }
        }
        "unlock" => Request::Unlock(args(&["key"])?.bytes("key")?),
        "campaign" => {
            let args = args(&["name", "lease", "value"])?;
            let (name, value) = (args.bytes("name")?, args.bytes("value")?);
            Request::Campaign { name, value, lease: args.lease("lease")? }
        }
        "proclaim" => {
            let args = args(&["leader", "value"])?;
            Request::Proclaim { leader: leader(&args)?, value: args.bytes("value")? }
        }
        "leader" => Request::Leader(name()?),
        "resign" => Request::Resign(leader(&args(&["leader"])?)?),
        "observe_open" => Request::Observe(name()?),
        _ => return Ok(None),
    }))
}

fn leader(args: &Args<'_>) -> Asked<Option<LeaderKey>> {
    let Some(args) = args.inner("leader", &["name", "key", "rev", "lease"])? else {
        return Ok(None);
    };
    Ok(Some(LeaderKey {
        name: args.bytes("name")?,
        key: args.bytes("key")?,
        rev: args.revision("rev")?,
        lease: args.lease("lease")?,
    }))
}

fn range(fields: &Map<String, Value>, chosen: &ChosenLeases) -> Asked<RangeRequest> {
    const KNOWN: &[&str] = &[
        "key",
        "range_end",
        "limit",
        "revision",
        "sort_order",
        "sort_target",
        "serializable",
        "keys_only",
        "count_only",
        "min_mod_revision",
        "max_mod_revision",
        "min_create_revision",
        "max_create_revision",
    ];
    let args = Args::new(fields, chosen, KNOWN)?;
    Ok(RangeRequest {
        key: args.bytes("key")?,
        range_end: args.bytes("range_end")?,
        limit: args.int("limit")?,
        revision: args.revision("revision")?,
        sort_order: args.enumerated("sort_order", ORDERS)?,
        sort_target: args.enumerated("sort_target", TARGETS)?,
        serializable: args.flag("serializable")?,
        keys_only: args.flag("keys_only")?,
        count_only: args.flag("count_only")?,
        min_mod_revision: args.revision("min_mod_revision")?,
        max_mod_revision: args.revision("max_mod_revision")?,
        min_create_revision: args.revision("min_create_revision")?,
        max_create_revision: args.revision("max_create_revision")?,
    })
}

fn put(fields: &Map<String, Value>, chosen: &ChosenLeases) -> Asked<PutRequest> {
    const KNOWN: &[&str] = &["key", "value", "lease", "prev_kv", "ignore_value", "ignore_lease"];
    let args = Args::new(fields, chosen, KNOWN)?;
    Ok(PutRequest {
        key: args.bytes("key")?,
        value: args.bytes("value")?,
        lease: args.lease("lease")?,
        prev_kv: args.flag("prev_kv")?,
        ignore_value: args.flag("ignore_value")?,
        ignore_lease: args.flag("ignore_lease")?,
    })
}

fn delete_range(fields: &Map<String, Value>, chosen: &ChosenLeases) -> Asked<DeleteRangeRequest> {
    let args = Args::new(fields, chosen, &["key", "range_end", "prev_kv"])?;
    Ok(DeleteRangeRequest {
        key: args.bytes("key")?,
        range_end: args.bytes("range_end")?,
        prev_kv: args.flag("prev_kv")?,
    })
}

fn watch(fields: &Map<String, Value>, chosen: &ChosenLeases) -> Asked<WatchCreateRequest> {
    const KNOWN: &[&str] = &[
        "key",
        "range_end",
        "start_revision",
        "progress_notify",
        "filters",
        "prev_kv",
        "watch_id",
        "fragment",
    ];
    let args = Args::new(fields, chosen, KNOWN)?;
    let filters = args.list("filters")?.iter();
    Ok(WatchCreateRequest {
        key: args.bytes("key")?,
        range_end: args.bytes("range_end")?,
        start_revision: args.revision("start_revision")?,
        filters: filters
            .map(|filter| enumerated("filters", filter, FILTERS))
            .collect::<Asked<_>>()?,
        prev_kv: args.flag("prev_kv")?,
        fragment: args.flag("fragment")?,
        watch_id: args.int("watch_id")?,
    })
}

fn object<'a>(field: &str, value: &'a Value) -> Asked<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| format!("an entry of argument {field:?} is not an object"))
}

fn txn(fields: &Map<String, Value>, chosen: &ChosenLeases, depth: usize) -> Asked<TxnRequest> {
    if depth > NESTING_MAX {
        return Err(format!("transactions are nested deeper than {NESTING_MAX}"));
    }
    let args = Args::new(fields, chosen, &["compare", "success", "failure"])?;
    let branch = |field: &str| -> Asked<Vec<RequestOp>> {
        let ops = args.list(field)?.iter();
        ops.map(|op| operation(object(field, op)?, chosen, depth)).collect()
    };
    let compares = args.list("compare")?.iter();
    Ok(TxnRequest {
        compare: compares
            .map(|one| compare(object("compare", one)?, chosen))
            .collect::<Asked<_>>()?,
        success: branch("success")?,
        failure: branch("failure")?,
    })
}

fn operation(op: &Map<String, Value>, chosen: &ChosenLeases, depth: usize) -> Asked<RequestOp> {
    let mut members = op.iter();
    let (kind, fields) = match (members.next(), members.next()) {
        (None, _) => return Ok(RequestOp::Empty),
        (Some((kind, fields)), None) => (kind, object(kind, fields)?),
        _ => return Err("an operation of a txn has more than one member".to_owned()),
    };
    Ok(match &kind[..] {
        "request_range" => RequestOp::Range(range(fields, chosen)?),
        "request_put" => RequestOp::Put(put(fields, chosen)?),
        "request_delete_range" => RequestOp::DeleteRange(delete_range(fields, chosen)?),
        "request_txn" => RequestOp::Txn(txn(fields, chosen, depth + 1)?),
        other => return Err(format!("operation {other:?} of a txn is not known")),
    })
}

/// The operand belongs to the target; an operand of another target is one that etcd does not look
/// at, and counts as absent: zero, or no bytes (`compareKV` in `apply.go`).
fn compare(fields: &Map<String, Value>, chosen: &ChosenLeases) -> Asked<Compare> {
    const KNOWN: &[&str] = &[
        "key",
        "range_end",
        "result",
        "target",
        "version",
        "create_revision",
        "mod_revision",
        "value",
        "lease",
    ];
    const TARGETS: &[(&str, &str)] = &[
        ("VERSION", "version"),
        ("CREATE", "create_revision"),
        ("MOD", "mod_revision"),
        ("VALUE", "value"),
        ("LEASE", "lease"),
    ];
    let args = Args::new(fields, chosen, KNOWN)?;
    let target = match fields.get("target") {
        None => Enumerated::Known("version"),
        Some(target) => enumerated("target", target, TARGETS)?,
    };
    let result = match fields.get("result") {
        None => Enumerated::Known(CompareOp::Equal),
        Some(result) => enumerated("result", result, RESULTS)?,
    };
    Ok(Compare {
        key: args.bytes("key")?,
        range_end: args.bytes("range_end")?,
        op: result,
        target: match target {
            Enumerated::Unknown(number) => CompareTarget::Unknown(number),
            Enumerated::Known("version") => CompareTarget::Version(args.int("version")?),
            Enumerated::Known("create_revision") => {
                CompareTarget::Create(args.revision("create_revision")?)
            }
            Enumerated::Known("mod_revision") => CompareTarget::Mod(args.revision("mod_revision")?),
            Enumerated::Known("value") => CompareTarget::Value(args.bytes("value")?),
            Enumerated::Known(_) => CompareTarget::Lease(args.lease("lease")?),
        },
    })
}
