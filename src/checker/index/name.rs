//! Domains and keys as numbers, so that checkers compare those instead of texts.

use std::collections::BTreeMap;

use crate::history::ApplyRow;

/// The numbers given so far.
#[derive(Default)]
pub(super) struct Names<'h> {
    domains: BTreeMap<&'h str, u32>,
    keys: BTreeMap<(u32, &'h str), u32>,
    /// The last row's, which the next one's are as a rule.
    last: Option<(&'h str, &'h str, (u32, u32))>,
}

impl<'h> Names<'h> {
    /// The number of a row's domain, and that of its key among those of all domains.
    pub fn of(&mut self, row: &'h ApplyRow) -> (u32, u32) {
        if let Some((domain, key, numbers)) = self.last
            && domain == row.domain
            && key == row.key
        {
            return numbers;
        }
        let next = self.domains.len() as u32;
        let domain = *self.domains.entry(&row.domain).or_insert(next);
        let next = self.keys.len() as u32;
        let key = *self.keys.entry((domain, &row.key)).or_insert(next);
        self.last = Some((&row.domain, &row.key, (domain, key)));
        (domain, key)
    }
}
