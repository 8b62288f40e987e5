//! What the fenced storage must answer: data, mark and last requests of each domain (D7, D8).
//!
//! A [`Spec`] follows the rows of the apply log and says of each whether it is what the state
//! before it demands. It can begin empty, or knowing nothing: then it learns from what it sees, and
//! blames only what contradicts that. Rejections are let pass: limits and overload are no business
//! of the state.

use std::collections::BTreeMap;

use super::index::Row;
use crate::history::{RequestId, RowResult};

/// For so many tokens a domain must remember the last request (`storage::table`).
const TOKENS_MAX: usize = 64;

/// A row that the state does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The broken rule.
    pub rule: &'static str,
    /// Why, in words that follow on the description of the row.
    pub why: String,
}

/// The state of a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec<'h> {
    domains: BTreeMap<u32, Domain<'h>>,
    /// Whether what was not seen is not there.
    complete: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Domain<'h> {
    /// The value of each key that is known; `None` if the key is known not to be there.
    values: BTreeMap<u32, Option<&'h str>>,
    mark: Mark,
    requests: Vec<(RequestId, Body<'h>)>,
}

/// The greatest admitted token, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Mark {
    /// The greatest that was seen.
    seen: Option<i64>,
    /// What came before is greater than this: a refusal said so.
    before_above: Option<i64>,
    /// And at most this: an admission said so.
    before_upto: Option<i64>,
}

/// What a request asks for: kind, key, and the value of a write.
type Body<'h> = (bool, u32, Option<&'h str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    New,
    Same,
    Reused,
    Superseded,
    /// It may have come in the time that is not known.
    NotKnown,
}

impl<'h> Spec<'h> {
    /// The state of a new storage: nothing is there.
    pub fn empty() -> Self {
        Spec { domains: BTreeMap::new(), complete: true }
    }

    /// A state of which nothing is known.
    pub fn unknown() -> Self {
        Spec { domains: BTreeMap::new(), complete: false }
    }

    /// Judges a row by the state, then follows it.
    pub fn step(&mut self, row: &Row<'h>) -> Result<(), Wrong> {
        let judged = self.judge(row);
        self.follow(row);
        judged
    }

    /// Changes the state as the row says, right or wrong.
    pub fn follow(&mut self, row: &Row<'h>) {
        let written = row.is_write() && row.row.effect;
        if row.result() != RowResult::Admitted && !written {
            return;
        }
        let domain = self.domains.entry(row.domain).or_default();
        if written {
            domain.values.insert(row.key, row.row.value.as_deref());
        }
        if row.admitted() {
            if !row.is_write() && !self.complete {
                domain.values.entry(row.key).or_insert(row.row.value.as_deref());
            }
            domain.mark.seen = domain.mark.seen.max(token(row));
            if let Some(id) = row.row.id {
                domain.note(id, body(row));
            }
        }
    }

    fn judge(&mut self, row: &Row<'h>) -> Result<(), Wrong> {
        let found = row.result();
        if found == RowResult::Rejected || found == RowResult::Refused && token(row).is_none() {
            return without_effect(row, "rejected-but-written");
        }
        let complete = self.complete;
        let domain = self.domains.entry(row.domain).or_default();
        let standing = domain.standing(row, complete);
        if standing == Standing::Same && row.is_write() {
            let id = row.row.id.map_or(0, |id| id.seq);
            return match found {
                RowResult::Admitted => {
                    wrong("applied-twice", format!("although request {id} was applied before"))
                }
                RowResult::Refused => wrong(
                    "resend-refused",
                    format!("although it is a resend of request {id}, which was applied before"),
                ),
                _ => without_effect(row, "applied-twice"),
            };
        }
        if found == RowResult::Replayed {
            return match standing {
                Standing::NotKnown => without_effect(row, "applied-twice"),
                _ => wrong("never-applied", "although it had never been applied".to_owned()),
            };
        }
        if let Some(token) = token(row) {
            domain.mark.judge(token, found == RowResult::Refused, complete)?;
        }
        if found == RowResult::Refused {
            return without_effect(row, "refused-but-written");
        }
        match standing {
            Standing::Superseded => {
                let why = "although a later request of its token had been applied".to_owned();
                return wrong("out-of-order", why);
            }
            Standing::Reused => {
                let why = "although its number was used for another request".to_owned();
                return wrong("out-of-order", why);
            }
            Standing::New | Standing::Same | Standing::NotKnown => {}
        }
        match row.is_write() {
            true => Ok(()),
            false => domain.judge_read(row, complete),
        }
    }
}

impl<'h> Domain<'h> {
    fn standing(&self, row: &Row<'h>, complete: bool) -> Standing {
        let Some(id) = row.row.id else { return Standing::New };
        let known = self.requests.iter().rev().find(|(known, _)| known.token == id.token);
        let Some((last, asked)) = known else {
            return if complete { Standing::New } else { Standing::NotKnown };
        };
        match id.seq.cmp(&last.seq) {
            std::cmp::Ordering::Less => Standing::Superseded,
            std::cmp::Ordering::Greater => Standing::New,
            std::cmp::Ordering::Equal if *asked == body(row) => Standing::Same,
            std::cmp::Ordering::Equal => Standing::Reused,
        }
    }

    fn note(&mut self, id: RequestId, body: Body<'h>) {
        let known = self.requests.iter().rposition(|(known, _)| known.token == id.token);
        if let Some(at) = known {
            self.requests.remove(at);
        } else if self.requests.len() == TOKENS_MAX {
            self.requests.remove(0);
        }
        self.requests.push((id, body));
    }

    fn judge_read(&self, row: &Row<'h>, complete: bool) -> Result<(), Wrong> {
        let answered = row.row.value.as_deref();
        let there = match self.values.get(&row.key) {
            Some(value) => *value,
            None if complete => None,
            None => return Ok(()),
        };
        if answered == there {
            return Ok(());
        }
        let told = |value: Option<&str>| value.map_or("nothing".to_owned(), |v| format!("{v:?}"));
        wrong("read", format!("and answered {}, where {} stood", told(answered), told(there)))
    }
}

impl Mark {
    /// Whether a request with this token had to be refused, and whether it was.
    fn judge(&mut self, token: i64, refused: bool, complete: bool) -> Result<(), Wrong> {
        let seen = self.seen.unwrap_or(i64::MIN);
        match (refused, token < seen) {
            (true, true) => return Ok(()),
            (false, true) => {
                return wrong("stale-admitted", format!("after token {seen} had been admitted"));
            }
            (true, false) if complete => {
                let highest = self.seen.map_or("none".to_owned(), |seen| seen.to_string());
                let why = format!("although the highest admitted token is {highest}");
                return wrong("wrongly-refused", why);
            }
            (true, false) => self.before_above = self.before_above.max(Some(token)),
            (false, false) if complete => return Ok(()),
            // What was admitted earlier in the known time says nothing more of the time before.
            (false, false) => {
                let upto = self.before_upto.map_or(token, |upto| upto.min(token));
                self.before_upto = Some(upto);
            }
        }
        match (self.before_above, self.before_upto) {
            (Some(above), Some(upto)) if upto <= above && refused => {
                wrong("wrongly-refused", format!("although token {upto} had been admitted"))
            }
            (Some(above), Some(upto)) if upto <= above => {
                wrong("stale-admitted", format!("although token {above} had been refused"))
            }
            _ => Ok(()),
        }
    }
}

/// The token of a row; below 1 there is none, as in the old protocol.
fn token(row: &Row<'_>) -> Option<i64> {
    row.row.token.filter(|token| *token >= 1)
}

fn body<'h>(row: &Row<'h>) -> Body<'h> {
    let value = row.row.value.as_deref().filter(|_| row.is_write());
    (row.is_write(), row.key, value)
}

fn without_effect(row: &Row<'_>, rule: &'static str) -> Result<(), Wrong> {
    match row.row.effect {
        true => wrong(rule, "and yet the data changed by it".to_owned()),
        false => Ok(()),
    }
}

fn wrong(rule: &'static str, why: String) -> Result<(), Wrong> {
    Err(Wrong { rule, why })
}
