//! Random sequences of operations, as values that shrink.

use proptest::{
    collection::vec,
    option, prop_oneof,
    sample::select,
    strategy::{BoxedStrategy, Just, Strategy},
};

/// Where a sequence runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On a server with other sequences: it keeps to its prefix.
    Shared,
    /// On a fresh server: it may compact, and read all keys.
    Fresh,
}

/// A revision in a request.
#[derive(Debug, Clone, Copy)]
pub enum Revision {
    /// As many after the first of the sequence.
    After(i64),
    Absolute(i64),
}

/// The end of a range.
#[derive(Debug, Clone)]
pub enum End {
    None,
    /// All keys with the key as a prefix.
    Prefix,
    /// All keys from the key on.
    FromKey,
    Key(&'static str),
}

#[derive(Debug, Clone)]
pub struct Range {
    pub key: &'static str,
    pub end: End,
    pub revision: Revision,
    pub limit: i64,
    pub sort: Option<(&'static str, &'static str)>,
    /// Flags and revision filters by their names in the proto.
    pub flags: Vec<&'static str>,
    pub filters: Vec<(&'static str, Revision)>,
}

#[derive(Debug, Clone)]
pub struct Put {
    pub key: &'static str,
    pub value: &'static str,
    pub lease: Option<usize>,
    pub flags: Vec<&'static str>,
}

#[derive(Debug, Clone)]
pub struct Delete {
    pub key: &'static str,
    pub end: End,
    pub prev_kv: bool,
}

/// What a comparison is of.
#[derive(Debug, Clone)]
pub enum Operand {
    Version(i64),
    Create(Revision),
    Mod(Revision),
    Value(&'static str),
    Lease(Option<usize>),
}

#[derive(Debug, Clone)]
pub struct Compare {
    pub key: &'static str,
    pub end: End,
    pub result: &'static str,
    pub operand: Operand,
}

#[derive(Debug, Clone)]
pub struct Txn {
    pub compare: Vec<Compare>,
    pub success: Vec<Op>,
    pub failure: Vec<Op>,
}

/// One operation; the first four can be in a txn.
#[derive(Debug, Clone)]
pub enum Op {
    Range(Range),
    Put(Put),
    Delete(Delete),
    Txn(Txn),
    Grant { lease: usize, ttl_s: i64 },
    Revoke(usize),
    TimeToLive { lease: usize, keys: bool },
    Leases,
    Compact(Revision),
}

/// Few keys, so that they meet; prefixes of each other, and the empty one.
const KEYS: &[&str] = &["a", "ab", "abc", "b", "a\0", "c", ""];
const VALUES: &[&str] = &["", "1", "2", "10", "x"];
/// Leases of a sequence; the last one is never granted.
pub const LEASES: usize = 4;

fn revision() -> impl Strategy<Value = Revision> {
    prop_oneof![
        8 => (0..14i64).prop_map(Revision::After),
        1 => Just(Revision::After(1000)),
        2 => Just(Revision::Absolute(0)),
        1 => Just(Revision::Absolute(-1)),
    ]
}

fn end(scope: Scope) -> BoxedStrategy<End> {
    let shared = prop_oneof![
        4 => Just(End::None),
        4 => Just(End::Prefix),
        2 => select(KEYS).prop_map(End::Key),
    ];
    match scope {
        Scope::Shared => shared.boxed(),
        Scope::Fresh => prop_oneof![5 => shared, 1 => Just(End::FromKey)].boxed(),
    }
}

fn lease() -> impl Strategy<Value = Option<usize>> {
    option::weighted(0.4, 0..LEASES + 1)
}

fn some_of(names: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::btree_set(select(names), 0..2)
        .prop_map(|names| names.into_iter().collect())
}

fn range(scope: Scope) -> impl Strategy<Value = Range> {
    let at = prop_oneof![3 => Just(Revision::Absolute(0)), 2 => revision()];
    let orders = select(&["NONE", "ASCEND", "DESCEND"][..]);
    let targets = select(&["KEY", "VERSION", "CREATE", "MOD", "VALUE"][..]);
    let limit = prop_oneof![4 => Just(0i64), 3 => 1..4i64, 1 => Just(-1i64)];
    let filter = select(
        &["min_mod_revision", "max_mod_revision", "min_create_revision", "max_create_revision"][..],
    );
    let flags = some_of(&["serializable", "keys_only", "count_only"]);
    let filters = vec((filter, revision()), 0..2);
    let sort = option::weighted(0.4, (orders, targets));
    (select(KEYS), end(scope), at, limit, sort, flags, filters).prop_map(
        |(key, end, revision, limit, sort, flags, filters)| Range {
            key,
            end,
            revision,
            limit,
            sort,
            flags,
            filters,
        },
    )
}

fn put() -> impl Strategy<Value = Put> {
    let flags = prop_oneof![
        3 => Just(Vec::new()),
        2 => some_of(&["prev_kv", "ignore_value", "ignore_lease"]),
    ];
    (select(KEYS), select(VALUES), lease(), flags).prop_map(|(key, value, lease, flags)| Put {
        key,
        value,
        lease,
        flags,
    })
}

fn delete(scope: Scope) -> impl Strategy<Value = Delete> {
    (select(KEYS), end(scope), proptest::bool::ANY).prop_map(|(key, end, prev_kv)| Delete {
        key,
        end,
        prev_kv,
    })
}

fn compare(scope: Scope) -> impl Strategy<Value = Compare> {
    let operand = prop_oneof![
        (0..4i64).prop_map(Operand::Version),
        revision().prop_map(Operand::Create),
        revision().prop_map(Operand::Mod),
        select(VALUES).prop_map(Operand::Value),
        lease().prop_map(Operand::Lease),
    ];
    let results = select(&["EQUAL", "GREATER", "LESS", "NOT_EQUAL"][..]);
    (select(KEYS), end(scope), results, operand).prop_map(|(key, end, result, operand)| Compare {
        key,
        end,
        result,
        operand,
    })
}

/// Operations of the store; `depth` txns may be nested in each other.
fn store_op(scope: Scope, depth: u32) -> BoxedStrategy<Op> {
    let simple = prop_oneof![
        3 => range(scope).prop_map(Op::Range),
        4 => put().prop_map(Op::Put),
        2 => delete(scope).prop_map(Op::Delete),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    prop_oneof![5 => simple, 3 => txn(scope, depth).prop_map(Op::Txn)].boxed()
}

fn txn(scope: Scope, depth: u32) -> impl Strategy<Value = Txn> {
    let ops = || vec(store_op(scope, depth - 1), 0..4);
    (vec(compare(scope), 0..3), ops(), ops()).prop_map(|(compare, success, failure)| Txn {
        compare,
        success,
        failure,
    })
}

/// Sequences of up to 24 operations.
pub fn sequences(scope: Scope) -> impl Strategy<Value = Vec<Op>> {
    let ttl_s = prop_oneof![4 => select(&[100i64, 200, 300][..]), 1 => Just(9_000_000_001)];
    let lease_op = prop_oneof![
        4 => (0..LEASES, ttl_s).prop_map(|(lease, ttl_s)| Op::Grant { lease, ttl_s }),
        1 => (0..LEASES).prop_map(Op::Revoke),
        1 => (0..LEASES, proptest::bool::ANY)
            .prop_map(|(lease, keys)| Op::TimeToLive { lease, keys }),
        1 => Just(Op::Leases),
    ];
    let op = prop_oneof![7 => store_op(scope, 2), 3 => lease_op];
    match scope {
        Scope::Shared => vec(op, 1..25).boxed(),
        Scope::Fresh => {
            let compact = prop_oneof![
                5 => (0..10i64).prop_map(Revision::After),
                1 => revision(),
            ];
            vec(prop_oneof![5 => op, 1 => compact.prop_map(Op::Compact)], 1..40).boxed()
        }
    }
}
