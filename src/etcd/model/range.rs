//! Key ranges as etcd reads them.
//!
//! An empty end is the single key; the end `"\0"` is everything from the key on; any other end is
//! excluded, and at or before the key the range is empty (`mkGteRange` in
//! `server/etcdserver/txn/txn.go`).

use std::ops::Bound;

use bytes::Bytes;

/// A range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: Bytes,
    pub(crate) end: End,
}

/// Where a range ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It is one key.
    Single,
    /// It has no end.
    Open,
    /// Before this key.
    Before(Bytes),
}

impl Range {
    /// The range of a request's `key` and `range_end`.
    pub(crate) fn new(key: &[u8], range_end: &[u8]) -> Self {
        let end = match range_end {
            [] => End::Single,
            [0] => End::Open,
            end => End::Before(Bytes::copy_from_slice(end)),
        };
        Range { start: Bytes::copy_from_slice(key), end }
    }

    /// Whether no key can be in it.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.end, End::Before(end) if *end <= self.start)
    }

    /// Whether the key is in it.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match &self.end {
            End::Single => self.start == key,
            End::Open => key >= &self.start[..],
            End::Before(end) => key >= &self.start[..] && key < &end[..],
        }
    }

    /// As bounds of an ordered map, which must not be asked for an empty range.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let start = Bound::Included(&self.start[..]);
        match &self.end {
            End::Single => (start, Bound::Included(&self.start[..])),
            End::Open => (start, Bound::Unbounded),
            End::Before(end) => (start, Bound::Excluded(&end[..])),
        }
    }
}

/// The end of the range of all keys with this prefix; `"\0"` if there is none, as the clients send.
pub(crate) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte < 0xff) {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        }
        None => vec![0],
    }
}
