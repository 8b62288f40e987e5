//! Which ranges contain a key: the index of watchers.
//!
//! etcd keeps the watchers of ranges in an augmented red-black tree (`pkg/adt/interval_tree.go`).
//! This is the same idea as a treap: ordered by start and end, each node knows the greatest end
//! below it, so a question costs time in the answers and not in all ranges. The priorities are a
//! fixed sequence, because the shape must be the same in every run.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use bytes::Bytes;

use super::range::{End, Range};

/// Ranges, each with its holders.
#[derive(Debug)]
pub(super) struct RangeIndex<T> {
    single: BTreeMap<Bytes, BTreeSet<T>>,
    root: Link<T>,
    priorities: u64,
}

type Link<T> = Option<Box<Node<T>>>;

/// Where a range ends, for comparing: no end is after every end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Before(Bytes),
    None,
}

impl Limit {
    fn is_after(&self, key: &[u8]) -> bool {
        match self {
            Limit::Before(end) => key < &end[..],
            Limit::None => true,
        }
    }
}

#[derive(Debug)]
struct Node<T> {
    start: Bytes,
    end: Limit,
    /// The greatest end of this node and all below it.
    last: Limit,
    /// Nowhere less than that of the parent.
    priority: u64,
    holders: BTreeSet<T>,
    left: Link<T>,
    right: Link<T>,
}

impl<T> Node<T> {
    fn order(&self, start: &Bytes, end: &Limit) -> Ordering {
        start.cmp(&self.start).then_with(|| end.cmp(&self.end))
    }

    fn update(&mut self) {
        let below = [&self.left, &self.right].into_iter().flatten().map(|node| &node.last);
        self.last = below.chain([&self.end]).max().cloned().unwrap_or(Limit::None);
    }
}

impl<T> Default for RangeIndex<T> {
    fn default() -> Self {
        RangeIndex { single: BTreeMap::new(), root: None, priorities: 0 }
    }
}

impl<T: Ord> RangeIndex<T> {
    /// Adds a holder of a range.
    pub(super) fn insert(&mut self, range: &Range, holder: T) {
        let end = match &range.end {
            End::Single => {
                self.single.entry(range.start.clone()).or_default().insert(holder);
                return;
            }
            End::Before(end) => Limit::Before(end.clone()),
            End::Open => Limit::None,
        };
        let node = Node {
            start: range.start.clone(),
            last: end.clone(),
            end,
            priority: self.next_priority(),
            holders: BTreeSet::from([holder]),
            left: None,
            right: None,
        };
        self.root = Some(insert(self.root.take(), node));
    }

    /// Removes a holder of a range.
    pub(super) fn remove(&mut self, range: &Range, holder: &T) {
        let end = match &range.end {
            End::Single => {
                if let Some(holders) = self.single.get_mut(&range.start) {
                    holders.remove(holder);
                    if holders.is_empty() {
                        self.single.remove(&range.start);
                    }
                }
                return;
            }
            End::Before(end) => Limit::Before(end.clone()),
            End::Open => Limit::None,
        };
        self.root = remove(self.root.take(), &range.start, &end, holder);
    }

    /// Calls `found` with the holders of every range that contains the key, in the index's order.
    pub(super) fn containing<'a>(&'a self, key: &[u8], mut found: impl FnMut(&'a T)) {
        self.single.get(key).into_iter().flatten().for_each(&mut found);
        visit(&self.root, key, &mut found);
    }

    /// A fixed sequence without a pattern that an order of insertions could meet (splitmix64).
    fn next_priority(&mut self) -> u64 {
        self.priorities = self.priorities.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.priorities ^ (self.priorities >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn visit<'a, T>(link: &'a Link<T>, key: &[u8], found: &mut impl FnMut(&'a T)) {
    let Some(node) = link else { return };
    if !node.last.is_after(key) {
        return;
    }
    visit(&node.left, key, found);
    if &node.start[..] <= key {
        if node.end.is_after(key) {
            node.holders.iter().for_each(&mut *found);
        }
        visit(&node.right, key, found);
    }
}

fn insert<T: Ord>(link: Link<T>, new: Node<T>) -> Box<Node<T>> {
    let Some(mut node) = link else { return Box::new(new) };
    match node.order(&new.start, &new.end) {
        Ordering::Equal => node.holders.extend(new.holders),
        Ordering::Less => {
            let left = insert(node.left.take(), new);
            if left.priority < node.priority {
                return rotate_right(node, left);
            }
            node.left = Some(left);
        }
        Ordering::Greater => {
            let right = insert(node.right.take(), new);
            if right.priority < node.priority {
                return rotate_left(node, right);
            }
            node.right = Some(right);
        }
    }
    node.update();
    node
}

fn rotate_right<T>(mut node: Box<Node<T>>, mut left: Box<Node<T>>) -> Box<Node<T>> {
    node.left = left.right.take();
    node.update();
    left.right = Some(node);
    left.update();
    left
}

fn rotate_left<T>(mut node: Box<Node<T>>, mut right: Box<Node<T>>) -> Box<Node<T>> {
    node.right = right.left.take();
    node.update();
    right.left = Some(node);
    right.update();
    right
}

fn remove<T: Ord>(link: Link<T>, start: &Bytes, end: &Limit, holder: &T) -> Link<T> {
    let mut node = link?;
    match node.order(start, end) {
        Ordering::Equal => {
            node.holders.remove(holder);
            if node.holders.is_empty() {
                return merge(node.left.take(), node.right.take());
            }
        }
        Ordering::Less => node.left = remove(node.left.take(), start, end, holder),
        Ordering::Greater => node.right = remove(node.right.take(), start, end, holder),
    }
    node.update();
    Some(node)
}

/// Joins two trees, everything in the first being less than everything in the second.
fn merge<T>(left: Link<T>, right: Link<T>) -> Link<T> {
    let (mut left, mut right) = match (left, right) {
        (None, other) | (other, None) => return other,
        (Some(left), Some(right)) => (left, right),
    };
    if left.priority < right.priority {
        left.right = merge(left.right.take(), Some(right));
        left.update();
        Some(left)
    } else {
        right.left = merge(Some(left), right.left.take());
        right.update();
        Some(right)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn keys() -> impl Strategy<Value = Vec<u8>> {
        vec(b'a'..=b'd', 0..4)
    }

    fn ranges() -> impl Strategy<Value = Range> {
        let end = prop_oneof![
            2 => Just(Vec::new()),
            1 => Just(vec![0]),
            6 => keys(),
        ];
        (keys(), end)
            .prop_map(|(key, end)| Range::new(&key, &end))
            .prop_filter("a watcher of nothing is refused", |range| !range.is_empty())
    }

    proptest! {
        /// The index finds what a scan of all ranges finds, whatever came and went before.
        #[test]
        fn finds_what_a_scan_finds(
            changes in vec((ranges(), 0_i64..6, any::<bool>()), 0..120),
            asked in vec(keys(), 1..20),
        ) {
            let mut index = RangeIndex::default();
            let mut all: Vec<(Range, i64)> = Vec::new();
            for (range, holder, keep) in changes {
                let entry = (range, holder);
                if keep && !all.contains(&entry) {
                    index.insert(&entry.0, entry.1);
                    all.push(entry);
                } else {
                    index.remove(&entry.0, &entry.1);
                    all.retain(|other| *other != entry);
                }
            }
            for key in asked {
                let mut found = Vec::new();
                index.containing(&key, |holder| found.push(*holder));
                found.sort_unstable();
                let scan = all.iter().filter(|(range, _)| range.contains(&key));
                let mut expected: Vec<i64> = scan.map(|(_, holder)| *holder).collect();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }

    fn depth<T>(link: &Link<T>) -> usize {
        link.as_ref().map_or(0, |node| 1 + depth(&node.left).max(depth(&node.right)))
    }

    /// Ranges that come in order leave a tree of logarithmic depth: a question stays cheap.
    #[test]
    fn stays_balanced() {
        let mut index = RangeIndex::default();
        for n in 0..10_000_u32 {
            let start = n.to_be_bytes();
            index.insert(&Range::new(&start, &(n + 1).to_be_bytes()), n);
        }
        assert!(depth(&index.root) < 50, "{}", depth(&index.root));
        for n in 0..9_990_u32 {
            index.remove(&Range::new(&n.to_be_bytes(), &(n + 1).to_be_bytes()), &n);
        }
        assert!(depth(&index.root) <= 10, "{}", depth(&index.root));
    }
}
