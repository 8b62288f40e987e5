//! The pass that builds an [`Index`].
//!
//! Events are taken in their order. What needs the whole history (which incarnation a holding has,
//! what an operation's rows did) is settled once, after the pass.

use std::{cell::OnceCell, collections::BTreeMap};

use super::{Belief, Holding, Ids, Index, Op, Row, effect, name::Names, queue::Queues};
use crate::history::{
    ApplyRow, Boundary, Event, EventKind, Function, History, HoldingId, NodeName, OpId, Outcome,
    Reply,
};

impl<'h> Index<'h> {
    /// Indexes a history in one pass. Takes time n log n in its length.
    pub fn new(history: &'h History) -> Index<'h> {
        let mut pass = Pass::default();
        for event in &history.events {
            pass.event(event.seq, event.node, &event.kind);
            if pass.is_beside(&event.kind) {
                pass.beside.push(event);
            }
        }
        pass.settle_incarnations();
        let (mut rows, op_rows) = pass.rows();
        let op_rows_from = starts(&op_rows, pass.ops.len());
        let mut index = Index {
            history,
            ops: pass.ops,
            holdings: pass.holdings,
            locks: pass.queues.locks,
            incarnations: pass.queues.incarnations,
            rows: Vec::new(),
            beside: pass.beside,
            op_rows_from,
            op_rows,
            ids: pass.ids,
            course: OnceCell::new(),
            classification: OnceCell::new(),
            failures: OnceCell::new(),
        };
        effect::settle(&mut rows, &index.ops, &index.op_rows);
        index.rows = rows;
        index
    }
}

#[derive(Default)]
struct Pass<'h> {
    queues: Queues<'h>,
    ops: Vec<Op<'h>>,
    holdings: Vec<Holding<'h>>,
    ids: Ids,
    holding_of: Ids,
    beside: Vec<&'h Event>,
    /// The lease of each client's last session.
    leases: BTreeMap<NodeName, i64>,
    /// Holdings that are believed in at this point of the pass.
    believed: Vec<usize>,
    /// (place, seq, row).
    applied: Vec<((u32, u64), u64, &'h ApplyRow)>,
    /// (boot, request, seq).
    arrivals: Vec<(u32, u64, u64)>,
    answers: Vec<(u32, u64, u64)>,
}

impl<'h> Pass<'h> {
    fn event(&mut self, seq: u64, node: NodeName, kind: &'h EventKind) {
        match kind {
            EventKind::Invoke { op, holding, f } => self.invoke(seq, node, *op, *holding, f),
            EventKind::Return { op, outcome } => self.end(seq, *op, outcome),
            EventKind::Commit(commit) => self.queues.commit(seq, commit),
            EventKind::Apply(row) => {
                self.applied.push(((row.boot, row.index), seq, row));
            }
            EventKind::Storage(Boundary::Arrival { boot, request }) => {
                self.arrivals.push((*boot, *request, seq));
            }
            EventKind::Storage(Boundary::Answer { boot, request }) => {
                self.answers.push((*boot, *request, seq));
            }
            EventKind::LossNoticed { holding } => {
                if let Some(holding) = self.holding_of.position(holding.0) {
                    self.end_belief(seq, holding);
                }
            }
            EventKind::Killed => self.end_beliefs(seq, |_, holding| holding.node == node),
            EventKind::Phase(_)
            | EventKind::Held { .. }
            | EventKind::Lease(_)
            | EventKind::Fault { .. }
            | EventKind::Restarted
            | EventKind::Point { .. }
            | EventKind::Stop
            | EventKind::Go
            | EventKind::Link { .. }
            | EventKind::Rate { .. }
            | EventKind::Deadline { .. } => {}
        }
    }

    /// Whether an event, which has just been taken in, is beside the requests to the storage.
    fn is_beside(&self, kind: &EventKind) -> bool {
        match kind {
            EventKind::Apply(_) | EventKind::Storage(_) => false,
            EventKind::Invoke { f, .. } => !at_storage(f),
            EventKind::Return { outcome: Outcome::Ok(Reply::Session { .. }), .. } => true,
            EventKind::Return { op, .. } => {
                self.ids.position(op.0).is_none_or(|op| !at_storage(self.ops[op].f))
            }
            _ => true,
        }
    }

    fn invoke(
        &mut self,
        seq: u64,
        node: NodeName,
        id: OpId,
        holding: Option<HoldingId>,
        f: &'h Function,
    ) {
        let op = self.ops.len();
        let mut of = holding.and_then(|id| self.holding_of.position(id.0));
        match f {
            Function::Lock { name } | Function::TryLock { name } => {
                of = Some(self.holdings.len());
                if let Some(id) = holding {
                    self.holding_of.insert(id.0, self.holdings.len());
                }
                let lock = self.queues.named(name);
                self.holdings.push(Holding {
                    id: holding,
                    node,
                    acquire: op,
                    lock,
                    lease: self.leases.get(&node).copied(),
                    key: None,
                    token: None,
                    ok: None,
                    released: None,
                    incarnation: None,
                    belief: None,
                });
            }
            Function::Unlock { name } => {
                let lock = self.queues.named(name);
                of = of.or_else(|| self.believed_of(node, lock));
                if let Some(holding) = of {
                    self.holdings[holding].released.get_or_insert(seq);
                    self.end_belief(seq, holding);
                }
            }
            Function::CloseSession => self.close_session(seq, node, of),
            Function::OpenSession { .. }
            | Function::Enter { .. }
            | Function::Read { .. }
            | Function::Write { .. }
            | Function::FinalRead { .. } => {}
        }
        self.ids.insert(id.0, op);
        self.ops.push(Op { id, node, holding: of, f, invoke: seq, end: None });
    }

    /// The client's last holding of this lock that is still believed in.
    fn believed_of(&self, node: NodeName, lock: usize) -> Option<usize> {
        let of = |holding: &Holding<'_>| holding.node == node && holding.lock == lock;
        self.believed.iter().copied().rfind(|holding| of(&self.holdings[*holding]))
    }

    /// Closing a session gives up what was held under it; without a holding, all of the client's.
    fn close_session(&mut self, seq: u64, node: NodeName, holding: Option<usize>) {
        let lease = holding.map(|holding| self.holdings[holding].lease);
        let closing = |holding: &Holding<'_>| {
            holding.node == node && lease.is_none_or(|lease| holding.lease == lease)
        };
        for &holding in &self.believed {
            let holding = &mut self.holdings[holding];
            if closing(holding) {
                holding.released.get_or_insert(seq);
            }
        }
        self.end_beliefs(seq, |of, other| Some(of) == holding || closing(other));
    }

    fn end(&mut self, seq: u64, id: OpId, outcome: &'h Outcome) {
        let Some(op) = self.ids.position(id.0) else { return };
        self.ops[op].end = Some((seq, outcome));
        match outcome {
            Outcome::Ok(Reply::Session { lease, .. }) => {
                self.leases.insert(self.ops[op].node, *lease);
            }
            Outcome::Ok(Reply::Acquired { key, token }) => {
                let Some(holding) = self.ops[op].holding else { return };
                let held = &mut self.holdings[holding];
                if held.acquire != op {
                    return;
                }
                held.key = Some(key);
                held.token = Some(*token);
                held.ok = Some(seq);
                held.belief = Some(Belief { from: seq, to: u64::MAX });
                self.believed.push(holding);
            }
            Outcome::Ok(Reply::Done | Reply::Value(_)) | Outcome::Fail(_) | Outcome::Unknown(_) => {
            }
        }
    }

    /// The end of one belief. It is among the last that began, whatever is still believed in.
    fn end_belief(&mut self, seq: u64, holding: usize) {
        let Some(at) = self.believed.iter().rposition(|of| *of == holding) else { return };
        self.believed.remove(at);
        if let Some(belief) = &mut self.holdings[holding].belief {
            belief.to = seq;
        }
    }

    fn end_beliefs(&mut self, seq: u64, ends: impl Fn(usize, &Holding<'_>) -> bool) {
        let holdings = &mut self.holdings;
        self.believed.retain(|&of| {
            let holding = &mut holdings[of];
            let ending = ends(of, holding);
            if let (true, Some(belief)) = (ending, &mut holding.belief) {
                belief.to = seq;
            }
            !ending
        });
    }

    fn settle_incarnations(&mut self) {
        for holding in &mut self.holdings {
            let end = self.ops[holding.acquire].end.map_or(u64::MAX, |(seq, _)| seq);
            if let Some(key) = holding.key {
                holding.incarnation = self.queues.last_before(key, end);
            } else if let Some(lease) = holding.lease {
                let key = format!("{}/{lease:x}", self.queues.locks[holding.lock].name);
                let invoke = self.ops[holding.acquire].invoke;
                let lived = |incarnation: &usize| {
                    let ended = self.queues.incarnations[*incarnation].ended;
                    ended.is_none_or(|ended| ended.seq > invoke)
                };
                holding.incarnation = self.queues.last_before(&key, end).filter(lived);
            }
        }
    }

    /// The rows in apply order, and for each operation which are its own.
    fn rows(&mut self) -> (Vec<Row<'h>>, Vec<(usize, usize)>) {
        self.arrivals.sort_unstable();
        self.answers.sort_unstable();
        self.applied.sort_by_key(|(place, ..)| *place);
        let mut names = Names::default();
        let mut op_rows = Vec::with_capacity(self.applied.len());
        let (mut arrived, mut left) = (0, 0);
        let mut rows = Vec::with_capacity(self.applied.len());
        for &(place, seq, row) in &self.applied {
            let (domain, key) = names.of(row);
            let op = row.tag.and_then(|tag| self.ids.position(tag));
            if let Some(op) = op {
                op_rows.push((op, rows.len()));
            }
            let holding = op.and_then(|op| self.ops[op].holding);
            let incarnation = holding.and_then(|holding| self.holdings[holding].incarnation);
            rows.push(Row {
                seq,
                row,
                domain,
                key,
                place,
                result: row.result,
                kind: row.kind,
                op,
                holding,
                incarnation,
                rank: incarnation.map(|i| self.queues.incarnations[i].create_revision),
                arrival: boundary(&self.arrivals, &mut arrived, row),
                answer: boundary(&self.answers, &mut left, row),
                effective: false,
                survives: false,
            });
        }
        op_rows.sort_unstable();
        (rows, op_rows)
    }
}

fn starts(op_rows: &[(usize, usize)], ops: usize) -> Vec<usize> {
    let mut starts = vec![0; ops + 1];
    for (op, _) in op_rows {
        starts[op + 1] += 1;
    }
    for op in 0..ops {
        starts[op + 1] += starts[op];
    }
    starts
}

fn at_storage(f: &Function) -> bool {
    matches!(
        f,
        Function::Enter { .. }
            | Function::Read { .. }
            | Function::Write { .. }
            | Function::FinalRead { .. }
    )
}

/// The first event of a row's request, looked for from where the one of the row before was found:
/// rows are applied almost in the order of their requests.
fn boundary(events: &[(u32, u64, u64)], from: &mut usize, row: &ApplyRow) -> Option<u64> {
    let wanted = (row.boot, row.request);
    let is_before = |at: usize| events.get(at).is_some_and(|(b, r, _)| (*b, *r) < wanted);
    let mut at = *from;
    while at < *from + 4 && is_before(at) {
        at += 1;
    }
    let passed = at.checked_sub(1).is_none_or(is_before);
    if is_before(at) || !passed {
        at = events.partition_point(|(boot, request, _)| (*boot, *request) < wanted);
    }
    *from = at;
    let (boot, request, seq) = events.get(at)?;
    ((*boot, *request) == wanted).then_some(*seq)
}
