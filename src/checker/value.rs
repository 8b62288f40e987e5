//! Values that sort fast: most differ in their first bytes, which stand in the sorted list itself,
//! so that sorting and searching do not follow a pointer a comparison.

/// A value of the storage, in the order of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value<'h> {
    /// The first bytes, and zeros.
    head: u128,
    /// All of it.
    pub text: &'h str,
}

impl<'h> Value<'h> {
    pub fn new(text: &'h str) -> Self {
        let mut head = [0; 16];
        let length = text.len().min(head.len());
        head[..length].copy_from_slice(&text.as_bytes()[..length]);
        Value { head: u128::from_be_bytes(head), text }
    }
}
