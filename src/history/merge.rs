//! One history from the files of several processes on one machine, which share its monotonic clock.
//!
//! Each file is in the order of its time; together they are sorted by time, equal times by the
//! order of the files. A client notes an invocation before it sends and a return after it received,
//! so what the order says of two processes is true of them, however late one of them was scheduled.
//!
//! Commits of a real etcd are known from a watch only, so later than they happened. Each carries
//! two bounds: when the watch told it, and (as its `member_ns`) when a linearizable read had not
//! yet seen it. It is put as late as the record allows: where the watch told it, or just before the
//! return of the first lock or unlock that it must precede; never below its lower bound, so that a
//! grant without the lock is not excused. A deletion that nobody asked for was an expiry.

use std::collections::BTreeMap;

use super::{
    Cause, Event, EventKind, Function, History, HoldingId, KeyChange, OpId, Outcome, Reply,
    codec::{CodecError, decode_numbered, header_line},
};

/// Files that are not parts of one history.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("no events in the files given")]
    Empty,
    /// A file is broken.
    #[error("{file}: {source}")]
    Codec {
        /// The file's name.
        file: String,
        /// What is wrong, and in which line.
        source: CodecError,
    },
    /// A line does not fit those before it.
    #[error("{file}: line {line}: {field} {what}")]
    Line {
        /// The file's name.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The field in question.
        field: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

/// Whether this is the record of a process that was killed before it had written its first line:
/// nothing, or a part of the header without an end.
pub fn is_unbegun(text: &str) -> bool {
    !text.contains('\n') && header_line().starts_with(text)
}

/// Merges the texts of the files, each with its name. A last line without an end is left out: its
/// process was killed while writing it; so is a file that is not begun ([`is_unbegun`]). Times
/// begin at the first event.
///
/// What the checkers can say of it: the classes of writes, lost updates and token order rest on the
/// storage's apply order and on create revisions, which no clock touches. Grant validity is judged
/// within the bounds of the commits: a grant that came earlier than its turn by less than the time
/// between two reads is not seen. Whether a write is *late* or *fresh* is decided with the tenure's
/// end at its latest. Session honesty is judged by the session's own deadline only, because a real
/// etcd does not tell when it renewed a lease. A record that is missing leaves its checkers without
/// a verdict.
///
/// # Errors
/// When a file is broken or goes back in time, or when the files contradict each other: a name for
/// two operations, a return of none, two watches.
pub fn merge(files: &[(String, String)]) -> Result<History, MergeError> {
    let mut lines = Vec::new();
    for (file, (name, text)) in files.iter().enumerate() {
        if !is_unbegun(text) {
            read(file, name, text, &mut lines)?;
        }
    }
    // Stable: the order of the files decides between equal times.
    lines.sort_by_key(|line| line.event.at_ns);
    check_operations(files, &lines)?;
    check_commits(files, &lines)?;
    let start = lines.first().ok_or(MergeError::Empty)?.event.at_ns;
    let mut events: Vec<Event> = lines.into_iter().map(|line| line.event).collect();
    place_commits(&mut events, start);
    for (seq, event) in (0..).zip(&mut events) {
        event.seq = seq;
        event.at_ns -= start;
        match &mut event.kind {
            EventKind::Commit(commit) => {
                commit.member_ns = commit.member_ns.saturating_sub(start);
            }
            EventKind::Held { local_ns, deadline_ns, .. } => {
                *local_ns = local_ns.saturating_sub(start);
                *deadline_ns = deadline_ns.saturating_sub(start);
            }
            _ => {}
        }
    }
    name_expiries(&mut events);
    Ok(History { events })
}

/// An event and where it stands.
struct Line {
    file: usize,
    line: usize,
    event: Event,
}

impl Line {
    fn error(&self, files: &[(String, String)], field: &'static str, what: String) -> MergeError {
        MergeError::Line { file: files[self.file].0.clone(), line: self.line, field, what }
    }
}

fn read(file: usize, name: &str, text: &str, lines: &mut Vec<Line>) -> Result<(), MergeError> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let events = decode_numbered(&text[..whole])
        .map_err(|source| MergeError::Codec { file: name.to_owned(), source })?;
    let mut last_ns = 0;
    for (line, event) in events {
        if event.at_ns < last_ns {
            let what = format!("is {}, before the {last_ns} of the event above", event.at_ns);
            let file = name.to_owned();
            return Err(MergeError::Line { file, line, field: "at_ns", what });
        }
        last_ns = event.at_ns;
        lines.push(Line { file, line, event });
    }
    Ok(())
}

/// Each operation is invoked once and returns at most once, after that.
fn check_operations(files: &[(String, String)], lines: &[Line]) -> Result<(), MergeError> {
    let mut open: BTreeMap<OpId, bool> = BTreeMap::new();
    for line in lines {
        match &line.event.kind {
            EventKind::Invoke { op, .. } if open.insert(*op, true).is_some() => {
                let what = format!("{} names two operations", op.0);
                return Err(line.error(files, "op", what));
            }
            EventKind::Return { op, .. } if open.insert(*op, false) != Some(true) => {
                let what = format!("{} returns without being open", op.0);
                return Err(line.error(files, "op", what));
            }
            _ => {}
        }
    }
    Ok(())
}

/// One watch told the commits: their order is that of its file, and each has sensible bounds.
fn check_commits(files: &[(String, String)], lines: &[Line]) -> Result<(), MergeError> {
    let (mut watch, mut last) = (None, (0, 0));
    for line in lines {
        let EventKind::Commit(commit) = &line.event.kind else { continue };
        if *watch.get_or_insert(line.file) != line.file {
            let what = "is in two files: give the record of one watch".to_owned();
            return Err(line.error(files, "commit", what));
        }
        if commit.member_ns > line.event.at_ns || commit.member_ns < last.1 {
            let what = format!(
                "is {}, expected {} (of the commit above) to {} (its at_ns)",
                commit.member_ns, last.1, line.event.at_ns
            );
            return Err(line.error(files, "member_ns", what));
        }
        if commit.revision <= last.0 {
            let what = format!("is {} after {}", commit.revision, last.0);
            return Err(line.error(files, "revision", what));
        }
        last = (commit.revision, commit.member_ns);
    }
    Ok(())
}

/// A life of a queue key, as positions in the list of commits.
#[derive(Debug, Clone, Copy)]
struct Life {
    create_revision: i64,
    created: usize,
    deleted: Option<usize>,
}

/// Where each commit is told, what it is of, and the latest time at which it can have happened.
#[derive(Default)]
struct Commits<'e> {
    /// Lower bound and latest time, in the order of revisions.
    bounds: Vec<(u64, u64)>,
    lives: BTreeMap<&'e str, Vec<Life>>,
}

impl<'e> Commits<'e> {
    fn new(events: &'e [Event]) -> Self {
        let mut commits = Commits::default();
        for event in events {
            let EventKind::Commit(commit) = &event.kind else { continue };
            let at = commits.bounds.len();
            commits.bounds.push((commit.member_ns, event.at_ns));
            for change in &commit.events {
                let lives = commits.lives.entry(change.key.as_str()).or_default();
                let create_revision = change.create_revision;
                let known = lives.last_mut().filter(|life| life.deleted.is_none());
                match (change.change, known) {
                    (KeyChange::Put, Some(life)) if life.create_revision == create_revision => {}
                    (KeyChange::Put, _) => {
                        lives.push(Life { create_revision, created: at, deleted: None });
                    }
                    (KeyChange::Delete, Some(life)) => life.deleted = Some(at),
                    (KeyChange::Delete, None) => {}
                }
            }
        }
        commits
    }

    /// The life of this key that the token names; if it names none, the last that can have begun
    /// by then.
    fn life(&self, key: &str, token: i64, ns: u64) -> Option<Life> {
        let lives = self.lives.get(key)?;
        let named = lives.iter().find(|life| life.create_revision == token);
        let begun = |life: &&Life| self.bounds[life.created].0 <= ns;
        named.or_else(|| lives.iter().rev().find(begun)).copied()
    }

    /// The commit, and those before it, happened by then, as far as its lower bound admits.
    fn happened_by(&mut self, commit: usize, ns: u64) {
        let (lower, latest) = &mut self.bounds[commit];
        *latest = (*latest).min(ns.max(*lower));
    }

    /// The lock was granted with this key: it was created, and whoever was before it was gone.
    fn granted(&mut self, key: &str, own: Life, ns: u64) {
        self.happened_by(own.created, ns);
        let Some((queue, _)) = key.rsplit_once('/') else { return };
        let before = |(other, lives): (&&str, &Vec<Life>)| {
            let beside = other.rsplit_once('/').is_some_and(|(name, _)| name == queue);
            let lives = lives
                .iter()
                .filter(move |life| beside && life.create_revision < own.create_revision);
            lives.filter_map(|life| life.deleted).collect::<Vec<_>>()
        };
        let last = self.lives.iter().flat_map(before).max();
        if let Some(last) = last {
            self.happened_by(last, ns);
        }
    }

    /// A revision comes after those below it.
    fn settle(&mut self) {
        let mut next = u64::MAX;
        for (lower, latest) in self.bounds.iter_mut().rev() {
            *latest = (*latest).min(next).max(*lower);
            next = *latest;
        }
    }
}

/// Moves the commits to where they belong.
fn place_commits(events: &mut [Event], start: u64) {
    let mut commits = Commits::new(events);
    let mut unlocks: BTreeMap<OpId, HoldingId> = BTreeMap::new();
    let mut lives: BTreeMap<HoldingId, Life> = BTreeMap::new();
    let mut locks: BTreeMap<OpId, HoldingId> = BTreeMap::new();
    for event in events.iter() {
        match &event.kind {
            EventKind::Invoke { op, holding: Some(holding), f } => match f {
                Function::Unlock { .. } => drop(unlocks.insert(*op, *holding)),
                Function::Lock { .. } | Function::TryLock { .. } => {
                    locks.insert(*op, *holding);
                }
                _ => {}
            },
            EventKind::Return { op, outcome: Outcome::Ok(Reply::Acquired { key, token }) } => {
                let Some(life) = commits.life(key, *token, event.at_ns) else { continue };
                commits.granted(key, life, event.at_ns);
                if let Some(holding) = locks.get(op) {
                    lives.insert(*holding, life);
                }
            }
            EventKind::Return { op, outcome: Outcome::Ok(_) } => {
                let life = unlocks.get(op).and_then(|holding| lives.get(holding));
                if let Some(deleted) = life.and_then(|life| life.deleted) {
                    commits.happened_by(deleted, event.at_ns);
                }
            }
            _ => {}
        }
    }
    commits.settle();
    let bounds = commits.bounds;
    let mut bounds = bounds.into_iter();
    for event in events.iter_mut() {
        let EventKind::Commit(_) = event.kind else { continue };
        if let Some((_, latest)) = bounds.next() {
            event.at_ns = latest.max(start);
        }
    }
    // At one time the commit is first: it was moved there because the other needs it.
    events.sort_by_key(|event| (event.at_ns, !matches!(event.kind, EventKind::Commit(_))));
}

/// A watch does not tell why a key went. If a client held the lock with it and neither it nor its
/// session had been given back, its lease ran out: nobody else deletes keys of the queue.
fn name_expiries(events: &mut [Event]) {
    let mut leases: BTreeMap<String, i64> = BTreeMap::new();
    let mut locks: BTreeMap<OpId, HoldingId> = BTreeMap::new();
    let mut held: BTreeMap<HoldingId, (String, super::NodeName)> = BTreeMap::new();
    for event in events {
        let node = event.node;
        match &mut event.kind {
            EventKind::Invoke { op, holding, f } => match (f, holding) {
                (Function::Lock { .. } | Function::TryLock { .. }, Some(holding)) => {
                    locks.insert(*op, *holding);
                }
                (Function::Unlock { .. }, Some(holding)) => drop(held.remove(holding)),
                (Function::CloseSession, _) => held.retain(|_, (_, of)| *of != node),
                _ => {}
            },
            EventKind::Return { op, outcome: Outcome::Ok(Reply::Acquired { key, .. }) } => {
                if let Some(holding) = locks.get(op) {
                    held.insert(*holding, (key.clone(), node));
                }
            }
            EventKind::Commit(commit) => {
                for change in &commit.events {
                    if change.change == KeyChange::Put {
                        leases.insert(change.key.clone(), change.lease);
                        continue;
                    }
                    let lease = leases.remove(&change.key).unwrap_or(change.lease);
                    if held.values().any(|(key, _)| *key == change.key) {
                        commit.cause = Cause::Expiry(lease);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
