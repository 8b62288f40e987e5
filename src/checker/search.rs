//! The search for an order of operations when there is no apply log (D8).
//!
//! Operations are put in order as late as possible: only when one returns must it be in. Between
//! two returns the search keeps every state that the storage may be in, with the open operations
//! that have been put in order already. One whose outcome is unknown may be put in at any later
//! time, or never; behind a mark that is above its token it cannot be any more, and is forgotten.
//! So time is linear in the length, and exponential only in what is open at one moment.

use std::collections::BTreeSet;

use super::index::Index;
use crate::history::{Function, Outcome, Reply};

/// So many states are looked at; what is not decided by then is unknown.
pub const STEPS_MAX: u64 = 4_000_000;

/// More open operations than this at one moment are not searched.
const OPEN_MAX: usize = 64;

/// An operation at the storage that may have had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'h> {
    /// Position in [`Index::ops`].
    pub op: usize,
    /// `seq` of its invocation.
    pub invoke: u64,
    /// `seq` of its ok; none if its outcome is unknown.
    pub ok: Option<u64>,
    /// Domain and key.
    pub key: (&'h str, &'h str),
    /// The token that it carries.
    pub token: Option<i64>,
    /// What it does.
    pub act: Act<'h>,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act<'h> {
    /// It read this; none if what it read is unknown.
    Read(Option<Option<&'h str>>),
    /// It writes this.
    Write(&'h str),
}

/// What the search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// There is an order.
    Order,
    /// There is none up to the return of this operation, a position in [`Index::ops`].
    None {
        /// The operation.
        op: usize,
    },
    /// It was given up, and why.
    Unknown(String),
}

/// The operations of a history that may have had an effect at the storage, or saw one.
pub fn calls<'h>(index: &Index<'h>) -> Vec<Call<'h>> {
    let call = |(at, op): (usize, &super::index::Op<'h>)| {
        let (domain, key) = match op.f {
            Function::Enter { domain, key }
            | Function::Read { domain, key }
            | Function::Write { domain, key, .. }
            | Function::FinalRead { domain, key } => (domain.as_str(), key.as_str()),
            _ => return None,
        };
        let token = op.holding.and_then(|holding| index.holdings[holding].token);
        let (ok, read) = match op.end {
            Some((_, Outcome::Fail(_))) => return None,
            Some((seq, Outcome::Ok(Reply::Value(value)))) => (Some(seq), Some(value.as_deref())),
            Some((seq, Outcome::Ok(_))) => (Some(seq), None),
            Some((_, Outcome::Unknown(_))) | None => (None, None),
        };
        let act = match op.f {
            Function::Write { value, .. } => Act::Write(value),
            _ => Act::Read(read),
        };
        // A read that nobody was told of and that carries no token leaves no trace.
        let traceless = ok.is_none() && token.is_none() && matches!(act, Act::Read(_));
        let call = Call { op: at, invoke: op.invoke, ok, key: (domain, key), token, act };
        (!traceless).then_some(call)
    };
    index.ops.iter().enumerate().filter_map(call).collect()
}

/// A state that the storage may be in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State<'h> {
    /// The mark of each domain.
    marks: Vec<i64>,
    /// The value of each key.
    values: Vec<Option<&'h str>>,
    /// The open operations that are in, by their slot.
    done: u64,
}

/// An operation with its names as numbers.
#[derive(Debug, Clone, Copy)]
struct Open<'h> {
    call: Call<'h>,
    domain: usize,
    key: usize,
}

impl<'h> Open<'h> {
    fn alive(&self, state: &State<'h>) -> bool {
        self.call.token.is_none_or(|token| token >= state.marks[self.domain])
    }

    /// The state after this operation, if it may be done in this one.
    fn after(&self, state: &State<'h>, slot: usize) -> Option<State<'h>> {
        if !self.alive(state) {
            return None;
        }
        let mut next = state.clone();
        next.done |= 1 << slot;
        if let Some(token) = self.call.token {
            next.marks[self.domain] = token;
        }
        match self.call.act {
            Act::Read(Some(value)) if value != state.values[self.key] => return None,
            Act::Read(_) => {}
            Act::Write(value) => next.values[self.key] = Some(value),
        }
        Some(next)
    }
}

/// Looks for an order.
pub fn search(calls: &[Call<'_>], steps_max: u64) -> Found {
    let mut keys: Vec<(&str, &str)> = calls.iter().map(|call| call.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut domains: Vec<&str> = keys.iter().map(|(domain, _)| *domain).collect();
    domains.dedup();
    let open = |call: &Call<'_>| {
        let domain = domains.partition_point(|name| *name < call.key.0);
        (domain, keys.partition_point(|key| *key < call.key))
    };
    // A return comes before what was invoked at the same place: there is none, each has its own.
    let mut events: Vec<(u64, usize, bool)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        events.push((call.invoke, at, false));
        events.extend(call.ok.map(|ok| (ok, at, true)));
    }
    events.sort_unstable();
    let start =
        State { marks: vec![i64::MIN; domains.len()], values: vec![None; keys.len()], done: 0 };
    let mut states = BTreeSet::from([start]);
    let mut slots: Vec<Option<Open<'_>>> = vec![None; OPEN_MAX];
    let mut steps = 0;
    for (_, at, returns) in events {
        let call = calls[at];
        if !returns {
            let Some(slot) = slots.iter().position(Option::is_none) else {
                return Found::Unknown(format!("more than {OPEN_MAX} operations are open at once"));
            };
            let (domain, key) = open(&call);
            slots[slot] = Some(Open { call, domain, key });
            continue;
        }
        let is_it = |slot: &Option<Open<'_>>| slot.is_some_and(|open| open.call.op == call.op);
        let Some(slot) = slots.iter().position(is_it) else { continue };
        let Some(next) = with(&states, &slots, slot, &mut steps, steps_max) else {
            return Found::Unknown(format!("not decided within {steps_max} steps"));
        };
        if next.is_empty() {
            return Found::None { op: call.op };
        }
        states = next;
        slots[slot] = None;
        states = forget(states, &mut slots);
    }
    Found::Order
}

/// Every state in which the operation of this slot is in, without its mark; `None` if the budget
/// is used up.
fn with<'h>(
    states: &BTreeSet<State<'h>>,
    slots: &[Option<Open<'h>>],
    slot: usize,
    steps: &mut u64,
    steps_max: u64,
) -> Option<BTreeSet<State<'h>>> {
    let mut seen: BTreeSet<State<'h>> = states.clone();
    let mut left: Vec<State<'h>> = states.iter().cloned().collect();
    let mut result = BTreeSet::new();
    while let Some(mut state) = left.pop() {
        *steps += 1;
        if *steps > steps_max {
            return None;
        }
        if state.done & (1 << slot) != 0 {
            state.done &= !(1 << slot);
            result.insert(state);
            continue;
        }
        for (other, open) in slots.iter().enumerate() {
            let Some(open) = open.filter(|_| state.done & (1 << other) == 0) else { continue };
            if let Some(next) = open.after(&state, other)
                && seen.insert(next.clone())
            {
                left.push(next);
            }
        }
    }
    Some(result)
}

/// Gives up the slots of operations of unknown outcome that are in, or cannot be any more, in every
/// state.
fn forget<'h>(states: BTreeSet<State<'h>>, slots: &mut [Option<Open<'h>>]) -> BTreeSet<State<'h>> {
    let mut over = 0u64;
    for (slot, held) in slots.iter_mut().enumerate() {
        let Some(open) = held.filter(|open| open.call.ok.is_none()) else { continue };
        let settled = |state: &State<'h>| state.done & (1 << slot) != 0 || !open.alive(state);
        if states.iter().all(settled) {
            over |= 1 << slot;
            *held = None;
        }
    }
    if over == 0 {
        return states;
    }
    let clear = |mut state: State<'h>| {
        state.done &= !over;
        state
    };
    states.into_iter().map(clear).collect()
}
