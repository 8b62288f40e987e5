//! Mutations that keep a rule must keep the pass, for every checker: a random history that passes
//! is changed in a way that its rule allows, and must pass again.
//!
//! For the classes of D4 the same, with the step that breaks the rule, is in [`super::mutation`].

use leasehold::{
    checker::{self, Checker, Index, Verdict},
    history::{
        ApplyRow, Event, EventKind, FaultAction, Function, History, LeaseChange, NodeName, OpKind,
        Outcome, Reply, RowResult,
    },
    seed::{Seed, Stream},
};

use super::{chaos, chaos::renumber, honesty, queueing, searching, updating, waiting};

/// How often a rule-keeping mutation must have kept a pass.
const KEPT_MIN: u32 = 50;

/// A change of a history: whether there was anything to change.
type Change = fn(&mut History, &mut Stream) -> bool;

struct Keep {
    checker: &'static str,
    /// What is changed, as the rule allows it.
    what: &'static str,
    history: fn(Seed) -> History,
    change: Change,
}

const KEEPS: [Keep; 16] = [
    Keep {
        checker: "assumptions",
        what: "clients ask in another order",
        history: queueing::queueing_history,
        change: swap_neighbours,
    },
    Keep {
        checker: "grant-validity",
        what: "an acquire was invoked sooner",
        history: queueing::queueing_history,
        change: |history, stream| sooner(history, stream, |f| matches!(f, Function::Lock { .. })),
    },
    Keep {
        checker: "release-validity",
        what: "an unlock was answered later",
        history: queueing::queueing_history,
        change: |history, stream| later(history, stream, |f| matches!(f, Function::Unlock { .. })),
    },
    Keep {
        checker: "tenure-kept",
        what: "an unlock was invoked sooner",
        history: queueing::queueing_history,
        change: |history, stream| sooner(history, stream, |f| matches!(f, Function::Unlock { .. })),
    },
    Keep {
        checker: "token-order",
        what: "a request never came",
        history: queueing::queueing_history,
        change: |history, stream| leave_out(history, stream, is_row),
    },
    Keep {
        checker: "lost-update",
        what: "a write of another key in between",
        history: updating::counting_history,
        change: |history, stream| another_write(history, stream, "other"),
    },
    Keep {
        checker: "linearizability",
        what: "an operation was invoked sooner, with an apply log",
        history: chaos::storage_history,
        change: |history, stream| sooner(history, stream, at_storage),
    },
    Keep {
        checker: "linearizability",
        what: "an operation was invoked sooner, without an apply log",
        history: searching::small_history,
        change: |history, stream| sooner(history, stream, at_storage),
    },
    Keep {
        checker: "linearizability",
        what: "an operation was answered later, without an apply log",
        history: searching::small_history,
        change: |history, stream| later(history, stream, at_storage),
    },
    Keep {
        checker: "durability",
        what: "an answer did not leave, and its client knows nothing",
        history: chaos::storage_history,
        change: unanswered,
    },
    Keep {
        checker: "session-honesty",
        what: "one more renewal",
        history: honesty::session_history,
        change: one_more_renewal,
    },
    Keep {
        checker: "lease-safety",
        what: "a lease ran out later",
        history: |seed| start(chaos::lease_history(seed), 12),
        change: expire_later,
    },
    Keep {
        checker: "lease-atomicity",
        what: "the keys of a revision in another order",
        history: |seed| start(chaos::lease_history(seed), 12),
        change: turn_revisions,
    },
    Keep {
        checker: "session-survival",
        what: "one more fault",
        history: chaos::session_history,
        change: one_more_fault,
    },
    Keep {
        checker: "call-deadline",
        what: "calls stated a longer clean-up",
        history: |seed| start(chaos::deadline_history(seed), 12),
        change: clean_up_longer,
    },
    Keep {
        checker: "liveness",
        what: "one more fault",
        history: waiting::waiting_history,
        change: one_more_fault,
    },
];

fn at_storage(f: &Function) -> bool {
    matches!(f, Function::Read { .. } | Function::Write { .. })
}

fn is_row(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Apply(_))
}

/// The first events: so few that not all is wrong yet.
fn start(mut history: History, length: usize) -> History {
    history.events.truncate(length);
    history
}

/// A random place of those that are wanted.
fn place(
    history: &History,
    stream: &mut Stream,
    wanted: impl Fn(&EventKind) -> bool,
) -> Option<usize> {
    let places = (0..history.events.len()).filter(|at| wanted(&history.events[*at].kind));
    let places: Vec<usize> = places.collect();
    (!places.is_empty()).then(|| *stream.pick(&places))
}

fn leave_out(
    history: &mut History,
    stream: &mut Stream,
    wanted: impl Fn(&EventKind) -> bool,
) -> bool {
    let Some(at) = place(history, stream, wanted) else { return false };
    history.events.remove(at);
    renumber(history);
    true
}

/// Moves an event over as many others as its client has nothing to do with; true times stay.
fn shift(history: &mut History, stream: &mut Stream, at: usize, back: bool) -> bool {
    let node = history.events[at].node;
    let foreign = |at: &usize| history.events[*at].node != node;
    let phase = |at: &usize| matches!(history.events[*at].kind, EventKind::Phase(_));
    let free = |at: &usize| foreign(at) && !phase(at);
    let ways: Vec<usize> = match back {
        true => (0..at).rev().take_while(free).collect(),
        false => (at + 1..history.events.len()).take_while(free).collect(),
    };
    if ways.is_empty() {
        return false;
    }
    let to = *stream.pick(&ways);
    let times: Vec<u64> = history.events.iter().map(|event| event.at_ns).collect();
    let moved = history.events.remove(at);
    history.events.insert(to, moved);
    for (event, at_ns) in history.events.iter_mut().zip(times) {
        event.at_ns = at_ns;
    }
    renumber(history);
    true
}

fn sooner(history: &mut History, stream: &mut Stream, wanted: fn(&Function) -> bool) -> bool {
    let at = place(history, stream, |kind| match kind {
        EventKind::Invoke { f, .. } => wanted(f),
        _ => false,
    });
    at.is_some_and(|at| shift(history, stream, at, true))
}

fn later(history: &mut History, stream: &mut Stream, wanted: fn(&Function) -> bool) -> bool {
    let invoked = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Invoke { op, f, .. } => wanted(f).then_some(*op),
        _ => None,
    });
    let invoked: Vec<_> = invoked.collect();
    let at = place(history, stream, |kind| match kind {
        EventKind::Return { op, outcome } => {
            invoked.contains(op) && !matches!(outcome, Outcome::Unknown(_))
        }
        _ => false,
    });
    at.is_some_and(|at| shift(history, stream, at, false))
}

fn swap_neighbours(history: &mut History, stream: &mut Stream) -> bool {
    let invokes = |event: &Event| matches!(event.kind, EventKind::Invoke { .. });
    let pairs = (1..history.events.len()).filter(|at| {
        let (one, other) = (&history.events[at - 1], &history.events[*at]);
        invokes(one) && invokes(other) && one.node != other.node
    });
    let pairs: Vec<usize> = pairs.collect();
    if pairs.is_empty() {
        return false;
    }
    let at = *stream.pick(&pairs);
    history.events.swap(at - 1, at);
    renumber(history);
    true
}

/// A write of nobody, of another value, right after a random row.
fn another_write(history: &mut History, stream: &mut Stream, key: &str) -> bool {
    let Some(at) = place(history, stream, is_row) else { return false };
    let EventKind::Apply(row) = &history.events[at].kind else { return false };
    let after = row.index;
    let new = ApplyRow {
        request: 9000,
        index: after + 1,
        tag: None,
        kind: OpKind::Write,
        key: key.to_owned(),
        value: Some("foreign".to_owned()),
        result: RowResult::Admitted,
        effect: true,
        ..row.clone()
    };
    for event in &mut history.events {
        if let EventKind::Apply(row) = &mut event.kind {
            row.index += u64::from(row.index > after);
        }
    }
    let event = Event { kind: EventKind::Apply(new), ..history.events[at].clone() };
    history.events.insert(at + 1, event);
    renumber(history);
    true
}

fn unanswered(history: &mut History, stream: &mut Stream) -> bool {
    let at = place(history, stream, |kind| match kind {
        EventKind::Storage(_) => true,
        EventKind::Return { outcome: Outcome::Ok(reply), .. } => {
            !matches!(reply, Reply::Acquired { .. })
        }
        _ => false,
    });
    let Some(at) = at else { return false };
    match &mut history.events[at].kind {
        EventKind::Return { outcome, .. } => *outcome = Outcome::Unknown("timed out".to_owned()),
        _ => drop(history.events.remove(at)),
    }
    renumber(history);
    true
}

fn one_more_renewal(history: &mut History, stream: &mut Stream) -> bool {
    let told = |kind: &EventKind| match kind {
        EventKind::Lease(lease) => lease.change == LeaseChange::Renewed,
        _ => false,
    };
    let Some(at) = place(history, stream, told) else { return false };
    let to = at + 1 + stream.below((history.events.len() - at) as u64) as usize;
    let at_ns = history.events[to - 1].at_ns;
    let again = Event { at_ns, ..history.events[at].clone() };
    history.events.insert(to, again);
    renumber(history);
    true
}

fn expire_later(history: &mut History, stream: &mut Stream) -> bool {
    let by_ns = stream.below(9_000_000_000);
    let expired = |kind: &EventKind| match kind {
        EventKind::Lease(lease) => lease.change == LeaseChange::Expired,
        _ => false,
    };
    let Some(at) = place(history, stream, expired) else { return false };
    if let EventKind::Lease(lease) = &mut history.events[at].kind {
        lease.member_ns += by_ns;
    }
    true
}

fn turn_revisions(history: &mut History, _: &mut Stream) -> bool {
    let mut turned = false;
    for event in &mut history.events {
        if let EventKind::Commit(commit) = &mut event.kind {
            turned |= commit.events.len() > 1;
            commit.events.reverse();
        }
    }
    turned
}

fn one_more_fault(history: &mut History, stream: &mut Stream) -> bool {
    let length = history.events.len() as u64;
    let from = stream.between(2, length - 1) as usize;
    let to = stream.between(from as u64, length - 1) as usize;
    for (at, action) in [(to, FaultAction::End), (from, FaultAction::Begin)] {
        let kind = EventKind::Fault { index: 7, action };
        let at_ns = history.events[at].at_ns;
        history.events.insert(at, Event { seq: 0, at_ns, node: NodeName::Client(1), kind });
    }
    renumber(history);
    true
}

fn clean_up_longer(history: &mut History, stream: &mut Stream) -> bool {
    let mut longer = false;
    for event in &mut history.events {
        if let EventKind::Deadline { cleanup_ns, .. } = &mut event.kind {
            *cleanup_ns += stream.below(1_000_000_000);
            longer = true;
        }
    }
    longer
}

fn judge(checker: &dyn Checker, history: &History) -> Verdict {
    checker.check(&Index::new(history)).verdict
}

/// Each checker has a mutation that keeps its rule, and it keeps the pass wherever it is made.
#[test]
fn mutations_that_keep_the_rule_keep_the_pass() {
    for Keep { checker, what, history, change } in KEEPS {
        let name = checker;
        let checker = checker::by_name(name).expect("a checker of the catalog");
        let mut kept = 0;
        for seed in 0..1500 {
            let mut history = history(Seed(seed));
            let mut stream = Seed(seed).stream("keep");
            let passes = judge(checker, &history).is_pass();
            if !passes || !change(&mut history, &mut stream) {
                continue;
            }
            let verdict = judge(checker, &history);
            let idle = matches!(verdict, Verdict::NotRun(_));
            assert!(idle || verdict.is_pass(), "{name}, {what}, seed {seed}: {verdict}");
            kept += u32::from(!idle);
        }
        assert!(kept >= KEPT_MIN, "{name}, {what}: a pass was kept only {kept} times");
    }
    for checker in checker::all() {
        let elsewhere = checker.name() == "no-stale-write";
        let named = KEEPS.iter().any(|keep| keep.checker == checker.name());
        assert!(named || elsewhere, "{} has no mutation that keeps its rule", checker.name());
    }
}

/// The neighbour of a mutation that keeps the rule: the same write, of the same key, is between a
/// read and the write that was computed from it, and is lost.
#[test]
fn a_write_of_the_same_key_in_between_is_lost() {
    let checker = checker::by_name("lost-update").expect("a checker of the catalog");
    let mut lost = 0;
    for seed in 0..200 {
        let mut history = updating::counting_history(Seed(seed));
        let mut stream = Seed(seed).stream("keep");
        another_write(&mut history, &mut stream, "k");
        lost += u32::from(judge(checker, &history).violation().is_some());
    }
    assert!(lost > 50, "{lost} lost updates");
}
