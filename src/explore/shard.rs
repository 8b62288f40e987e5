//! A share of the seeds, so that many machines can explore one range.
//!
//! Seeds are dealt out like cards: a share is a residue. So each gets its part of every stretch of
//! the range, and what is cut off early is still a fair sample.

use std::{fmt, ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};

/// More shares than this are refused.
pub const SHARDS_MAX: u64 = 65_536;

/// Share `number` of `count`: the seeds whose remainder by `count` is `number - 1`.
///
/// ```
/// use leasehold::explore::Shard;
/// let shard: Shard = "2/3".parse()?;
/// assert_eq!(shard.seeds(&(0..8)).collect::<Vec<_>>(), [1, 4, 7]);
/// # Ok::<(), leasehold::explore::ShardError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    number: u64,
    count: u64,
}

/// The text is no share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no shard: expected k/n with k from 1 to n, and n at most {SHARDS_MAX}")]
pub struct ShardError(String);

impl Shard {
    /// Everything.
    pub const WHOLE: Shard = Shard { number: 1, count: 1 };

    /// The seeds of a range that are in this share, rising.
    pub fn seeds(self, range: &Range<u64>) -> impl Iterator<Item = u64> {
        let (first, count) = self.part(range);
        (0..count).map(move |place| first + place * self.count)
    }

    /// How many seeds of a range are in this share.
    pub fn len(self, range: &Range<u64>) -> u64 {
        self.part(range).1
    }

    /// The seed at this place of the share, counted from 0; none beyond its end.
    pub fn seed(self, range: &Range<u64>, place: u64) -> Option<u64> {
        let (first, count) = self.part(range);
        (place < count).then(|| first + place * self.count)
    }

    /// The first seed and how many there are.
    fn part(self, range: &Range<u64>) -> (u64, u64) {
        let wait = (self.number - 1 + self.count - range.start % self.count) % self.count;
        match range.start.checked_add(wait) {
            Some(first) if first < range.end => (first, (range.end - 1 - first) / self.count + 1),
            _ => (range.start, 0),
        }
    }

    /// A seed that two shares of two ranges have in common.
    pub(super) fn common(self, mine: &Range<u64>, other: Shard, its: &Range<u64>) -> Option<u64> {
        let both = mine.start.max(its.start)..mine.end.min(its.end);
        // After so many steps of one the remainders by the other repeat.
        let steps = usize::try_from(other.count).unwrap_or(usize::MAX);
        let shared = |seed: &u64| seed % other.count == other.number - 1;
        self.seeds(&both).take(steps).find(shared)
    }

    /// All shares of so many.
    pub(super) fn all(count: u64) -> impl Iterator<Item = Shard> {
        (1..=count).map(move |number| Shard { number, count })
    }

    /// How many shares there are.
    pub(super) fn count(self) -> u64 {
        self.count
    }
}

impl Default for Shard {
    fn default() -> Self {
        Shard::WHOLE
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |digits: &str| digits.parse::<u64>().ok();
        text.split_once('/')
            .and_then(|(k, n)| Some(Shard { number: number(k)?, count: number(n)? }))
            .filter(|s| s.count <= SHARDS_MAX && (1..=s.count).contains(&s.number))
            .ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = ShardError;

    fn try_from(text: String) -> Result<Self, ShardError> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(text: &str) -> Shard {
        text.parse().expect("a shard")
    }

    /// The shares of a range have each of its seeds once, whatever its ends; also at the end of
    /// the numbers.
    #[test]
    fn shares_make_the_whole() {
        for range in [0..10, 7..8, 5..26, u64::MAX - 9..u64::MAX] {
            for count in 1..=12 {
                let mut all = Vec::new();
                for number in 1..=count {
                    let share = Shard { number, count };
                    let seeds: Vec<u64> = share.seeds(&range).collect();
                    assert_eq!(seeds.len() as u64, share.len(&range));
                    assert_eq!(share.seed(&range, 0), seeds.first().copied());
                    assert_eq!(share.seed(&range, seeds.len() as u64), None);
                    all.extend(seeds);
                }
                all.sort_unstable();
                assert!(all.iter().copied().eq(range.clone()), "{range:?} in {count}: {all:?}");
            }
        }
    }

    /// A common seed is found if there is one, by exactly the shares that have one.
    #[test]
    fn common_seeds_are_found() {
        for (a, b) in [("1/2", "2/2"), ("1/4", "3/6"), ("2/3", "5/9"), ("1/1", "7/9")] {
            let (a, b) = (shard(a), shard(b));
            let (mine, its) = (3..40, 20..90);
            let other: Vec<u64> = b.seeds(&its).collect();
            let naive = a.seeds(&mine).find(|seed| other.contains(seed));
            assert_eq!(a.common(&mine, b, &its).is_some(), naive.is_some(), "{a} {b}");
        }
    }

    /// What is no share is refused.
    #[test]
    fn nonsense_is_refused() {
        for text in ["", "1", "0/3", "4/3", "1/0", "a/b", "-1/2", "1/65537", "1/2/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!(shard("3/7").to_string(), "3/7");
    }
}
