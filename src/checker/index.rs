//! One pass over a history: what the checkers share.
//!
//! Holds the operations with their ends, the incarnations and tenures of each lock's queue (D1),
//! the holdings with their incarnation and belief (D2, D3), and the rows of the apply log with
//! their operation, rank and effect (D2, D4). Everything borrows from the history; positions in the
//! vectors stand for identities. Built by [`Index::new`] in `build.rs`.
//!
//! It leaves judging to the checkers: a history that breaks an assumption is still indexed.

mod build;
mod effect;
mod name;
mod queue;

use std::cell::OnceCell;

use super::{
    assumption::{self, Assumption},
    class::{self, Classification},
    course::Course,
};
use crate::history::{
    ApplyRow, Cause, Event, Function, History, HoldingId, NodeName, OpId, OpKind, Outcome,
    RowResult,
};

/// What the checkers share about one history.
#[derive(Debug)]
pub struct Index<'h> {
    /// The history itself.
    pub history: &'h History,
    /// In the order of their invocation.
    pub ops: Vec<Op<'h>>,
    /// In the order in which their acquires were invoked.
    pub holdings: Vec<Holding<'h>>,
    /// Every queue that a commit or an operation names.
    pub locks: Vec<Lock<'h>>,
    /// In the order of their creation.
    pub incarnations: Vec<Incarnation<'h>>,
    /// In apply order.
    pub rows: Vec<Row<'h>>,
    /// Every event beside the requests to the storage, their calls included: the few that most
    /// checkers look at.
    pub beside: Vec<&'h Event>,
    /// (operation, row), sorted: which rows an operation has.
    op_rows: Vec<(usize, usize)>,
    /// Where each operation begins in `op_rows`, and where the last one ends.
    op_rows_from: Vec<usize>,
    ids: Ids,
    course: OnceCell<Course>,
    classification: OnceCell<Classification>,
    failures: OnceCell<Vec<(Assumption, String)>>,
}

/// Positions of operations, or of holdings, by the number in their name: sorted, and as a rule
/// dense.
#[derive(Debug, Default)]
struct Ids(Vec<(u64, usize)>);

impl Ids {
    fn insert(&mut self, id: u64, position: usize) {
        // Names rise with the invocations, so this is a push at the end.
        if self.0.last().is_none_or(|(last, _)| *last < id) {
            self.0.push((id, position));
            return;
        }
        let at = self.0.partition_point(|(known, _)| *known < id);
        match self.0.get_mut(at) {
            Some(known) if known.0 == id => known.1 = position,
            _ => self.0.insert(at, (id, position)),
        }
    }

    fn position(&self, id: u64) -> Option<usize> {
        let (first, _) = self.0.first()?;
        let guess = usize::try_from(id.checked_sub(*first)?).ok()?;
        match self.0.get(guess) {
            Some((known, position)) if *known == id => Some(*position),
            _ => {
                let at = self.0.binary_search_by_key(&id, |(known, _)| *known).ok()?;
                Some(self.0[at].1)
            }
        }
    }
}

/// An operation of a client: all its attempts together.
#[derive(Debug)]
pub struct Op<'h> {
    /// Its name in the history.
    pub id: OpId,
    /// The client.
    pub node: NodeName,
    /// Position in [`Index::holdings`].
    pub holding: Option<usize>,
    /// What was asked.
    pub f: &'h Function,
    /// `seq` of the invocation.
    pub invoke: u64,
    /// `seq` and outcome of the return, if it returned.
    pub end: Option<(u64, &'h Outcome)>,
}

impl Op<'_> {
    /// Whether the client was told that it happened.
    pub fn is_ok(&self) -> bool {
        matches!(self.end, Some((_, Outcome::Ok(_))))
    }
}

/// One acquire and what is done under it.
#[derive(Debug)]
pub struct Holding<'h> {
    /// Its name in the history, if the acquire gave one.
    pub id: Option<HoldingId>,
    /// The client.
    pub node: NodeName,
    /// Position of the acquire in [`Index::ops`].
    pub acquire: usize,
    /// Position in [`Index::locks`].
    pub lock: usize,
    /// The lease of the client's session when it asked, if the history tells.
    pub lease: Option<i64>,
    /// The owner key that the acquire answered.
    pub key: Option<&'h str>,
    /// The token that the acquire answered.
    pub token: Option<i64>,
    /// `seq` of the acquire's ok.
    pub ok: Option<u64>,
    /// `seq` of the first unlock, or close of its session, that was invoked for it.
    pub released: Option<u64>,
    /// Position in [`Index::incarnations`]: the last incarnation of its key that was committed
    /// before the acquire returned, even if already deleted. For an acquire that gave no key, that
    /// of its session's queue key, if it lived during the call.
    pub incarnation: Option<usize>,
    /// From when to when the client believed that it held the lock.
    pub belief: Option<Belief>,
}

/// A belief (D3), in `seq`s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    /// The acquire's ok.
    pub from: u64,
    /// The invocation of the release, the noticed loss or the kill; `u64::MAX` if there was none.
    pub to: u64,
}

impl Belief {
    /// Whether it lasts at this event.
    pub fn contains(&self, seq: u64) -> bool {
        self.from <= seq && seq < self.to
    }

    /// Whether both last at some moment.
    pub fn intersects(&self, other: &Belief) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// A lock's queue.
#[derive(Debug)]
pub struct Lock<'h> {
    /// The lock's name; its queue is the keys `name/<hex>`.
    pub name: &'h str,
    /// Whether an operation names it. Other keys of the same form are none of our business.
    pub named: bool,
    /// Positions in [`Index::incarnations`], in the order of their creation.
    pub incarnations: Vec<usize>,
    /// The incarnations that became owner, in that order.
    pub tenures: Vec<usize>,
    /// Each change of the owner.
    pub owners: Vec<OwnerChange>,
}

/// From this commit on the owner is another.
#[derive(Debug, Clone, Copy)]
pub struct OwnerChange {
    /// `seq` of the commit.
    pub seq: u64,
    /// Position in [`Index::incarnations`]; `None` if the queue is empty.
    pub owner: Option<usize>,
}

/// One life of a queue key.
#[derive(Debug)]
pub struct Incarnation<'h> {
    /// Position in [`Index::locks`].
    pub lock: usize,
    /// The key.
    pub key: &'h str,
    /// The rank of what is done under it.
    pub create_revision: i64,
    /// `seq` of the commit that created it.
    pub created: u64,
    /// `seq` of the commit that made it owner for the first time.
    pub owner_since: Option<u64>,
    /// How it ended.
    pub ended: Option<End>,
    /// `seq` of a later commit that created the same key with the same revision again.
    pub returned: Option<u64>,
}

/// The end of an incarnation.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// `seq` of the commit.
    pub seq: u64,
    /// Why the store changed.
    pub cause: Cause,
}

/// A row of the apply log with what it belongs to.
#[derive(Debug)]
pub struct Row<'h> {
    /// `seq` of the apply.
    pub seq: u64,
    /// The row.
    pub row: &'h ApplyRow,
    /// A number of its domain: rows of one domain have the same.
    pub domain: u32,
    /// A number of its key: rows of one key in one domain have the same.
    pub key: u32,
    /// Which life of the storage it is of, and its place in the order of application.
    place: (u32, u64),
    result: RowResult,
    kind: OpKind,
    /// Position in [`Index::ops`].
    pub op: Option<usize>,
    /// Position in [`Index::holdings`].
    pub holding: Option<usize>,
    /// Position in [`Index::incarnations`].
    pub incarnation: Option<usize>,
    /// The create revision of that incarnation, from the commit log.
    pub rank: Option<i64>,
    /// `seq` of the request's arrival, if recorded.
    pub arrival: Option<u64>,
    /// `seq` of the answer's departure, if recorded.
    pub answer: Option<u64>,
    /// Of a write: whether it had its effect (D4).
    pub effective: bool,
    /// Whether it counts over a crash of the storage: it was answered, or is in a recovered state.
    pub survives: bool,
}

impl Row<'_> {
    /// Whether the fence let it through.
    pub fn admitted(&self) -> bool {
        self.result == RowResult::Admitted
    }

    /// Whether it is a write.
    pub fn is_write(&self) -> bool {
        self.kind == OpKind::Write
    }

    /// Whether it raises the mark that the judge recomputes: admitted, with a token.
    pub fn announces(&self) -> bool {
        self.admitted() && self.row.token.is_some()
    }

    /// Its place in the order of application. Over a restart that forgot rows the index is given
    /// anew, so the boot comes first.
    pub fn place(&self) -> (u32, u64) {
        self.place
    }

    /// Which life of the storage it is of.
    pub fn boot(&self) -> u32 {
        self.place.0
    }

    /// What the storage did with it.
    pub fn result(&self) -> RowResult {
        self.result
    }

    /// Whether it is before `later` in what the storage still knew when it applied `later`.
    pub fn precedes(&self, later: &Row<'_>) -> bool {
        self.place() < later.place() && (self.boot() == later.boot() || self.survives)
    }
}

impl<'h> Index<'h> {
    /// The owner of a lock as the last commit before this event left it.
    pub fn owner_at(&self, lock: usize, seq: u64) -> Option<usize> {
        let owners = &self.locks[lock].owners;
        let after = owners.partition_point(|change| change.seq <= seq);
        after.checked_sub(1).and_then(|last| owners[last].owner)
    }

    /// Whether the incarnation is owner of this lock in some revision that is current between two
    /// events.
    pub fn owned_between(&self, lock: usize, incarnation: usize, from: u64, to: u64) -> bool {
        let owners = &self.locks[lock].owners;
        let first = owners.partition_point(|change| change.seq <= from).saturating_sub(1);
        owners[first..]
            .iter()
            .take_while(|change| change.seq < to)
            .any(|change| change.owner.is_some_and(|owner| self.is_same(owner, incarnation)))
    }

    /// Whether two lives of a key are one incarnation (D1). Only a store that repeats revisions has
    /// a key come back as the same.
    pub fn is_same(&self, one: usize, other: usize) -> bool {
        let identity = |incarnation: usize| {
            let incarnation = &self.incarnations[incarnation];
            (incarnation.create_revision, incarnation.key)
        };
        one == other || identity(one) == identity(other)
    }

    /// The rows of an operation, in apply order.
    pub fn rows_of(&self, op: usize) -> impl Iterator<Item = &Row<'h>> {
        let rows = self.op_rows_from[op]..self.op_rows_from[op + 1];
        self.op_rows[rows].iter().map(|(_, row)| &self.rows[*row])
    }

    /// The position of the operation of this name.
    pub fn op(&self, id: OpId) -> Option<usize> {
        self.ids.position(id.0)
    }

    /// The events after this one, of those in [`Index::beside`].
    pub fn beside_after(&self, seq: u64) -> impl Iterator<Item = &'h Event> {
        let after = self.beside.partition_point(|event| event.seq <= seq);
        self.beside[after..].iter().copied()
    }

    /// The course of the nodes, computed once.
    pub(super) fn course(&self) -> &Course {
        self.course.get_or_init(|| Course::new(&self.beside))
    }

    /// The classes of the writes (D4), computed once.
    pub fn classification(&self) -> &Classification {
        self.classification.get_or_init(|| class::classify(self))
    }

    /// Every assumption that fails (D11), and why; computed once.
    pub fn failed_assumptions(&self) -> &[(Assumption, String)] {
        self.failures.get_or_init(|| assumption::failures(self))
    }

    /// A holding in words: its client, its name, its rank.
    pub fn describe_holding(&self, holding: usize) -> String {
        let holding = &self.holdings[holding];
        let id = holding.id.map_or_else(|| "a holding".to_owned(), |id| id.to_string());
        match holding.incarnation {
            Some(incarnation) => {
                let rank = self.incarnations[incarnation].create_revision;
                format!("{} ({id}, rank {rank})", holding.node)
            }
            None => format!("{} ({id})", holding.node),
        }
    }
}
