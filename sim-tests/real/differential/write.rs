//! A sequence as the steps of a recorded case.

use serde_json::{Map, Value, json};

use super::sequence::{Compare, Delete, End, LEASES, Op, Operand, Put, Range, Revision, Txn};

/// What the keys and leases of a sequence are called.
#[derive(Debug, Default)]
pub struct Names {
    prefix: String,
    first_lease: i64,
}

impl Names {
    /// Names that no other run on the same server has.
    pub fn of_run(run: i64) -> Self {
        Names { prefix: format!("s{run}/"), first_lease: run * 16 }
    }

    /// The empty key stays empty: it is refused, or the smallest of all.
    fn key(&self, key: &str) -> String {
        if key.is_empty() { String::new() } else { format!("{}{key}", self.prefix) }
    }

    fn end(&self, key: &str, end: &End) -> String {
        match end {
            End::None => String::new(),
            End::FromKey => "\0".to_owned(),
            End::Key(key) => self.key(key),
            End::Prefix => {
                let mut end = self.key(key);
                match end.pop() {
                    // All names end in ASCII below the last character of it.
                    Some(last) => end.push((last as u8 + 1) as char),
                    None => end.push('\0'),
                }
                end
            }
        }
    }

    fn lease(&self, lease: usize) -> i64 {
        1000 + self.first_lease + lease as i64
    }
}

/// The steps, and behind them the end of all leases.
pub fn steps(sequence: &[Op], names: &Names) -> Vec<Value> {
    let end = (0..LEASES).map(Op::Revoke);
    sequence.iter().cloned().chain(end).map(|op| step(&op, names)).collect()
}

fn step(op: &Op, names: &Names) -> Value {
    let (op, args) = match op {
        Op::Range(range) => ("range", range_args(range, names)),
        Op::Put(put) => ("put", put_args(put, names)),
        Op::Delete(delete) => ("delete_range", delete_args(delete, names)),
        Op::Txn(txn) => ("txn", txn_args(txn, names)),
        Op::Grant { lease, ttl_s } => {
            ("lease_grant", json!({ "TTL": ttl_s, "ID": names.lease(*lease) }))
        }
        Op::Revoke(lease) => ("lease_revoke", json!({ "ID": names.lease(*lease) })),
        Op::TimeToLive { lease, keys } => {
            let args = json!({ "ID": names.lease(*lease), "keys": keys });
            return json!({ "op": "lease_time_to_live", "args": args, "tol": ["TTL"] });
        }
        Op::Leases => ("lease_leases", json!({})),
        Op::Compact(revision) => ("compact", json!({ "revision": revision_arg(*revision) })),
    };
    json!({ "op": op, "args": args })
}

fn revision_arg(revision: Revision) -> Value {
    match revision {
        Revision::After(count) => json!(format!("r{count:+}")),
        Revision::Absolute(revision) => json!(revision),
    }
}

/// Arguments; one that has its default is absent.
struct Args(Map<String, Value>);

impl Args {
    fn range(key: &str, end: &End, names: &Names) -> Self {
        // A range from the empty key on would have the keys of other sequences in it.
        let foreign = matches!(end, End::Prefix) || !names.prefix.is_empty();
        let end = if key.is_empty() && foreign { &End::None } else { end };
        let mut args = Args(Map::new());
        args.set("key", names.key(key));
        args.set("range_end", names.end(key, end));
        args
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        if value != json!("") && value != json!(0) && value != json!(false) {
            self.0.insert(name.to_owned(), value);
        }
    }

    fn set_flags(mut self, flags: &[&str]) -> Value {
        for flag in flags {
            self.set(flag, true);
        }
        Value::Object(self.0)
    }
}

fn range_args(range: &Range, names: &Names) -> Value {
    let mut args = Args::range(range.key, &range.end, names);
    args.set("revision", revision_arg(range.revision));
    args.set("limit", range.limit);
    if let Some((order, target)) = range.sort {
        args.set("sort_order", order);
        args.set("sort_target", target);
    }
    for (name, revision) in &range.filters {
        args.set(name, revision_arg(*revision));
    }
    args.set_flags(&range.flags)
}

fn put_args(put: &Put, names: &Names) -> Value {
    let mut args = Args::range(put.key, &End::None, names);
    args.set("value", put.value);
    args.set("lease", put.lease.map_or(0, |lease| names.lease(lease)));
    args.set_flags(&put.flags)
}

fn delete_args(delete: &Delete, names: &Names) -> Value {
    let mut args = Args::range(delete.key, &delete.end, names);
    args.set("prev_kv", delete.prev_kv);
    Value::Object(args.0)
}

fn compare_args(compare: &Compare, names: &Names) -> Value {
    let mut args = Args::range(compare.key, &compare.end, names);
    let lease = |lease: &Option<usize>| lease.map_or(0, |lease| names.lease(lease));
    let (target, name, operand) = match &compare.operand {
        Operand::Version(version) => ("VERSION", "version", json!(version)),
        Operand::Create(revision) => ("CREATE", "create_revision", revision_arg(*revision)),
        Operand::Mod(revision) => ("MOD", "mod_revision", revision_arg(*revision)),
        Operand::Value(value) => ("VALUE", "value", json!(value)),
        Operand::Lease(id) => ("LEASE", "lease", json!(lease(id))),
    };
    args.set("target", target);
    args.set("result", compare.result);
    // An operand at its default is sent, too: the client sends all.
    args.0.insert(name.to_owned(), operand);
    Value::Object(args.0)
}

fn txn_args(txn: &Txn, names: &Names) -> Value {
    let ops = |ops: &[Op]| ops.iter().map(|op| operation(op, names)).collect::<Value>();
    json!({
        "compare": txn.compare.iter().map(|one| compare_args(one, names)).collect::<Value>(),
        "success": ops(&txn.success),
        "failure": ops(&txn.failure),
    })
}

fn operation(op: &Op, names: &Names) -> Value {
    match op {
        Op::Range(range) => json!({ "request_range": range_args(range, names) }),
        Op::Put(put) => json!({ "request_put": put_args(put, names) }),
        Op::Delete(delete) => json!({ "request_delete_range": delete_args(delete, names) }),
        Op::Txn(txn) => json!({ "request_txn": txn_args(txn, names) }),
        _ => json!({}),
    }
}
