//! Liveness (D10) a second time: queues, holdings and leases are looked up anew at every turn.

use leasehold::history::{
    Event, EventKind, Function, History, HoldingId, KeyChange, LeaseChange, NodeName, OpId,
    Outcome, Phase, Reply,
};

const S: u64 = 1_000_000_000;

/// A key and its create revision.
type Incarnation = (String, i64);

/// An acquire.
struct Acquire {
    op: OpId,
    holding: Option<HoldingId>,
    node: NodeName,
    invoke: u64,
}

struct Naive<'h> {
    history: &'h History,
    healed_ns: u64,
    arrived_ns: u64,
    dead_ns: u64,
    dead_by_ns: u64,
    promoted_ns: Option<u64>,
}

/// How many acquires can be judged, and whether one waited too long, or a call never ended.
pub fn liveness(history: &History) -> (u64, bool) {
    let Some(naive) = Naive::new(history) else { return (0, false) };
    let acquires = naive.acquires();
    let (mut judged, mut stuck) = (0, false);
    for acquire in &acquires {
        let end = naive.over(acquire.op).unwrap_or(history.events.len() as u64 - 1);
        let from_ns = naive.at(acquire.invoke).max(naive.healed_ns);
        judged += 1;
        stuck |= naive.not_told(acquire, end)
            || from_ns < naive.at(end)
                && naive.at(end) > naive.at(acquire.invoke) + 5 * S
                && naive.stuck_behind(acquire, from_ns, end);
    }
    let finals = history.events.iter().any(|e| e.kind == EventKind::Phase(Phase::FinalReads));
    let last_ns = history.events.last().map_or(0, |event| event.at_ns);
    let hangs = |event: &Event| match event.kind {
        EventKind::Invoke { op, .. } => naive.over(op).is_none(),
        _ => false,
    };
    let given_up = !finals && last_ns >= naive.healed_ns + 60 * S;
    stuck |= given_up && history.events.iter().any(hangs);
    (judged, stuck)
}

impl<'h> Naive<'h> {
    fn new(history: &'h History) -> Option<Self> {
        let settle = |event: &&Event| event.kind == EventKind::Phase(Phase::Settle);
        let healed_ns = history.events.iter().find(settle)?.at_ns;
        let by = healed_ns + 10 * S;
        let early = || history.events.iter().filter(move |event| event.at_ns <= by);
        let is = |event: &Event, wanted: fn(&LeaseChange) -> bool| match &event.kind {
            EventKind::Lease(lease) => wanted(&lease.change),
            _ => false,
        };
        let promotion = |change: &LeaseChange| matches!(change, LeaseChange::Promoted { .. });
        let promoted_ns = early().filter(|e| is(e, promotion)).map(|e| e.at_ns).max();
        let restarted = early()
            .filter(|e| e.kind == EventKind::Restarted && matches!(e.node, NodeName::Etcd(_)))
            .map(|event| event.at_ns);
        let started_ns = restarted.chain(promoted_ns).chain([healed_ns]).max()?;
        let member = early().rfind(|event| is(event, |_| true))?.node;
        let rate = history.events.iter().rev().filter(|event| event.at_ns <= started_ns);
        let permille = rate.into_iter().find_map(|event| match event.kind {
            EventKind::Rate { permille } if event.node == member => Some(u64::from(permille)),
            _ => None,
        })?;
        let grants = early().filter_map(|event| match &event.kind {
            EventKind::Lease(lease) => match lease.change {
                LeaseChange::Granted { ttl_s } => Some((event.seq, lease.lease, ttl_s as u64)),
                _ => None,
            },
            _ => None,
        });
        let alive = grants.filter(|(seq, lease, _)| {
            !history.events.iter().any(|event| match &event.kind {
                EventKind::Lease(end) => {
                    let ends = matches!(end.change, LeaseChange::Expired | LeaseChange::Revoked);
                    ends && end.lease == *lease && event.seq > *seq && event.at_ns < healed_ns
                }
                _ => false,
            })
        });
        let ttl_s = alive.map(|(_, _, ttl_s)| ttl_s).max().unwrap_or(0);
        let dead_ns = (ttl_s * S + S + 3 * S + S / 2) * 1000 / permille.max(1) + S;
        let (arrived_ns, dead_by_ns) = (started_ns + 10 * S, started_ns + dead_ns);
        Some(Naive { history, healed_ns, arrived_ns, dead_ns, dead_by_ns, promoted_ns })
    }

    fn at(&self, seq: u64) -> u64 {
        self.history.events[seq as usize].at_ns
    }

    fn acquires(&self) -> Vec<Acquire> {
        let acquire = |event: &Event| match &event.kind {
            EventKind::Invoke { op, holding, f: Function::Lock { .. } } => {
                Some(Acquire { op: *op, holding: *holding, node: event.node, invoke: event.seq })
            }
            _ => None,
        };
        self.history.events.iter().filter_map(acquire).collect()
    }

    fn returned(&self, op: OpId) -> Option<(u64, &Outcome)> {
        self.history.events.iter().find_map(|event| match &event.kind {
            EventKind::Return { op: of, outcome } if *of == op => Some((event.seq, outcome)),
            _ => None,
        })
    }

    /// When a call was over: by its return, or by the death of its process.
    fn over(&self, op: OpId) -> Option<u64> {
        let invoked = self
            .history
            .events
            .iter()
            .find(|event| matches!(event.kind, EventKind::Invoke { op: of, .. } if of == op))?;
        let killed = self.history.events.iter().find(|event| {
            let after = event.seq > invoked.seq && event.node == invoked.node;
            after && event.kind == EventKind::Killed
        });
        self.returned(op).map(|(seq, _)| seq).or(killed.map(|event| event.seq))
    }

    /// The live keys after an event, each with its create revision.
    fn queue(&self, seq: u64) -> Vec<Incarnation> {
        let mut queue: Vec<Incarnation> = Vec::new();
        for event in self.history.events.iter().filter(|event| event.seq <= seq) {
            let EventKind::Commit(commit) = &event.kind else { continue };
            for change in &commit.events {
                queue.retain(|(key, _)| *key != change.key);
                if change.change == KeyChange::Put {
                    queue.push((change.key.clone(), change.create_revision));
                }
            }
        }
        queue
    }

    fn owner(&self, seq: u64) -> Option<Incarnation> {
        self.queue(seq).into_iter().min_by_key(|(_, created)| *created)
    }

    /// The incarnation of an acquire: that of its answer, or of its session's key during the call.
    fn incarnation(&self, acquire: &Acquire) -> Option<Incarnation> {
        let returned = self.returned(acquire.op);
        let end = returned.map_or(u64::MAX, |(seq, _)| seq);
        let last_of = |key: &str| {
            let seqs = self.history.events.iter().map(|event| event.seq);
            let mut lives = seqs.filter(|seq| *seq < end).filter_map(|seq| {
                let queue = self.queue(seq);
                queue.into_iter().find(|(of, _)| of == key).map(|life| (seq, life))
            });
            lives.next_back()
        };
        if let Some((_, Outcome::Ok(Reply::Acquired { key, .. }))) = returned {
            return last_of(key).map(|(_, life)| life);
        }
        let past = self.history.events.iter().rev().filter(|event| event.seq < acquire.invoke);
        let lease = past.into_iter().find_map(|event| match &event.kind {
            EventKind::Return { outcome: Outcome::Ok(Reply::Session { lease, .. }), .. } => {
                (event.node == acquire.node).then_some(*lease)
            }
            _ => None,
        })?;
        let (lived, life) = last_of(&format!("lock/{lease:x}"))?;
        (lived >= acquire.invoke).then_some(life)
    }

    /// Nothing hinders anybody in these histories but a kill of the client itself, so all of an
    /// acquire is quiet if its client was not killed before.
    fn not_told(&self, acquire: &Acquire, end: u64) -> bool {
        let killed = self.history.events.iter().any(|event| {
            let before = event.node == acquire.node && event.seq < acquire.invoke;
            before && event.kind == EventKind::Killed
        });
        if killed {
            return false;
        }
        let own = self.incarnation(acquire);
        // Since when it is as it is: gone, first, or nobody is.
        let mut gone_ns = None;
        let mut first_ns = None;
        for seq in acquire.invoke..end {
            let (now_ns, next_ns) = (self.at(seq), self.at(seq + 1));
            let (queue, owner) = (self.queue(seq), self.owner(seq));
            if let Some(own) = &own {
                let existed = (0..=seq).any(|past| self.queue(past).contains(own));
                if existed && !queue.contains(own) {
                    gone_ns.get_or_insert(now_ns);
                }
            }
            match owner.is_none() || owner == own {
                // A change of the owner, from nobody to it, is a new beginning.
                true if seq > acquire.invoke && self.owner(seq - 1) != owner => {
                    first_ns = Some(now_ns);
                }
                true => drop(first_ns.get_or_insert(now_ns)),
                false => first_ns = None,
            }
            let long = |since: Option<u64>| since.is_some_and(|since| next_ns > since + 5 * S);
            if long(gone_ns) || long(first_ns) {
                return true;
            }
        }
        false
    }

    fn stuck_behind(&self, acquire: &Acquire, from_ns: u64, end: u64) -> bool {
        let own = self.incarnation(acquire);
        let events = &self.history.events;
        let start = events.iter().rev().find(|event| event.at_ns <= from_ns).map_or(0, |e| e.seq);
        let mut since_ns = from_ns;
        for seq in start..end {
            let (owner, to_ns) = (self.owner(seq), self.at(seq + 1));
            let last = seq + 1 == end || self.at(seq + 1) >= self.at(end);
            let stays = !last && self.owner(seq + 1) == owner;
            if stays && (owner.is_none() || owner != self.taken_up(seq + 1)) {
                continue;
            }
            if self.is_idle_too_long(owner, &own, since_ns, to_ns) {
                return true;
            }
            since_ns = to_ns;
        }
        false
    }

    /// What somebody begins to work under, or to wait with, at this event.
    fn taken_up(&self, seq: u64) -> Option<Incarnation> {
        let acquires = self.acquires();
        acquires.iter().find(|a| a.invoke == seq).and_then(|a| self.incarnation(a))
    }

    fn is_idle_too_long(
        &self,
        owner: Option<Incarnation>,
        own: &Option<Incarnation>,
        from_ns: u64,
        to_ns: u64,
    ) -> bool {
        let Some(owner) = owner.filter(|owner| Some(owner) != own.as_ref()) else {
            return false;
        };
        let Some(idle_ns) = self.idle_since(&owner, to_ns) else { return false };
        let idle_ns = idle_ns.max(from_ns);
        let past = || self.history.events.iter().filter(move |event| event.at_ns <= to_ns);
        let lease = past().rev().find_map(|event| match &event.kind {
            EventKind::Commit(commit) => commit.events.iter().rev().find_map(|change| {
                (change.key == owner.0 && change.change == KeyChange::Put).then_some(change.lease)
            }),
            _ => None,
        });
        let session = self.history.events.iter().any(|event| match &event.kind {
            EventKind::Return {
                outcome: Outcome::Ok(Reply::Session { lease: of, .. }), ..
            } => Some(*of) == lease && lease != Some(0),
            _ => false,
        });
        if lease == Some(0) {
            return to_ns > idle_ns.max(self.healed_ns) + 5 * S;
        }
        if !session {
            return to_ns > idle_ns.max(self.dead_by_ns) + 5 * S;
        }
        let processed = past().filter(|event| match &event.kind {
            EventKind::Lease(of) => {
                let counts =
                    matches!(of.change, LeaseChange::Granted { .. } | LeaseChange::Renewed);
                Some(of.lease) == lease && counts
            }
            _ => false,
        });
        let last_ns = processed.map(|event| event.at_ns).max();
        if last_ns > Some(idle_ns) {
            return to_ns > idle_ns.max(self.arrived_ns) + 5 * S;
        }
        let base_ns = last_ns.max(self.promoted_ns);
        base_ns.is_some_and(|base_ns| to_ns > self.dead_by_ns.max(base_ns + self.dead_ns))
    }

    /// Since when nobody works under an incarnation, waits with it or gives it back; none if
    /// somebody does.
    fn idle_since(&self, incarnation: &Incarnation, to_ns: u64) -> Option<u64> {
        let mut idle_ns = 0;
        for acquire in self.acquires() {
            if self.incarnation(&acquire).as_ref() != Some(incarnation) {
                continue;
            }
            if self.at(acquire.invoke) >= to_ns {
                continue;
            }
            let end = self.over(acquire.op)?;
            idle_ns = idle_ns.max(self.at(end));
            let granted =
                matches!(self.returned(acquire.op), Some((_, Outcome::Ok(Reply::Acquired { .. }))));
            if granted {
                let over = self.history.events.iter().find(|event| {
                    let of_node = event.node == acquire.node && event.seq > end;
                    of_node && self.ends_belief(&event.kind, &acquire)
                })?;
                idle_ns = idle_ns.max(Some(over.at_ns).filter(|ns| *ns <= to_ns)?);
            }
            for event in self.history.events.iter().filter(|event| event.seq > acquire.invoke) {
                let EventKind::Invoke { op, f, .. } = &event.kind else { continue };
                let back = matches!(f, Function::Unlock { .. } | Function::CloseSession);
                if back && event.node == acquire.node && event.at_ns <= to_ns {
                    let over_ns = self.at(self.over(*op)?);
                    idle_ns = if over_ns <= to_ns { idle_ns.max(over_ns) } else { idle_ns };
                }
            }
        }
        (idle_ns <= to_ns).then_some(idle_ns)
    }

    fn ends_belief(&self, kind: &EventKind, acquire: &Acquire) -> bool {
        match kind {
            EventKind::Killed => true,
            EventKind::LossNoticed { holding } => Some(*holding) == acquire.holding,
            EventKind::Invoke { holding, f, .. } => match f {
                Function::Unlock { .. } => *holding == acquire.holding,
                Function::CloseSession => true,
                _ => false,
            },
            _ => false,
        }
    }
}
