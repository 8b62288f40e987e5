//! The state machine: domains, values, the guard, and the table of requests.
//!
//! Synchronous, without clock or I/O. The order of decisions is that of D7: an applied write that
//! comes again is answered as before, before the fence speaks; then the fence; then the order of
//! requests under one token. Reads are never answered from the table: they run again, fenced.

use std::collections::BTreeMap;

use super::{
    encoding::{EncodingError, Reader, Writer},
    guard::{Ask, Decision, Guard, GuardKind},
    protocol::{KEY_NOT_FOUND, Request, Response},
    table::{Standing, Table, body_hash},
};
use crate::history::{OpKind, RowResult};

/// A storage's logic: one request after another, each applied at one moment.
pub trait StateMachine: Send {
    /// Applies a request.
    fn apply(&mut self, request: &Request) -> Applied;

    /// What it calls itself in the files that it is kept in: another name does not read them.
    fn name(&self) -> String {
        "own".to_owned()
    }

    /// Whether it keeps a table of requests, so that a resend is harmless (D7). If not, the numbers
    /// of requests do not appear in the apply log, and nothing is demanded of them.
    fn numbers_requests(&self) -> bool {
        false
    }

    /// The whole state as bytes, for [`StateMachine::restore`]; `None` if it cannot be kept on a
    /// disk. What comes later and changes the state must be kept: see [`StateMachine::keeps`].
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes the state of an earlier life, before the first request.
    ///
    /// # Errors
    /// When the bytes are not what [`StateMachine::save`] gives.
    fn restore(&mut self, _saved: &[u8]) -> Result<(), EncodingError> {
        Err(EncodingError("this storage cannot be kept on a disk".to_owned()))
    }

    /// Which requests the journal keeps, to be applied again after a restart: all that change the
    /// state. By default those that were admitted and are writes, or reads with a version, because
    /// such a read raises the mark. Asked after the application.
    fn keeps(&self, request: &Request, applied: &Applied) -> bool {
        let changes = request.op == OpKind::Write || request.version.is_some();
        applied.result == RowResult::Admitted && changes
    }

    /// Everything that the disk had has been applied: what comes now is new. Told once a life.
    fn recovered(&mut self) {}
}

/// What a state machine did with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The answer.
    pub response: Response,
    /// What became of the request; a rejected one is answered with status 400, others with 200.
    pub result: RowResult,
    /// Whether the data changed by it.
    pub effect: bool,
}

impl Applied {
    /// Refused by the fence, with the text of the answer.
    pub fn refused(text: impl Into<String>) -> Self {
        let response = Response::error(text);
        Applied { response, result: RowResult::Refused, effect: false }
    }

    /// Rejected before the fence was asked, with the text of the answer.
    pub fn rejected(text: impl Into<String>) -> Self {
        let response = Response::error(text);
        Applied { response, result: RowResult::Rejected, effect: false }
    }
}

/// The fenced key-value store, in memory.
pub struct Store {
    guard: Box<dyn Guard>,
    domains: BTreeMap<String, Domain>,
}

/// What one lock protects.
#[derive(Default)]
struct Domain {
    values: BTreeMap<String, Value>,
    table: Table,
}

/// A value with the version it was written under.
struct Value {
    val: String,
    version: i64,
}

impl Store {
    /// An empty store behind this guard.
    pub fn new(guard: Box<dyn Guard>) -> Self {
        Store { guard, domains: BTreeMap::new() }
    }

    /// An empty store behind a guard of the crate.
    pub fn of_kind(kind: GuardKind) -> Self {
        Store::new(kind.build())
    }
}

impl StateMachine for Store {
    fn apply(&mut self, request: &Request) -> Applied {
        let id = request.id();
        if request.seq.is_some() && id.is_none_or(|id| id.token < 1) {
            return Applied::rejected(
                "field \"seq\" needs the token it belongs to: send \"version\", an integer >= 1",
            );
        }
        let domain = self.domains.get(&request.domain);
        let numbered = id.map(|id| (id, body_hash(request)));
        let standing = match (domain, numbered) {
            (Some(domain), Some((id, hash))) => domain.table.standing(id, hash),
            _ => Standing::New,
        };
        if standing == Standing::Same && request.op == OpKind::Write {
            let response = Response::ok(request.val.clone(), request.version.unwrap_or(0));
            return Applied { response, result: RowResult::Replayed, effect: false };
        }
        let ask = Ask {
            domain: &request.domain,
            key: &request.key,
            op: request.op,
            version: request.version,
            stored: domain.and_then(|domain| domain.values.get(&request.key)).map(|v| v.version),
        };
        match self.guard.check(&ask) {
            Decision::Admit => {}
            Decision::Refuse(text) => return Applied::refused(text),
            Decision::Malformed(text) => return Applied::rejected(text),
        }
        match standing {
            Standing::New | Standing::Same => {}
            Standing::Superseded => return Applied::rejected(superseded(request)),
            Standing::Reused => return Applied::rejected(reused(request)),
        }
        self.guard.admitted(&ask);
        if let Some((id, hash)) = numbered {
            self.domain(&request.domain).table.note(id, hash);
        }
        match request.op {
            OpKind::Read => self.read(request),
            OpKind::Write => self.write(request),
        }
    }

    fn name(&self) -> String {
        format!("store, guard {}", self.guard.name())
    }

    fn numbers_requests(&self) -> bool {
        true
    }

    fn save(&self) -> Option<Vec<u8>> {
        let mut out = Writer::default();
        out.bytes(&self.guard.save()?);
        for (name, domain) in &self.domains {
            out.bytes(name.as_bytes());
            domain.table.save(&mut out);
            out.u64(domain.values.len() as u64);
            for (key, value) in &domain.values {
                out.bytes(key.as_bytes());
                out.bytes(value.val.as_bytes());
                out.i64(value.version);
            }
        }
        Some(out.finish())
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), EncodingError> {
        let mut from = Reader::new(saved);
        self.guard.restore(from.bytes()?)?;
        while !from.is_empty() {
            let name = from.text()?;
            let mut domain = Domain { table: Table::restored(&mut from)?, ..Domain::default() };
            for _ in 0..from.u64()? {
                let key = from.text()?;
                let value = Value { val: from.text()?, version: from.i64()? };
                domain.values.insert(key, value);
            }
            self.domains.insert(name, domain);
        }
        Ok(())
    }
}

impl Store {
    /// The domain of this name, made if it is new.
    fn domain(&mut self, name: &str) -> &mut Domain {
        if !self.domains.contains_key(name) {
            self.domains.insert(name.to_owned(), Domain::default());
        }
        self.domains.get_mut(name).expect("it was inserted just now if it was missing")
    }

    fn read(&self, request: &Request) -> Applied {
        let domain = self.domains.get(&request.domain);
        let response = match domain.and_then(|domain| domain.values.get(&request.key)) {
            Some(value) => Response::ok(value.val.clone(), value.version),
            None => Response::error(KEY_NOT_FOUND),
        };
        Applied { response, result: RowResult::Admitted, effect: false }
    }

    fn write(&mut self, request: &Request) -> Applied {
        let version = request.version.unwrap_or(0);
        let domain = self.domain(&request.domain);
        match domain.values.get_mut(&request.key) {
            Some(value) => {
                value.val.clone_from(&request.val);
                value.version = version;
            }
            None => {
                let value = Value { val: request.val.clone(), version };
                domain.values.insert(request.key.clone(), value);
            }
        }
        let response = Response::ok(request.val.clone(), version);
        Applied { response, result: RowResult::Admitted, effect: true }
    }
}

fn superseded(request: &Request) -> String {
    format!(
        "field \"seq\": {} is superseded by a later request of token {}: number requests upwards",
        request.seq.unwrap_or(0),
        request.version.unwrap_or(0)
    )
}

fn reused(request: &Request) -> String {
    format!(
        "field \"seq\": {} was used for another request of token {}: use the next number",
        request.seq.unwrap_or(0),
        request.version.unwrap_or(0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(val: &str, token: i64, seq: u64) -> Request {
        let write = Request::write("k", val, token);
        Request { domain: "d".into(), seq: Some(seq), ..write }
    }

    fn read(token: i64, seq: u64) -> Request {
        let read = Request::read("k");
        Request { domain: "d".into(), version: Some(token), seq: Some(seq), ..read }
    }

    fn result(store: &mut Store, request: &Request) -> (RowResult, bool) {
        let applied = store.apply(request);
        (applied.result, applied.effect)
    }

    const ADMITTED: RowResult = RowResult::Admitted;
    const REFUSED: RowResult = RowResult::Refused;
    const REJECTED: RowResult = RowResult::Rejected;
    const REPLAYED: RowResult = RowResult::Replayed;

    /// A resend of an applied write gets its original answer even when the fence has moved on.
    #[test]
    fn a_resend_is_answered_before_the_fence_speaks() {
        let mut store = Store::of_kind(GuardKind::Monotonic);
        let first = store.apply(&write("a", 5, 1));
        assert_eq!(result(&mut store, &read(6, 1)), (ADMITTED, false));
        assert_eq!(result(&mut store, &write("b", 6, 2)), (ADMITTED, true));
        let again = store.apply(&write("a", 5, 1));
        assert_eq!((again.result, again.effect), (REPLAYED, false));
        assert_eq!(again.response, first.response);
        // The same holder's next write, and its read, are stale.
        assert_eq!(result(&mut store, &write("c", 5, 2)), (REFUSED, false));
        assert_eq!(result(&mut store, &read(5, 3)), (REFUSED, false));
        assert_eq!(store.apply(&read(6, 3)).response.val, "b");
    }

    /// Numbers order the requests of one token: a late original has no effect.
    #[test]
    fn numbers_order_a_token() {
        for kind in GuardKind::ALL {
            let mut store = Store::of_kind(kind);
            assert_eq!(result(&mut store, &write("a", 5, 1)), (ADMITTED, true));
            assert_eq!(result(&mut store, &write("b", 5, 1)), (REJECTED, false), "{kind}");
            assert_eq!(result(&mut store, &read(5, 2)), (ADMITTED, false));
            // A read comes again: it runs again. A write may not take its number.
            assert_eq!(result(&mut store, &read(5, 2)), (ADMITTED, false));
            assert_eq!(result(&mut store, &write("b", 5, 2)), (REJECTED, false));
            let late = store.apply(&write("a", 5, 1));
            assert_eq!((late.result, late.effect), (REJECTED, false));
            assert!(late.response.err.contains("superseded by a later request"));
        }
    }

    /// Refused and malformed requests leave no mark; domains do not share one.
    #[test]
    fn only_admitted_requests_leave_a_mark() {
        let mut store = Store::of_kind(GuardKind::Monotonic);
        assert_eq!(result(&mut store, &write("a", 5, 3)), (ADMITTED, true));
        // Out of order under a higher number, then without a token: neither moves the mark.
        assert_eq!(result(&mut store, &write("z", 5, 2)), (REJECTED, false));
        assert_eq!(store.apply(&Request::write("k", "z", 0)).result, REJECTED);
        let bare = Request { seq: Some(1), ..Request::read("k") };
        assert_eq!(store.apply(&bare).result, REJECTED);
        assert_eq!(result(&mut store, &write("b", 5, 4)), (ADMITTED, true));
        assert_eq!(store.apply(&Request::write("k", "x", 1)).result, ADMITTED);
        assert_eq!(store.apply(&Request::read("k")).response.val, "x");
    }

    /// The table forgets the least recent token first, and then the fence alone decides.
    #[test]
    fn the_table_is_bounded() {
        let mut store = Store::of_kind(GuardKind::Monotonic);
        for token in 1..=65 {
            assert_eq!(result(&mut store, &write("a", token, 1)), (ADMITTED, true));
        }
        assert_eq!(result(&mut store, &write("a", 2, 1)), (REPLAYED, false));
        assert_eq!(result(&mut store, &write("a", 1, 1)), (REFUSED, false));
    }

    /// A restored store decides as the saved one: values, marks and numbers are all there.
    #[test]
    fn a_saved_store_is_the_same_store() {
        for kind in GuardKind::ALL {
            let mut store = Store::of_kind(kind);
            store.apply(&write("a", 5, 1));
            store.apply(&read(5, 2));
            store.apply(&Request { domain: String::new(), ..write("b", 9, 4) });
            let saved = store.save().unwrap();
            let mut again = Store::of_kind(kind);
            again.restore(&saved).unwrap();
            assert_eq!((again.save(), again.name()), (Some(saved.clone()), store.name()));
            let asked = [write("c", 4, 1), write("b", 5, 2), write("a", 5, 1), read(6, 1)];
            for request in asked {
                assert_eq!(store.apply(&request), again.apply(&request), "{kind}");
            }
            assert!(Store::of_kind(kind).restore(&saved[..saved.len() - 1]).is_err());
        }
    }
}
