//! One pass over a history, for all checkers: operations, queues and tenures, holdings and ranks.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{
    ApplyRow, Boundary, Cause, EventKind, Function, History, HoldingId, KeyChange, NodeName, OpId,
    OpKind, Outcome, Reply,
};

/// An operation with both its ends.
#[derive(Debug, Clone)]
pub struct Op<'a> {
    /// Its name.
    pub id: OpId,
    /// Whose it is.
    pub node: NodeName,
    /// `seq` of its invocation.
    pub invoke: u64,
    /// `seq` of its return, if it returned.
    pub returned: Option<u64>,
    /// The holding that it belongs to.
    pub holding: Option<HoldingId>,
    /// What was asked.
    pub f: &'a Function,
    /// How it ended; none if it never did.
    pub outcome: Option<&'a Outcome>,
}

impl Op<'_> {
    /// Whether the client was told that it happened.
    pub fn is_ok(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Ok(_)))
    }
}

/// One life of a queue key, from its creation to its deletion (D1).
#[derive(Debug, Clone)]
pub struct Incarnation<'a> {
    /// The key.
    pub key: &'a str,
    /// The revision that created it: the rank of what is done under it.
    pub create_revision: i64,
    /// `seq` of the commit that created it.
    pub created: u64,
    /// `seq` and cause of the commit that deleted it.
    pub deleted: Option<(u64, Cause)>,
}

/// The time in which an incarnation was the first of its queue (D1).
#[derive(Debug, Clone)]
pub struct Tenure {
    /// Index of the incarnation.
    pub incarnation: usize,
    /// `seq` of the commit that made it the owner.
    pub began: u64,
    /// `seq` and cause of the commit that ended it.
    pub ended: Option<(u64, Cause)>,
    /// How many keys were in the queue when it began.
    pub contenders: usize,
}

/// An acquire and what was done under it (D2, D3).
#[derive(Debug, Clone)]
pub struct Holding {
    /// Its name.
    pub id: HoldingId,
    /// Whose it is.
    pub node: NodeName,
    /// The lock operation.
    pub acquire: OpId,
    /// `seq` of the acquire's ok, if it came.
    pub acquired: Option<u64>,
    /// The incarnation under which it holds: the last one of its key that was committed before the
    /// acquire returned, even if it was deleted by then.
    pub incarnation: Option<usize>,
    /// `seq` of the end of its belief: unlock or close invoked, loss noticed, process killed.
    pub belief_end: Option<u64>,
    /// `seq` of the invocation of its unlock.
    pub unlock_invoked: Option<u64>,
}

impl Holding {
    /// Whether it is believed in at this point of the order.
    pub fn is_believed_at(&self, seq: u64) -> bool {
        self.acquired.is_some_and(|acquired| acquired <= seq)
            && self.belief_end.is_none_or(|end| seq < end)
    }
}

/// A row of the apply log with its place in the order and its rank.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// `seq` of the row.
    pub seq: u64,
    /// `seq` of the request's arrival, if it was recorded.
    pub arrival: Option<u64>,
    /// `seq` of the answer, if it left.
    pub answer: Option<u64>,
    /// The row.
    pub row: &'a ApplyRow,
    /// The operation that it was an attempt of.
    pub op: Option<OpId>,
    /// The holding of that operation.
    pub holding: Option<HoldingId>,
    /// Index of the incarnation under which the operation was issued.
    pub incarnation: Option<usize>,
    /// Its create revision, from the commit log.
    pub rank: Option<i64>,
}

impl Row<'_> {
    /// Whether it is a write.
    pub fn is_write(&self) -> bool {
        self.row.kind == OpKind::Write
    }
}

/// A history, sorted out.
#[derive(Debug)]
pub struct Index<'a> {
    /// The history.
    pub history: &'a History,
    /// Operations by name.
    pub ops: BTreeMap<OpId, Op<'a>>,
    /// All lives of all queue keys, in order of creation.
    pub incarnations: Vec<Incarnation<'a>>,
    /// The tenures of each lock, in order, by the lock's name.
    pub tenures: BTreeMap<&'a str, Vec<Tenure>>,
    /// Holdings by name.
    pub holdings: BTreeMap<HoldingId, Holding>,
    /// The apply log, in order.
    pub rows: Vec<Row<'a>>,
    /// Values that some read has answered.
    pub read_values: BTreeSet<&'a str>,
}

impl<'a> Index<'a> {
    /// Sorts a history out.
    pub fn new(history: &'a History) -> Self {
        let mut index = Index {
            history,
            ops: BTreeMap::new(),
            incarnations: Vec::new(),
            tenures: BTreeMap::new(),
            holdings: BTreeMap::new(),
            rows: Vec::new(),
            read_values: BTreeSet::new(),
        };
        index.read_operations();
        index.read_queues();
        index.read_holdings();
        index.read_rows();
        index
    }

    /// The tenure of an incarnation, if it ever was an owner.
    pub fn tenure_of(&self, incarnation: usize) -> Option<&Tenure> {
        let lock = lock_of(self.incarnations[incarnation].key)?;
        let tenures = self.tenures.get(lock)?;
        // Owners follow each other in the order of their creation.
        let at = tenures.binary_search_by_key(&incarnation, |tenure| tenure.incarnation);
        at.ok().map(|at| &tenures[at])
    }

    /// Whether the incarnation is the owner at this point of the order.
    pub fn is_owner_at(&self, incarnation: usize, seq: u64) -> bool {
        self.tenure_of(incarnation).is_some_and(|tenure| {
            tenure.began <= seq && tenure.ended.is_none_or(|(ended, _)| seq < ended)
        })
    }

    fn read_operations(&mut self) {
        for event in &self.history.events {
            match &event.kind {
                EventKind::Invoke { op, holding, f } => {
                    let new = Op {
                        id: *op,
                        node: event.node,
                        invoke: event.seq,
                        returned: None,
                        holding: *holding,
                        f,
                        outcome: None,
                    };
                    self.ops.insert(*op, new);
                }
                EventKind::Return { op, outcome } => {
                    if let Some(op) = self.ops.get_mut(op) {
                        op.returned = Some(event.seq);
                        op.outcome = Some(outcome);
                    }
                    if let Outcome::Ok(Reply::Value(Some(value))) = outcome {
                        self.read_values.insert(value);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_queues(&mut self) {
        // Per lock: the live keys of its queue by create revision and key.
        let mut queues: BTreeMap<&str, BTreeMap<(i64, usize), ()>> = BTreeMap::new();
        let mut live: BTreeMap<&str, usize> = BTreeMap::new();
        for event in &self.history.events {
            let EventKind::Commit(commit) = &event.kind else { continue };
            let mut touched = BTreeSet::new();
            for change in &commit.events {
                let Some(lock) = lock_of(&change.key) else { continue };
                let queue = queues.entry(lock).or_default();
                let alive = live.get(change.key.as_str()).copied();
                match (change.change, alive) {
                    // A put that keeps the key stays in the same incarnation.
                    (KeyChange::Put, Some(incarnation))
                        if self.incarnations[incarnation].create_revision
                            == change.create_revision => {}
                    (KeyChange::Put, _) => {
                        let incarnation = self.incarnations.len();
                        self.incarnations.push(Incarnation {
                            key: &change.key,
                            create_revision: change.create_revision,
                            created: event.seq,
                            deleted: None,
                        });
                        live.insert(&change.key, incarnation);
                        queue.insert((change.create_revision, incarnation), ());
                    }
                    (KeyChange::Delete, Some(incarnation)) => {
                        let old = &mut self.incarnations[incarnation];
                        old.deleted = Some((event.seq, commit.cause));
                        queue.remove(&(old.create_revision, incarnation));
                        live.remove(change.key.as_str());
                    }
                    (KeyChange::Delete, None) => {}
                }
                touched.insert(lock);
            }
            for lock in touched {
                let queue = &queues[lock];
                let owner = queue.keys().next().map(|(_, incarnation)| *incarnation);
                let tenures = self.tenures.entry(lock).or_default();
                note_owner(tenures, owner, event.seq, commit.cause, queue.len());
            }
        }
    }

    fn read_holdings(&mut self) {
        for op in self.ops.values() {
            let (Some(id), Function::Lock { .. } | Function::TryLock { .. }) = (op.holding, op.f)
            else {
                continue;
            };
            let mut holding = Holding {
                id,
                node: op.node,
                acquire: op.id,
                acquired: None,
                incarnation: None,
                belief_end: None,
                unlock_invoked: None,
            };
            if let (Some(returned), Some(Outcome::Ok(Reply::Acquired { key, .. }))) =
                (op.returned, op.outcome)
            {
                holding.acquired = Some(returned);
                // Incarnations are in the order of creation, so the last that fits is the one.
                let before = self.incarnations.partition_point(|i| i.created < returned);
                let fits = |i: &usize| self.incarnations[*i].key == key;
                holding.incarnation = (0..before).rev().find(fits);
            }
            self.holdings.insert(id, holding);
        }
        self.read_belief_ends();
    }

    fn read_belief_ends(&mut self) {
        // The holdings that each node believes in, to end them when its process dies.
        let mut believed: BTreeMap<_, BTreeSet<HoldingId>> = BTreeMap::new();
        for event in &self.history.events {
            let mut ended = Vec::new();
            match &event.kind {
                EventKind::Return { op, outcome: Outcome::Ok(Reply::Acquired { .. }) } => {
                    let holding = self.ops.get(op).and_then(|op| op.holding);
                    believed.entry(event.node).or_default().extend(holding);
                }
                EventKind::Invoke {
                    holding: Some(holding), f: Function::Unlock { .. }, ..
                } => {
                    if let Some(holding) = self.holdings.get_mut(holding) {
                        holding.unlock_invoked.get_or_insert(event.seq);
                    }
                    ended.push(*holding);
                }
                EventKind::LossNoticed { holding } => ended.push(*holding),
                EventKind::Invoke { f: Function::CloseSession, .. } | EventKind::Killed => {
                    ended.extend(believed.remove(&event.node).unwrap_or_default());
                }
                _ => {}
            }
            for holding in ended {
                believed.entry(event.node).or_default().remove(&holding);
                if let Some(holding) = self.holdings.get_mut(&holding) {
                    holding.belief_end.get_or_insert(event.seq);
                }
            }
        }
    }

    fn read_rows(&mut self) {
        let mut arrivals = BTreeMap::new();
        let mut rows_by_request = BTreeMap::new();
        for event in &self.history.events {
            match &event.kind {
                EventKind::Storage(Boundary::Arrival { boot, request }) => {
                    arrivals.insert((*boot, *request), event.seq);
                }
                EventKind::Storage(Boundary::Answer { boot, request }) => {
                    if let Some(at) = rows_by_request.get(&(*boot, *request)) {
                        let row: &mut Row<'_> = &mut self.rows[*at];
                        row.answer = Some(event.seq);
                    }
                }
                EventKind::Apply(row) => {
                    let op = row.tag.map(OpId);
                    let holding = op.and_then(|op| self.ops.get(&op)).and_then(|op| op.holding);
                    let incarnation =
                        holding.and_then(|id| self.holdings.get(&id)).and_then(|h| h.incarnation);
                    let rank = incarnation.map(|i| self.incarnations[i].create_revision);
                    let arrival = arrivals.get(&(row.boot, row.request)).copied();
                    rows_by_request.insert((row.boot, row.request), self.rows.len());
                    let (seq, answer) = (event.seq, None);
                    self.rows.push(Row {
                        seq,
                        arrival,
                        answer,
                        row,
                        op,
                        holding,
                        incarnation,
                        rank,
                    });
                }
                _ => {}
            }
        }
    }
}

/// Ends the tenure of who was the owner, if it is another now, and begins the new one's.
fn note_owner(
    tenures: &mut Vec<Tenure>,
    owner: Option<usize>,
    seq: u64,
    cause: Cause,
    contenders: usize,
) {
    let last = tenures.last_mut().filter(|tenure| tenure.ended.is_none());
    match last {
        Some(last) if Some(last.incarnation) == owner => return,
        Some(last) => last.ended = Some((seq, cause)),
        None => {}
    }
    if let Some(incarnation) = owner {
        tenures.push(Tenure { incarnation, began: seq, ended: None, contenders });
    }
}

/// The lock whose queue this key stands in: its direct children with a hexadecimal name.
fn lock_of(key: &str) -> Option<&str> {
    let (lock, name) = key.rsplit_once('/')?;
    let hex = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then_some(lock)
}
