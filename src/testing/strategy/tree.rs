//! A value with the way to smaller ones, as proptest walks it.

use std::vec;

use proptest::strategy::ValueTree;

use super::smaller::{Floor, Smaller};

/// A drawn value that shrinks: always to the first smaller one that still fails, until none does.
///
/// proptest asks for a simpler value when the current one fails, and for another when it does not.
#[derive(Debug, Clone)]
pub struct Tree<T> {
    /// What is being tried.
    current: T,
    /// The smallest that is known to fail.
    failing: T,
    /// What is smaller than that and has not been tried yet.
    left: vec::IntoIter<T>,
    /// What does not fail: a second run would say the same.
    tried: Vec<T>,
    floor: Floor,
}

impl<T: Clone> Tree<T> {
    pub(super) fn new(value: T, floor: Floor) -> Self {
        let left = Vec::new().into_iter();
        Tree { current: value.clone(), failing: value, left, tried: Vec::new(), floor }
    }
}

impl<T: Smaller> Tree<T> {
    fn try_next(&mut self) -> bool {
        for value in self.left.by_ref() {
            if !self.tried.contains(&value) {
                self.tried.push(value.clone());
                self.current = value;
                return true;
            }
        }
        self.current = self.failing.clone();
        false
    }
}

impl<T: Smaller> ValueTree for Tree<T> {
    type Value = T;

    fn current(&self) -> T {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failing = self.current.clone();
        self.left = self.failing.smaller(&self.floor).into_iter();
        self.try_next()
    }

    fn complicate(&mut self) -> bool {
        self.try_next()
    }
}
