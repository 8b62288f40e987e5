//! A second, plain fenced store, of which a bug gets one decision wrong.
//!
//! It decides as [`crate::storage::Store`] behind a monotonic guard does, written again with every
//! decision in a method of [`StorePolicy`]. A bug is a policy with one method of its own. The
//! policy that changes nothing must pass the judge: that is tested, or a catch would prove nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Site;
use crate::{
    history::{OpKind, RowResult},
    storage::{Applied, EncodingError, Request, Response, StateMachine, protocol::KEY_NOT_FOUND},
    system::MakeStorage,
};

/// The decisions of a fenced store.
pub(crate) trait StorePolicy: Send + Sync + 'static {
    /// What has one mark.
    fn mark_name(&self, request: &Request) -> String {
        request.domain.clone()
    }

    /// Whether a token is refused at a mark. `before` is the mark before the last admitted request.
    fn is_stale(&self, token: i64, mark: i64, _before: i64) -> bool {
        token < mark
    }

    /// Whether an admitted request of this kind raises the mark.
    fn raises_mark(&self, _op: OpKind) -> bool {
        true
    }

    /// Whether a refused write is done all the same.
    fn does_refused_write(&self) -> bool {
        false
    }

    /// Whether a request that comes again is answered from the table, before the fence.
    fn answers_again(&self, op: OpKind) -> bool {
        op == OpKind::Write
    }

    /// Whether the fence is asked before the table.
    fn fences_first(&self) -> bool {
        false
    }

    /// Whether there is a table of requests at all; without, their numbers mean nothing (D7).
    fn has_table(&self) -> bool {
        true
    }

    /// Whether a request below the last number of its token is rejected.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Whether an admitted request is kept on the disk.
    fn keeps(&self, _request: &Request) -> bool {
        true
    }

    /// Looks at what came back from the disk.
    fn recovered(&self, _memory: &mut Memory) {}
}

/// The policy that changes nothing.
#[cfg(test)]
pub(crate) struct RightStore;
#[cfg(test)]
impl StorePolicy for RightStore {}

/// The policy that keeps no table of requests, and says so: nothing more is promised of resends.
#[cfg(test)]
pub(crate) struct Tableless;
#[cfg(test)]
impl StorePolicy for Tableless {
    fn has_table(&self) -> bool {
        false
    }
}

/// All that a plain store knows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) values: BTreeMap<String, String>,
    /// The mark, and the one before the last admitted request.
    pub(crate) marks: BTreeMap<String, (i64, i64)>,
    /// By token: the last number, its request and its answer.
    pub(crate) table: BTreeMap<i64, Last>,
}

/// The last request of a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Last {
    seq: u64,
    op: OpKind,
    key: String,
    val: String,
    answer: Option<String>,
}

/// The store.
struct PlainStore<P> {
    policy: P,
    memory: Memory,
    /// Whether what comes is new, and not what the disk had: that has passed the fence before.
    live: bool,
}

/// A maker of plain stores with this policy.
pub(crate) fn plain_store<P: StorePolicy>(
    policy: impl Fn(Site) -> P + Send + Sync + 'static,
    site: &Site,
) -> MakeStorage {
    let site = site.clone();
    std::sync::Arc::new(move || {
        Box::new(PlainStore {
            policy: policy(site.clone()),
            memory: Memory::default(),
            live: false,
        })
    })
}

fn place(request: &Request) -> String {
    format!("{}\n{}", request.domain, request.key)
}

impl<P: StorePolicy> PlainStore<P> {
    fn admit(&mut self, request: &Request, mark: String) -> Applied {
        let token = request.version.filter(|token| *token >= 1);
        if let Some(token) = token {
            let raises = self.policy.raises_mark(request.op);
            let known = self.memory.marks.entry(mark).or_default();
            *known = (if raises { token.max(known.0) } else { known.0 }, known.0);
        }
        let value = match request.op {
            OpKind::Read => self.memory.values.get(&place(request)).cloned(),
            OpKind::Write => {
                self.memory.values.insert(place(request), request.val.clone());
                Some(request.val.clone())
            }
        };
        if let (Some(token), Some(seq), true) = (token, request.seq, self.policy.has_table()) {
            let (key, val) = (place(request), request.val.clone());
            let last = Last { seq, op: request.op, key, val, answer: value.clone() };
            self.memory.table.insert(token, last);
        }
        let effect = request.op == OpKind::Write;
        Applied { response: answer(request, value), result: RowResult::Admitted, effect }
    }
}

fn answer(request: &Request, value: Option<String>) -> Response {
    match value {
        Some(value) => Response::ok(value, request.version.unwrap_or(0)),
        None => Response::error(KEY_NOT_FOUND),
    }
}

impl<P: StorePolicy> StateMachine for PlainStore<P> {
    fn apply(&mut self, request: &Request) -> Applied {
        let mark = self.policy.mark_name(request);
        let Some(token) = request.version.filter(|token| *token >= 1) else {
            return match request.op {
                OpKind::Read => self.admit(request, mark),
                OpKind::Write => Applied::rejected("a write needs a token of 1 or more"),
            };
        };
        let last = request.seq.and_then(|_| self.memory.table.get(&token));
        let same = last.filter(|last| {
            let asked = (last.op, &last.key, &last.val);
            Some(last.seq) == request.seq && asked == (request.op, &place(request), &request.val)
        });
        let (known, before) = self.memory.marks.get(&mark).copied().unwrap_or_default();
        let fenced = self.policy.is_stale(token, known, before) && self.live;
        let again = self.policy.answers_again(request.op);
        // Each decision is asked for, whether or not it matters now: a bug counts how often.
        let (fences_first, keeps_order) = (self.policy.fences_first(), self.policy.keeps_order());
        let passes = !(fenced && fences_first);
        if let Some(same) = same.filter(|_| again && passes) {
            let response = answer(request, same.answer.clone());
            return Applied { response, result: RowResult::Replayed, effect: false };
        }
        let late = last.is_some_and(|last| request.seq.is_some_and(|seq| seq < last.seq));
        let does_refused_write = self.policy.does_refused_write();
        if fenced {
            let mut refused = Applied::refused(format!("stale token {token}, the mark is {known}"));
            if request.op == OpKind::Write && does_refused_write {
                self.memory.values.insert(place(request), request.val.clone());
                refused.effect = true;
            }
            return refused;
        }
        if late && keeps_order {
            return Applied::rejected("superseded by a later request of this token");
        }
        self.admit(request, mark)
    }

    fn keeps(&self, request: &Request, applied: &Applied) -> bool {
        let changes = request.op == OpKind::Write || request.version.is_some();
        applied.result == RowResult::Admitted && changes && self.policy.keeps(request)
    }

    fn numbers_requests(&self) -> bool {
        self.policy.has_table()
    }

    fn recovered(&mut self) {
        self.policy.recovered(&mut self.memory);
        self.live = true;
    }

    fn name(&self) -> String {
        "plain".to_owned()
    }

    fn save(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&self.memory).ok()
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), EncodingError> {
        self.memory =
            serde_json::from_slice(saved).map_err(|error| EncodingError(error.to_string()))?;
        Ok(())
    }
}
