//! The table of requests (D7): what makes a resend harmless.
//!
//! Per domain, for each of the last [`TOKENS_MAX`] tokens: the number of its last admitted request
//! and a hash of it. The answer is not kept: a write's answer echoes the write, and the hash says
//! that it is the same one.

use super::{
    encoding::{EncodingError, Reader, Writer},
    protocol::Request,
};
use crate::history::{OpKind, RequestId};

/// How many tokens a domain remembers. One lock hands over one token at a time, so this covers a
/// resend that comes after as many hand-overs.
pub(super) const TOKENS_MAX: usize = 64;

/// The last requests of a domain, the most recent token last.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    id: RequestId,
    hash: u64,
}

/// How a request stands to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing speaks against it.
    New,
    /// This very request was applied before.
    Same,
    /// Its number was used for another request.
    Reused,
    /// A request of the same token with a higher number was applied.
    Superseded,
}

impl Table {
    /// Compares a request with the last one of its token.
    pub(super) fn standing(&self, id: RequestId, hash: u64) -> Standing {
        // From the end: nearly every request belongs to the most recent token.
        let Some(last) = self.entries.iter().rev().find(|entry| entry.id.token == id.token) else {
            return Standing::New;
        };
        match id.seq.cmp(&last.id.seq) {
            std::cmp::Ordering::Less => Standing::Superseded,
            std::cmp::Ordering::Greater => Standing::New,
            std::cmp::Ordering::Equal if hash == last.hash => Standing::Same,
            std::cmp::Ordering::Equal => Standing::Reused,
        }
    }

    /// Appends the entries, the most recent token last.
    pub(super) fn save(&self, out: &mut Writer) {
        out.u64(self.entries.len() as u64);
        for entry in &self.entries {
            out.i64(entry.id.token);
            out.u64(entry.id.seq);
            out.u64(entry.hash);
        }
    }

    /// Reads what [`Table::save`] wrote.
    pub(super) fn restored(from: &mut Reader<'_>) -> Result<Self, EncodingError> {
        let mut table = Table::default();
        for _ in 0..from.u64()? {
            let id = RequestId { token: from.i64()?, seq: from.u64()? };
            table.note(id, from.u64()?);
        }
        Ok(table)
    }

    /// Notes an admitted request.
    pub(super) fn note(&mut self, id: RequestId, hash: u64) {
        let entry = Entry { id, hash };
        match self.entries.iter().rposition(|entry| entry.id.token == id.token) {
            Some(at) if at + 1 == self.entries.len() => self.entries[at] = entry,
            Some(at) => {
                self.entries.remove(at);
                self.entries.push(entry);
            }
            None => {
                if self.entries.len() == TOKENS_MAX {
                    self.entries.remove(0);
                }
                self.entries.push(entry);
            }
        }
    }
}

/// A fixed hash (FNV-1a) of what a request asks for: it outlives the process, so it may not change.
pub(super) fn body_hash(request: &Request) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    eat(match request.op {
        OpKind::Read => b"r",
        OpKind::Write => b"w",
    });
    // The length keeps key and value apart.
    eat(&(request.key.len() as u64).to_le_bytes());
    eat(request.key.as_bytes());
    eat(request.val.as_bytes());
    hash
}
