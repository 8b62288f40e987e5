//! How large messages are on the wire, and the limits on that.
//!
//! The model has no wire, but etcd refuses what is too large and splits watch answers by size
//! (`--max-request-bytes`). The sizes are those of proto3: a field with its default takes nothing, a
//! tag one byte up to field 15 (all that are used here), an integer is a varint. Fields of
//! `api/etcdserverpb/rpc.proto`.

use super::{
    request::{
        Compare, CompareTarget, DeleteRangeRequest, Enumerated, PutRequest, RangeRequest, Request,
        RequestOp, TxnRequest,
    },
    response::{Event, EventType, KeyValue, LeaderKey, ResponseHeader, WatchResponse},
};

/// The largest proposal (`DefaultMaxRequestBytes` in `server/embed/config.go`).
pub(crate) const REQUEST_BYTES_MAX: usize = 3 << 19;
/// The largest message that gRPC reads (`grpcOverheadBytes` in `v3rpc/grpc.go`); a watch answer that
/// may come in pieces is split at it too (`NewWatchServer` in `v3rpc/watch.go`).
pub(crate) const MESSAGE_BYTES_MAX: usize = REQUEST_BYTES_MAX + (512 << 10);

const TAG: usize = 1;

/// A number in groups of 7 bits.
fn varint(number: u64) -> usize {
    (70 - (number | 1).leading_zeros() as usize) / 7
}

fn int(number: i64) -> usize {
    unsigned(number as u64)
}

fn unsigned(number: u64) -> usize {
    if number == 0 { 0 } else { TAG + varint(number) }
}

fn flag(flag: bool) -> usize {
    if flag { TAG + 1 } else { 0 }
}

fn bytes(length: usize) -> usize {
    if length == 0 { 0 } else { message(length) }
}

/// A field that is a message takes its tag and its length even when it is empty.
fn message(length: usize) -> usize {
    TAG + varint(length as u64) + length
}

/// A known value here has a number below 128.
fn enumerated<T: Copy + Default + PartialEq>(value: Enumerated<T>) -> usize {
    match value {
        Enumerated::Known(value) => flag(value != T::default()),
        Enumerated::Unknown(number) => int(i64::from(number)),
    }
}

fn range(request: &RangeRequest) -> usize {
    bytes(request.key.len())
        + bytes(request.range_end.len())
        + int(request.limit)
        + int(request.revision)
        + enumerated(request.sort_order)
        + enumerated(request.sort_target)
        + flag(request.serializable)
        + flag(request.keys_only)
        + flag(request.count_only)
        + int(request.min_mod_revision)
        + int(request.max_mod_revision)
        + int(request.min_create_revision)
        + int(request.max_create_revision)
}

pub(super) fn put(request: &PutRequest) -> usize {
    bytes(request.key.len())
        + bytes(request.value.len())
        + int(request.lease)
        + flag(request.prev_kv)
        + flag(request.ignore_value)
        + flag(request.ignore_lease)
}

pub(super) fn delete_range(request: &DeleteRangeRequest) -> usize {
    bytes(request.key.len()) + bytes(request.range_end.len()) + flag(request.prev_kv)
}

fn compare(compare: &Compare) -> usize {
    // Equal and the version are the defaults. A member of a `oneof` is there even when it is 0; the
    // field of the range's end has number 64, whose tag takes two bytes.
    let operator = match compare.op {
        Enumerated::Known(op) => flag(op != super::request::CompareOp::Equal),
        Enumerated::Unknown(number) => int(i64::from(number)),
    };
    let (target, operand) = match &compare.target {
        CompareTarget::Version(number) => (0, TAG + varint(*number as u64)),
        CompareTarget::Create(number) | CompareTarget::Mod(number) => {
            (TAG + 1, TAG + varint(*number as u64))
        }
        CompareTarget::Value(value) => (TAG + 1, message(value.len())),
        CompareTarget::Lease(number) => (TAG + 1, TAG + varint(*number as u64)),
        CompareTarget::Unknown(number) => (int(i64::from(*number)), 0),
    };
    let range_end = match compare.range_end.len() {
        0 => 0,
        length => 1 + message(length),
    };
    operator + target + bytes(compare.key.len()) + operand + range_end
}

fn operation(op: &RequestOp) -> usize {
    match op {
        RequestOp::Range(request) => message(range(request)),
        RequestOp::Put(request) => message(put(request)),
        RequestOp::DeleteRange(request) => message(delete_range(request)),
        RequestOp::Txn(request) => message(txn(request)),
        RequestOp::Empty => 0,
    }
}

pub(super) fn txn(request: &TxnRequest) -> usize {
    let compares: usize = request.compare.iter().map(|one| message(compare(one))).sum();
    let ops = request.success.iter().chain(&request.failure);
    compares + ops.map(|op| message(operation(op))).sum::<usize>()
}

fn leader_key(leader: &Option<LeaderKey>) -> usize {
    leader.as_ref().map_or(0, |leader| {
        let LeaderKey { name, key, rev, lease } = leader;
        message(bytes(name.len()) + bytes(key.len()) + int(*rev) + int(*lease))
    })
}

/// The size of a request whose size can matter; 0 for those of a few numbers.
pub(super) fn request(request: &Request) -> usize {
    match request {
        Request::Range(request) => range(request),
        Request::Put(request) => put(request),
        Request::DeleteRange(request) => delete_range(request),
        Request::Txn(request) => txn(request),
        Request::Lock { name, lease } => bytes(name.len()) + int(*lease),
        Request::Unlock(name) | Request::Leader(name) | Request::Observe(name) => bytes(name.len()),
        Request::Campaign { name, value, lease } => {
            bytes(name.len()) + bytes(value.len()) + int(*lease)
        }
        Request::Proclaim { leader, value } => leader_key(leader) + bytes(value.len()),
        Request::Resign(leader) => leader_key(leader),
        _ => 0,
    }
}

/// The size of a proposal: the request and its id (`InternalRaftRequest` in `raft_internal.proto`;
/// the header with the id has number 100, whose tag takes two bytes).
pub(super) fn proposal(request: usize, id: u64) -> usize {
    message(request) + 1 + message(unsigned(id))
}

fn header(header: &ResponseHeader) -> usize {
    unsigned(header.cluster_id)
        + unsigned(header.member_id)
        + int(header.revision)
        + unsigned(header.raft_term)
}

fn pair(kv: &KeyValue) -> usize {
    bytes(kv.key.len())
        + int(kv.create_revision)
        + int(kv.mod_revision)
        + int(kv.version)
        + bytes(kv.value.len())
        + int(kv.lease)
}

/// What an event adds to a watch answer.
pub(super) fn event(event: &Event) -> usize {
    let previous = event.prev_kv.as_ref().map_or(0, |kv| message(pair(kv)));
    message(flag(event.event_type == EventType::Delete) + message(pair(&event.kv)) + previous)
}

/// A watch answer without its events.
pub(super) fn watch_frame(response: &WatchResponse) -> usize {
    response.header.as_ref().map_or(0, |one| message(header(one)))
        + int(response.watch_id)
        + flag(response.created)
        + flag(response.canceled)
        + int(response.compact_revision)
        + bytes(response.cancel_reason.len())
        + flag(response.fragment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A varint grows by a byte every 7 bits; a negative number takes all ten.
    #[test]
    fn varints_have_the_length_of_proto3() {
        let cases = [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)];
        for (number, length) in cases {
            assert_eq!(varint(number), length, "{number}");
        }
    }

    /// The size that a real server named when it refused this message.
    #[test]
    fn a_put_is_as_large_as_a_real_server_said() {
        let request =
            PutRequest { key: b"a".to_vec(), value: vec![b'x'; 2_200_000], ..Default::default() };
        assert_eq!(put(&request), 2_200_008);
    }
}
