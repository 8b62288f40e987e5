//! The search for an order (D8) a second time: every permutation of the operations is tried.
//!
//! For small histories without an apply log only: time grows with the factorial of their length.

use std::collections::BTreeMap;

use leasehold::history::{Event, EventKind, Function, History, HoldingId, OpId, Outcome, Reply};

/// An operation at the storage that may have had its effect.
#[derive(Clone)]
struct Op<'h> {
    invoke: u64,
    /// `seq` of its ok; none as long as nobody was told.
    ok: Option<u64>,
    place: (&'h str, &'h str),
    token: Option<i64>,
    write: Option<&'h str>,
    /// What it was told, if it was told anything.
    told: Option<&'h Option<String>>,
}

fn returned(history: &History, op: OpId) -> Option<(u64, &Outcome)> {
    history.events.iter().find_map(|event| match &event.kind {
        EventKind::Return { op: of, outcome } if *of == op => Some((event.seq, outcome)),
        _ => None,
    })
}

/// The token that the acquire of a holding answered.
fn token(history: &History, wanted: HoldingId) -> Option<i64> {
    let acquire = history.events.iter().find_map(|event| match &event.kind {
        EventKind::Invoke { op, holding, f: Function::Lock { .. } } => {
            (*holding == Some(wanted)).then_some(*op)
        }
        _ => None,
    });
    match returned(history, acquire?)? {
        (_, Outcome::Ok(Reply::Acquired { token, .. })) => Some(*token),
        _ => None,
    }
}

fn op<'h>(history: &'h History, event: &'h Event) -> Option<Op<'h>> {
    let EventKind::Invoke { op, holding, f } = &event.kind else { return None };
    let (place, write) = match f {
        Function::Enter { domain, key }
        | Function::Read { domain, key }
        | Function::FinalRead { domain, key } => ((domain.as_str(), key.as_str()), None),
        Function::Write { domain, key, value, .. } => {
            ((domain.as_str(), key.as_str()), Some(value.as_str()))
        }
        _ => return None,
    };
    let (ok, told) = match returned(history, *op) {
        Some((_, Outcome::Fail(_))) => return None,
        Some((seq, Outcome::Ok(Reply::Value(value)))) => (Some(seq), Some(value)),
        Some((seq, Outcome::Ok(_))) => (Some(seq), None),
        Some((_, Outcome::Unknown(_))) | None => (None, None),
    };
    let token = holding.and_then(|holding| token(history, holding));
    Some(Op { invoke: event.seq, ok, place, token, write, told })
}

/// What is known of an operation at an event.
fn so_far<'h>(op: &Op<'h>, seq: u64) -> Option<Op<'h>> {
    let ok = op.ok.filter(|ok| *ok <= seq);
    let told = op.told.filter(|_| ok.is_some());
    (op.invoke <= seq).then(|| Op { ok, told, ..op.clone() })
}

#[derive(Clone, Default)]
struct State<'h> {
    values: BTreeMap<(&'h str, &'h str), &'h str>,
    marks: BTreeMap<&'h str, i64>,
}

impl<'h> State<'h> {
    /// The state after an operation that the fence lets through, if the answer is the right one.
    fn after(&self, op: &Op<'h>) -> Option<State<'h>> {
        let mut next = self.clone();
        let stands = self.values.get(&op.place).copied();
        if let Some(token) = op.token {
            let mark = next.marks.entry(op.place.0).or_insert(token);
            if token < *mark {
                return None;
            }
            *mark = token;
        }
        if let Some(value) = op.write {
            next.values.insert(op.place, value);
        } else if op.told.is_some_and(|told| told.as_deref() != stands) {
            return None;
        }
        Some(next)
    }
}

/// Whether some order of some of the operations, those of unknown outcome at will, is in real time
/// and gives everybody the right answer.
fn explained(state: &State<'_>, left: &[Op<'_>]) -> bool {
    if left.iter().all(|op| op.ok.is_none()) {
        return true;
    }
    (0..left.len()).any(|at| {
        let op = &left[at];
        let in_time = left.iter().all(|other| other.ok.is_none_or(|ok| op.invoke < ok));
        let Some(next) = state.after(op).filter(|_| in_time) else { return false };
        let mut rest = left.to_vec();
        rest.remove(at);
        explained(&next, &rest)
    })
}

/// How many operations can be judged, and the invocation and the return of the first that no order
/// explains any more.
pub fn first_unexplained(history: &History) -> (u64, Option<(u64, u64)>) {
    let ops: Vec<Op<'_>> = history.events.iter().filter_map(|event| op(history, event)).collect();
    // Of a read without a token that nobody was told of there is nothing to say.
    let trace = |op: &&Op<'_>| op.ok.is_some() || op.token.is_some() || op.write.is_some();
    let judged = ops.iter().filter(trace).count() as u64;
    let mut returns: Vec<(u64, u64)> =
        ops.iter().filter_map(|op| Some((op.ok?, op.invoke))).collect();
    returns.sort_unstable();
    let unexplained = returns.into_iter().find(|(ok, _)| {
        let known: Vec<Op<'_>> = ops.iter().filter_map(|op| so_far(op, *ok)).collect();
        !explained(&State::default(), &known)
    });
    (judged, unexplained.map(|(ok, invoke)| (invoke, ok)))
}
