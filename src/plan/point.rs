//! The names of code points that a plan may name, by who passes them.
//!
//! Pure data: the points themselves are the business of `point` and of the code that passes them.
//! A lock of the caller's own may have points of its own, under a first word that is not here.

use crate::history::NodeName;

/// Those that clients pass.
pub const CLIENT_POINTS: [&str; 18] = [
    "client.after_lock",
    "client.after_enter",
    "client.before_write",
    "client.after_write",
    "client.before_unlock",
    "queue.before_enqueue",
    "queue.after_enqueue",
    "queue.before_wait",
    "queue.after_wait",
    "mutex.before_unlock",
    "mutex.after_unlock",
    "session.before_grant",
    "session.after_grant",
    "session.before_renew",
    "session.after_renew",
    "election.before_proclaim",
    "election.before_resign",
    "election.after_resign",
];
/// Those that the storage passes, for each request or each sync.
pub const STORAGE_POINTS: [&str; 4] =
    ["storage.before_sync", "storage.after_sync", "storage.before_apply", "storage.before_answer"];

const CLIENTS_PASS: &str = "a point that clients pass (client. with after_lock, after_enter, \
    before_write, after_write, before_unlock; queue. with before_enqueue, after_enqueue, \
    before_wait, after_wait; mutex. with before_unlock, after_unlock; session. with before_grant, \
    after_grant, before_renew, after_renew; election. with before_proclaim, before_resign, \
    after_resign), or one of your own lock, with another first word";
const STORAGE_PASSES: &str = "a point that the storage passes (storage. with before_sync, \
    after_sync, before_apply, before_answer)";
const NOBODY_PASSES: &str = "a client or the storage as the node: no other passes a point";

fn first_word(point: &str) -> &str {
    point.split('.').next().unwrap_or(point)
}

/// Whether it can only be a point of the caller's own: its first word is none of ours.
pub fn is_own_point(point: &str) -> bool {
    let mut all = CLIENT_POINTS.iter().chain(&STORAGE_POINTS);
    all.all(|known| first_word(known) != first_word(point))
}

/// What is expected where this node cannot pass this point; nothing if it can.
pub(super) fn never_passed(node: NodeName, point: &str) -> Option<&'static str> {
    match node {
        NodeName::Client(_) => {
            let passed = CLIENT_POINTS.contains(&point) || is_own_point(point);
            (!passed).then_some(CLIENTS_PASS)
        }
        NodeName::Storage => (!STORAGE_POINTS.contains(&point)).then_some(STORAGE_PASSES),
        NodeName::Etcd(_) | NodeName::Nemesis => Some(NOBODY_PASSES),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn reached_in(dir: &Path, points: &mut BTreeSet<String>) {
        for file in fs::read_dir(dir).expect("a folder of sources") {
            let path = file.expect("an entry").path();
            if path.is_dir() {
                reached_in(&path, points);
            } else {
                let text = fs::read_to_string(&path).expect("a source");
                // Put together here, so that this line is none of its own findings.
                let call = format!("reach{}\"", '(');
                let calls = text.split(&call).skip(1);
                points.extend(calls.filter_map(|call| Some(call.split('"').next()?.to_owned())));
            }
        }
    }

    /// The lists are the points that the sources pass, and the texts name each of them.
    #[test]
    fn the_lists_are_what_is_passed() {
        let mut passed = BTreeSet::new();
        reached_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut passed);
        let known = CLIENT_POINTS.iter().chain(&STORAGE_POINTS);
        assert_eq!(passed, known.map(|name| (*name).to_owned()).collect());
        for (names, text) in [(&CLIENT_POINTS[..], CLIENTS_PASS), (&STORAGE_POINTS, STORAGE_PASSES)]
        {
            for name in names {
                let (first, last) = name.split_once('.').expect("two words");
                assert!(text.contains(&format!("{first}. with")) && text.contains(last), "{name}");
            }
        }
    }

    /// A point that its node never passes is refused; one of an own lock is not.
    #[test]
    fn misspelt_and_misplaced_points_are_refused() {
        let client = NodeName::Client(1);
        for (node, point, passed) in [
            (client, "client.before_write", true),
            (client, "client.befor_write", false),
            (client, "mine.before_write", true),
            (client, "storage.before_sync", false),
            (NodeName::Storage, "storage.before_sync", true),
            (NodeName::Storage, "client.before_write", false),
            (NodeName::Storage, "mine.before_write", false),
            (NodeName::Etcd(1), "client.before_write", false),
            (NodeName::Etcd(1), "storage.before_sync", false),
        ] {
            assert_eq!(never_passed(node, point).is_none(), passed, "{node} {point}");
        }
    }
}
