//! Small files, put into one order.

use super::*;
use crate::history::{Commit, KeyEvent, NodeName, codec::encode};

fn file(name: &str, node: NodeName, events: Vec<(u64, EventKind)>) -> (String, String) {
    let events = (0..).zip(events);
    let events = events.map(|(seq, (at_ns, kind))| Event { seq, at_ns, node, kind }).collect();
    (name.to_owned(), encode(&History { events }))
}

fn lock(op: u64) -> EventKind {
    let f = Function::Lock { name: "l".into() };
    EventKind::Invoke { op: OpId(op), holding: Some(HoldingId(op)), f }
}

fn acquired(op: u64, key: &str, token: i64) -> EventKind {
    let reply = Reply::Acquired { key: key.into(), token };
    EventKind::Return { op: OpId(op), outcome: Outcome::Ok(reply) }
}

/// A commit of one key: its revision, its lower bound, and the create revision.
fn commit(revision: i64, lower: u64, change: KeyChange, key: &str, created: i64) -> EventKind {
    let event = KeyEvent { change, key: key.into(), create_revision: created, lease: 10 };
    let cause = if change == KeyChange::Put { Cause::Put } else { Cause::Delete };
    let index = revision as u64 - 1;
    EventKind::Commit(Commit { index, revision, cause, member_ns: lower, events: vec![event] })
}

/// Two clients and a watch: `l/a` owned, `l/b` waits, `l/a` expires, `l/b` is granted at 60.
fn hand_over(told: u64, lower: u64) -> Vec<(String, String)> {
    let (a, b) = (NodeName::Client(1), NodeName::Client(2));
    let watch = vec![
        (110, commit(2, 101, KeyChange::Put, "l/a", 2)),
        (130, commit(3, 118, KeyChange::Put, "l/b", 3)),
        (told, commit(4, lower, KeyChange::Delete, "l/a", 2)),
    ];
    vec![
        file("a", a, vec![(100, lock(1)), (105, acquired(1, "l/a", 2))]),
        file("b", b, vec![(120, lock(2)), (160, acquired(2, "l/b", 3))]),
        file("watch", NodeName::Etcd(1), watch),
    ]
}

/// Cut anywhere in its first line, a file is of a process that recorded nothing, and the history is
/// that of the others; what is no record is an error all the same, and so are no records at all.
#[test]
fn a_record_that_is_not_begun_is_left_out() {
    let files = hand_over(170, 140);
    let expected = merge(&files).unwrap();
    let header = crate::history::codec::header_line();
    for length in 0..header.len() {
        let text = header[..length].to_owned();
        let mut files = files.clone();
        files.insert(1, ("cut".to_owned(), text.clone()));
        assert_eq!(merge(&files).unwrap(), expected, "cut at {length}");
        assert!(matches!(merge(&[("cut".to_owned(), text)]), Err(MergeError::Empty)));
    }
    for text in ["{}", "x", "{\"leasehold_histories", "\n", "{\"leasehold_history\":1}x"] {
        let mut files = files.clone();
        files.push(("other".to_owned(), text.to_owned()));
        let error = merge(&files).unwrap_err().to_string();
        assert!(error.starts_with("other: line 1: not a history"), "{text:?}: {error}");
    }
}

/// Places of the commits among the other events, by their times.
fn commit_times(history: &History) -> Vec<(u64, Cause)> {
    let commits = history.events.iter().filter_map(|event| match &event.kind {
        EventKind::Commit(commit) => Some((event.at_ns, commit.cause)),
        _ => None,
    });
    commits.collect()
}

/// A watch tells late: a commit is put before the return that it made possible, and a deletion
/// that nobody asked for is an expiry.
#[test]
fn commits_are_put_before_what_they_made_possible() {
    let history = merge(&hand_over(170, 140)).unwrap();
    let expected = vec![(5, Cause::Put), (30, Cause::Put), (60, Cause::Expiry(10))];
    assert_eq!(commit_times(&history), expected);
    let seqs: Vec<u64> = history.events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (0..7).collect::<Vec<_>>());
    let granted = &history.events[6].kind;
    assert_eq!(*granted, acquired(2, "l/b", 3));
}

/// A grant that the owner's key outlived, by a read that still saw it, is not excused.
#[test]
fn no_commit_is_put_before_its_lower_bound() {
    let history = merge(&hand_over(190, 175)).unwrap();
    assert_eq!(commit_times(&history)[2].0, 75);
    assert_eq!(history.events[5].kind, acquired(2, "l/b", 3));
}

/// A process that was killed while it wrote leaves a line without an end.
#[test]
fn a_last_line_without_an_end_is_left_out() {
    let mut files = hand_over(170, 140);
    let events = merge(&files).unwrap().events.len();
    let text = &mut files[1].1;
    text.truncate(text.len() - 20);
    let cut = merge(&files).unwrap();
    assert_eq!(cut.events.len(), events - 1);
}

/// Each kind of damage is named with its file, its line and its field.
#[test]
fn damage_is_named() {
    let good = hand_over(170, 140);
    let damaged = |file: usize, from: &str, to: &str| {
        let mut files = good.clone();
        assert!(files[file].1.contains(from), "{} lacks {from}", files[file].1);
        files[file].1 = files[file].1.replacen(from, to, 1);
        merge(&files).unwrap_err().to_string()
    };
    assert!(damaged(0, "\"at_ns\":105", "\"at_ns\":99").starts_with("a: line 3: at_ns is 99"));
    assert!(damaged(1, "\"seq\":1", "\"seq\":3").starts_with("b: line 3: seq 3, expected 1"));
    assert!(damaged(1, "client-2", "clint-2").contains("b: line 2: not an event: unknown node"));
    assert!(damaged(1, "\"op\":2", "\"op\":1").contains("b: line 2: op 1 names two operations"));
    assert!(damaged(0, "\"op\":1", "\"op\":9").contains("a: line 3: op 1 returns without"));
    assert!(damaged(2, "\"revision\":4", "\"revision\":3").contains("watch: line 4: revision"));
    assert!(damaged(2, "\"member_ns\":140", "\"member_ns\":171").contains("line 4: member_ns"));
    assert!(matches!(merge(&[]), Err(MergeError::Empty)));
    let mut twice = good.clone();
    twice.push(("copy".into(), good[2].1.clone()));
    assert!(merge(&twice).unwrap_err().to_string().contains("commit is in two files"));
}
