//! A history as lines of plain text: true time, node, and what happened, in words.
//!
//! Either the whole history, or the window around the evidence of a violation: the holdings that
//! it involves, the commits on lock keys, the rows of the apply log, the faults. Lines beyond the
//! cap are left out where they are farthest from the evidence, and each gap says how many.
//! Left out always: boundary events, renewals, and "held" answers that are no evidence.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::words;
use crate::{
    checker::Index,
    history::{Commit, Event, EventKind, History, LeaseChange, OpId},
};

/// A timeline to be printed with `{}`.
///
/// ```
/// use leasehold::{history::History, report::Timeline};
/// assert_eq!(Timeline::new(&History::default()).to_string(), "");
/// ```
#[derive(Debug)]
pub struct Timeline<'a> {
    history: &'a History,
    families: BTreeMap<u32, &'a str>,
    evidence: BTreeSet<u64>,
    window: bool,
    max_lines: usize,
}

impl<'a> Timeline<'a> {
    /// The whole history, without marks.
    pub fn new(history: &'a History) -> Self {
        Timeline {
            history,
            families: BTreeMap::new(),
            evidence: BTreeSet::new(),
            window: false,
            max_lines: usize::MAX,
        }
    }

    /// Names the family of each fault by its index in the plan.
    pub fn families(mut self, families: &BTreeMap<u32, &'a str>) -> Self {
        self.families.clone_from(families);
        self
    }

    /// Marks these events, by their `seq`, with `>`.
    pub fn evidence(mut self, events: &[u64]) -> Self {
        self.evidence = events.iter().copied().collect();
        self
    }

    /// Shows only the window around the evidence.
    pub fn window(mut self) -> Self {
        self.window = true;
        self
    }

    /// Shows at most so many events; the evidence is shown in any case.
    pub fn max_lines(mut self, lines: usize) -> Self {
        self.max_lines = lines;
        self
    }

    /// The events to show, in order.
    fn selected(&self, index: &Index<'_>) -> Vec<&'a Event> {
        let window = self.window.then(|| Scope::new(index, self));
        let shown = |event: &&Event| {
            self.evidence.contains(&event.seq)
                || interesting(event) && window.as_ref().is_none_or(|w| w.shows(index, event))
        };
        self.history.events.iter().filter(shown).collect()
    }

    /// Which of the selected events are within the cap: those nearest to evidence; without
    /// evidence the first and the last ones.
    fn kept(&self, selected: &[&Event]) -> Vec<bool> {
        let anchored = selected.iter().any(|event| self.evidence.contains(&event.seq));
        let ends = [0, selected.len().saturating_sub(1)];
        let anchor = |at: usize| match anchored {
            true => self.evidence.contains(&selected[at].seq),
            false => ends.contains(&at),
        };
        let mut distance = vec![usize::MAX; selected.len()];
        let walk = |order: &mut dyn Iterator<Item = usize>, distance: &mut Vec<usize>| {
            let mut last = None;
            for at in order {
                last = if anchor(at) { Some(0) } else { last.map(|steps: usize| steps + 1) };
                distance[at] = distance[at].min(last.unwrap_or(usize::MAX));
            }
        };
        walk(&mut (0..selected.len()), &mut distance);
        walk(&mut (0..selected.len()).rev(), &mut distance);
        let mut nearest: Vec<usize> = (0..selected.len()).collect();
        nearest.sort_by_key(|at| distance[*at]);
        let mut kept = vec![false; selected.len()];
        for (rank, at) in nearest.into_iter().enumerate() {
            kept[at] = rank < self.max_lines || anchored && distance[at] == 0;
        }
        kept
    }
}

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = Index::new(self.history);
        let selected = self.selected(&index);
        let mut left_out = 0;
        for (event, kept) in selected.iter().zip(self.kept(&selected)) {
            if !kept {
                left_out += 1;
                continue;
            }
            gap(f, &mut left_out)?;
            let mark = if self.evidence.contains(&event.seq) { '>' } else { ' ' };
            let seconds = event.at_ns / 1_000_000_000;
            let millis = event.at_ns / 1_000_000 % 1_000;
            let text = words::describe(event, &index, &self.families);
            writeln!(f, "{mark} {seconds:>5}.{millis:03} s  {:<9}  {text}", event.node)?;
        }
        gap(f, &mut left_out)
    }
}

fn gap(f: &mut fmt::Formatter<'_>, left_out: &mut usize) -> fmt::Result {
    match std::mem::take(left_out) {
        0 => Ok(()),
        1 => writeln!(f, "  … 1 event left out"),
        n => writeln!(f, "  … {n} events left out"),
    }
}

fn interesting(event: &Event) -> bool {
    match &event.kind {
        EventKind::Storage(_) => false,
        EventKind::Lease(lease) => !matches!(lease.change, LeaseChange::Renewed),
        EventKind::Held { held, .. } => !held,
        // Of a true clock, as every node has it in the beginning, there is nothing to tell.
        EventKind::Rate { permille } => event.at_ns > 0 || *permille != 1000,
        EventKind::Deadline { deadline_ns, ended_ns, .. } => ended_ns > deadline_ns,
        _ => true,
    }
}

/// What belongs to the window around the evidence.
struct Scope {
    /// Positions in [`Index::holdings`].
    holdings: BTreeSet<usize>,
    /// Operations of these holdings.
    ops: BTreeSet<OpId>,
    from: u64,
    to: u64,
}

impl Scope {
    fn new(index: &Index<'_>, timeline: &Timeline<'_>) -> Scope {
        let evidence = &timeline.evidence;
        let mut holdings = BTreeSet::new();
        let of_ops = index.ops.iter().filter(|op| {
            let ended = op.end.is_some_and(|(seq, _)| evidence.contains(&seq));
            evidence.contains(&op.invoke) || ended
        });
        holdings.extend(of_ops.filter_map(|op| op.holding));
        let of_rows = index.rows.iter().filter(|row| evidence.contains(&row.seq));
        holdings.extend(of_rows.filter_map(|row| row.holding));
        for (at, holding) in index.holdings.iter().enumerate() {
            let incarnation = holding.incarnation.map(|i| &index.incarnations[i]);
            if incarnation.is_some_and(|i| evidence.contains(&i.created)) {
                holdings.insert(at);
            }
        }
        for event in timeline.history.events.iter().filter(|e| evidence.contains(&e.seq)) {
            if let EventKind::Held { holding, .. } = event.kind {
                holdings.extend(index.holdings.iter().position(|h| h.id == Some(holding)));
            }
        }
        let begun = holdings.iter().map(|h| index.ops[index.holdings[*h].acquire].invoke);
        let from = begun.chain(evidence.first().copied()).min().unwrap_or(0);
        let to = evidence.last().copied().unwrap_or(u64::MAX);
        let mine = |holding: Option<usize>| holding.is_some_and(|h| holdings.contains(&h));
        let ops = index.ops.iter().filter(|op| mine(op.holding)).map(|op| op.id).collect();
        Scope { ops, from, to, holdings }
    }

    fn shows(&self, index: &Index<'_>, event: &Event) -> bool {
        if event.seq < self.from || event.seq > self.to {
            return false;
        }
        match &event.kind {
            EventKind::Invoke { op, .. } | EventKind::Return { op, .. } => self.ops.contains(op),
            EventKind::LossNoticed { holding } | EventKind::Held { holding, .. } => {
                self.holdings.iter().any(|h| index.holdings[*h].id == Some(*holding))
            }
            EventKind::Commit(commit) => on_lock_key(index, commit),
            _ => true,
        }
    }
}

fn on_lock_key(index: &Index<'_>, commit: &Commit) -> bool {
    commit.events.iter().any(|event| {
        let queue = event.key.rsplit_once('/').map(|(name, _)| name);
        index.locks.iter().any(|lock| lock.named && Some(lock.name) == queue)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Cause, FaultAction, KeyChange, KeyEvent, NodeName, Phase};

    fn history(kinds: Vec<(NodeName, EventKind)>) -> History {
        let events = (0..).zip(kinds);
        let event = |(seq, (node, kind))| Event { seq, at_ns: 1_500_000_000 * seq, node, kind };
        History { events: events.map(event).collect() }
    }

    fn sample() -> History {
        let gone = KeyEvent {
            change: KeyChange::Delete,
            key: "lock/3e9".to_owned(),
            create_revision: 12,
            lease: 0x3e9,
        };
        let expiry = Commit {
            index: 9,
            revision: 17,
            cause: Cause::Expiry(0x3e9),
            member_ns: 0,
            events: vec![gone],
        };
        let fault = EventKind::Fault { index: 2, action: FaultAction::Begin };
        history(vec![
            (NodeName::Nemesis, EventKind::Phase(Phase::Traffic)),
            (NodeName::Client(1), fault),
            (NodeName::Etcd(1), EventKind::Commit(expiry)),
            (NodeName::Client(1), EventKind::Killed),
        ])
    }

    /// One line an event: time, node, words, and the mark of evidence.
    #[test]
    fn lines_say_when_where_and_what() {
        let (history, families) = (sample(), BTreeMap::from([(2, "pause")]));
        let text = Timeline::new(&history).families(&families).evidence(&[2]).to_string();
        let expected = "      0.000 s  nemesis    phase traffic\n\
                        \x20     1.500 s  client-1   fault 2 pause begins\n\
                        >     3.000 s  etcd-1     commit rev 17 expiry of lease 3e9: - lock/3e9\n\
                        \x20     4.500 s  client-1   killed\n";
        assert_eq!(text, expected);
    }

    /// The cap keeps what is nearest to the evidence, and each gap is counted.
    #[test]
    fn what_is_left_out_is_counted() {
        let history = sample();
        let text = Timeline::new(&history).evidence(&[2]).max_lines(1).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[0], "  … 2 events left out");
        assert!(lines[1].starts_with("> "), "{text}");
        assert_eq!(lines[2], "  … 1 event left out");
    }
}
