//! Reached properties, the control arm and the judge's weighing, on stories told for them.

use std::collections::BTreeMap;

use leasehold::{
    checker::{Property, Verdict, control_arm, judge, reached},
    history::{
        Cause, EventKind, FaultAction, Function, LeaseChange, LeaseEvent, NodeName, Outcome, Reply,
        RowResult,
    },
    report::Timeline,
};

use super::story::Story;

/// Client 1 is suspended between check and write and loses its lease; client 2 reads; client 1 goes
/// on and is refused.
fn suspended_holder() -> Story {
    let mut story = Story::new();
    let node = NodeName::Client(1);
    let old = story.acquire(1, 1);
    story.record(node, EventKind::Point { name: "client.before_write".to_owned() });
    story.record(node, EventKind::Fault { index: 0, action: FaultAction::Begin });
    story.expire(1);
    let new = story.acquire(2, 2);
    story.read(2, 2, "k", new, "");
    story.record(node, EventKind::Fault { index: 0, action: FaultAction::End });
    story.record(node, EventKind::Fault { index: 0, action: FaultAction::Effect(1) });
    let write = story.writing(1, 1, ("k", "late"), None);
    story.apply(write, Some(old), RowResult::Refused);
    story.fail(write);
    story
}

/// Each property of the story is counted once, and a suspend counts only by its family's name.
#[test]
fn properties_of_a_suspended_holder() {
    let history = suspended_holder().finish();
    let reached_with = |family| reached(&history, &BTreeMap::from([(0, family)]));
    let met = reached_with("suspend");
    let expected = [
        Property::Overlap,
        Property::StaleRefusedWrite,
        Property::StaleRefusedByReadOnly,
        Property::ExpiryWhileHeld,
        Property::HandOverByExpiry,
        Property::PauseBeforeWrite,
        Property::OverlapBySuspend,
    ];
    for (property, count) in met.rows() {
        assert_eq!(count, u64::from(expected.contains(&property)), "{}", property.name());
    }
    assert_eq!(reached_with("pause").count(Property::OverlapBySuspend), 0);
}

/// A cut counts as a lost keep-alive if a lease was not renewed for more than half its TTL.
#[test]
fn keep_alive_lost_to_a_cut() {
    let lost = |renewed: bool| {
        let mut story = Story::new();
        let lease = |change| EventKind::Lease(LeaseEvent { lease: 0x100, change, member_ns: 0 });
        let fault = |action| EventKind::Fault { index: 3, action };
        // An event of a story takes 0.1 s.
        story.record(NodeName::Etcd(1), lease(LeaseChange::Granted { ttl_s: 1 }));
        story.record(NodeName::Client(1), fault(FaultAction::Begin));
        for _ in 0..4 {
            let change = if renewed { LeaseChange::Renewed } else { LeaseChange::Expired };
            let kind = if renewed { lease(change) } else { fault(FaultAction::Effect(1)) };
            story.record(NodeName::Etcd(1), kind);
        }
        story.record(NodeName::Client(1), fault(FaultAction::Effect(1)));
        story.record(NodeName::Client(1), fault(FaultAction::End));
        story.record(NodeName::Etcd(1), lease(LeaseChange::Renewed));
        let met = reached(&story.finish(), &BTreeMap::from([(3, "cut-one-way")]));
        met.count(Property::KeepAliveLostToCut)
    };
    assert_eq!((lost(false), lost(true)), (1, 0));
}

/// The cause of a hand-over is told from who asked for the delete.
#[test]
fn causes_of_hand_overs() {
    let property = |end: &dyn Fn(&mut Story)| {
        let mut story = Story::new();
        story.acquire(1, 1);
        end(&mut story);
        story.acquire(2, 2);
        let met = reached(&story.finish(), &BTreeMap::new());
        let met: Vec<_> = met.rows().filter(|(_, count)| *count > 0).map(|(p, _)| p).collect();
        met[..].iter().copied().find(|property| *property != Property::Overlap)
    };
    let unlock = property(&|story| story.release(1, 1));
    let revoke = property(&|story| story.dequeue(1, Cause::Revoke(0x100)));
    let delete = property(&|story| story.dequeue(1, Cause::Delete));
    assert_eq!(unlock, Some(Property::HandOverByUnlock));
    assert_eq!(revoke, Some(Property::HandOverByRevoke));
    assert_eq!(delete, Some(Property::HandOverByOutsideDelete));
}

/// Two holdings of one incarnation, as of a re-entrant acquire, are no overlap.
#[test]
fn one_tenure_does_not_overlap_itself() {
    let mut story = Story::new();
    story.acquire(1, 1);
    story.acquire(1, 2);
    let met = reached(&story.finish(), &BTreeMap::new());
    assert_eq!(met.count(Property::Overlap), 0);
}

/// The control arm demands a contended hand-over, and nothing but fresh-accepted writes.
#[test]
fn control_arm_is_strict() {
    let mut story = Story::new();
    let token = story.acquire(1, 1);
    story.write(1, 1, ("k", "one"), token, None);
    let alone = judge(&story.clone().finish(), &BTreeMap::new());
    assert!(control_arm(&alone.classes, &alone.reached).unwrap_err().contains("waiter"));
    let lock = story.lock(2, 2);
    let next = story.enqueue(2);
    story.release(1, 1);
    story.acquired(lock, next);
    let contended = judge(&story.finish(), &BTreeMap::new());
    assert_eq!(control_arm(&contended.classes, &contended.reached), Ok(()));
    let faulty = judge(&suspended_holder().finish(), &BTreeMap::new());
    assert!(control_arm(&faulty.classes, &faulty.reached).unwrap_err().contains("overlap"));
}

/// A violation that leans on a failed assumption becomes unknown; one that does not stands.
#[test]
fn failed_assumptions_are_weighed() {
    let mut story = Story::new();
    let token = story.acquire(1, 1);
    story.write(1, 1, ("k", "one"), token, None);
    story.acquire(2, 2);
    let f = Function::Lock { name: "other".to_owned() };
    let op = story.invoke(3, Some(3), f);
    story.answer(op, Outcome::Ok(Reply::Acquired { key: "other/300".to_owned(), token: 99 }));
    let write = story.writing(3, 3, ("k", "two"), None);
    story.apply(write, Some(99), RowResult::Admitted);
    let judgement = judge(&story.finish(), &BTreeMap::new());
    let verdict = |name| &judgement.findings.iter().find(|f| f.checker == name).unwrap().verdict;
    let Verdict::Unknown(why) = verdict("no-stale-write") else { panic!("{judgement:?}") };
    assert!(why.contains("one domain a lock"), "{why}");
    assert_eq!(judgement.worst().unwrap().checker, "grant-validity");
}

/// The window around a violation shows who was involved, marks the evidence and keeps to its cap.
#[test]
fn timeline_of_a_violation() {
    let mut story = suspended_holder();
    for _ in 0..50 {
        let token = story.acquire(3, 9);
        story.read(3, 9, "k", token, "");
        story.release(3, 9);
    }
    let write = story.writing(1, 1, ("k", "stale"), None);
    story.apply(write, Some(11), RowResult::Admitted);
    let history = story.finish();
    let judgement = judge(&history, &BTreeMap::new());
    let violation = judgement.violation().expect("a stale write was accepted");
    let timeline = Timeline::new(&history).evidence(&violation.events).window().max_lines(12);
    let text = timeline.to_string();
    let marked = text.lines().filter(|line| line.starts_with("> ")).count();
    let gaps = text.lines().filter(|line| line.contains("left out")).count();
    assert_eq!(marked, violation.events.len(), "{text}");
    assert_eq!(text.lines().count(), 12 + gaps, "{text}");
    assert!(gaps >= 1 && text.contains("write k = stale admitted  token 11"), "{text}");
}
