//! Which seeds results are of: shares of ranges, united where they fit, and what is missing.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::explore::Shard;

/// More shares than this are not named one by one.
const NAMED_MAX: usize = 10;

/// The runs of one share, from its first seed on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) shard: Shard,
    pub(super) runs: u64,
}

impl Span {
    pub(super) fn seeds(&self) -> Range<u64> {
        self.start..self.end
    }

    /// How many seeds it has, run or not.
    pub(super) fn len(&self) -> u64 {
        self.shard.len(&self.seeds())
    }

    /// Whether it ended at its end, and not early.
    pub(super) fn is_whole(&self) -> bool {
        self.runs == self.len()
    }

    /// Whether the run of this seed is in it.
    pub(super) fn has(&self, seed: u64) -> bool {
        seed.checked_add(1).is_some_and(|after| {
            let up_to = self.start..self.end.min(after);
            let place = self.shard.len(&up_to);
            let found = place.checked_sub(1).and_then(|place| self.shard.seed(&up_to, place));
            found == Some(seed) && place <= self.runs
        })
    }

    /// A seed that both have.
    pub(super) fn common(&self, other: &Span) -> Option<u64> {
        self.shard.common(&self.seeds(), other.shard, &other.seeds())
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start, self.end)?;
        if self.shard != Shard::WHOLE {
            write!(f, " shard {}", self.shard)?;
        }
        if !self.is_whole() {
            write!(f, " (the first {} of {})", self.runs, self.len())?;
        }
        Ok(())
    }
}

/// What it takes to make whole ranges of these spans, in words: each share that nobody gave, and
/// each that ended early. The spans have no seed in common, so counting seeds is enough.
pub(super) fn missing(spans: &[Span]) -> Vec<String> {
    let early = spans.iter().filter(|span| !span.is_whole());
    let mut missing: Vec<String> = early
        .map(|span| {
            let left = span.len() - span.runs;
            format!("seeds {span}: it ended early, {left} seeds were not run")
        })
        .collect();
    let mut known: Vec<(Range<u64>, u64)> = Vec::new();
    for span in spans {
        let (seeds, count) = (span.seeds(), span.shard.count());
        if known.contains(&(seeds.clone(), count)) {
            continue;
        }
        let inside = |s: &Span| {
            let common = seeds.start.max(s.start)..seeds.end.min(s.end);
            s.shard.len(&common)
        };
        let covered: u64 = spans.iter().map(inside).sum();
        if covered < seeds.end - seeds.start {
            let given = |shard: Shard| {
                spans.iter().any(|s| s.seeds() == seeds && s.shard == shard)
                    || shard.len(&seeds) == 0
            };
            let absent: Vec<String> = Shard::all(count)
                .filter(|shard| !given(*shard))
                .map(|shard| shard.to_string())
                .collect();
            missing.push(format!("seeds {}..{} {}", seeds.start, seeds.end, named(&absent)));
        }
        known.push((seeds, count));
    }
    missing
}

fn named(shards: &[String]) -> String {
    let (more, shown) = (shards.len().saturating_sub(NAMED_MAX), shards.iter().take(NAMED_MAX));
    let shown = shown.cloned().collect::<Vec<_>>().join(", ");
    let word = if shards.len() == 1 { "shard" } else { "shards" };
    match more {
        0 => format!("{word} {shown}"),
        more => format!("{word} {shown} and {more} more"),
    }
}

/// All shares of a range make the range, and ranges one after the other make one.
pub(super) fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort();
    let mut ranges: Vec<Span> = Vec::new();
    while let Some(span) = spans.first().cloned() {
        let (seeds, count) = (span.seeds(), span.shard.count());
        let same = |s: &Span| s.seeds() == seeds && s.shard.count() == count && s.is_whole();
        let shares: Vec<Span> = spans.iter().filter(|s| same(s)).cloned().collect();
        if shares.len() as u64 == count {
            spans.retain(|s| !shares.contains(s));
            let runs = shares.iter().map(|s| s.runs).sum();
            ranges.push(Span { shard: Shard::WHOLE, runs, ..span });
        } else {
            ranges.push(spans.remove(0));
        }
    }
    ranges.sort();
    let mut united: Vec<Span> = Vec::new();
    for span in ranges {
        let plain = |s: &Span| s.shard == Shard::WHOLE && s.is_whole();
        match united.last_mut() {
            Some(last) if last.end == span.start && plain(last) && plain(&span) => {
                last.end = span.end;
                last.runs += span.runs;
            }
            _ => united.push(span),
        }
    }
    united
}
