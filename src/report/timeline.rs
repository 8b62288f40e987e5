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

use super::{
    window::{self, Scope},
    words,
};
use crate::{
    checker::Index,
    history::{Event, History},
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
        let window = self.window.then(|| Scope::new(index, &self.evidence));
        let shown = |event: &&Event| {
            self.evidence.contains(&event.seq)
                || window::interesting(event)
                    && window.as_ref().is_none_or(|w| w.shows(index, event))
        };
        self.history.events.iter().filter(shown).collect()
    }
}

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = Index::new(self.history);
        let selected = self.selected(&index);
        let mut left_out = 0;
        let kept = window::nearest(&selected, &self.evidence, self.max_lines);
        for (event, kept) in selected.iter().zip(kept) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{
        Cause, Commit, EventKind, FaultAction, KeyChange, KeyEvent, NodeName, Phase,
    };

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
