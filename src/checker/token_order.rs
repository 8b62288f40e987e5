//! Token order (D6): create revisions rise, a tenure has one wire token, tokens rise with tenures,
//! and no token at the storage is beyond what etcd has committed.
//!
//! Whatever the guard does with them, tokens that break this order cannot fence.

use super::{Checker, Finding, Violation, assumption::Assumption, index::Index};
use crate::history::RowResult;

const NAME: &str = "token-order";

/// Judges the tenures of every lock and the tokens that went over the wire under them.
#[derive(Debug)]
pub struct TokenOrder;

impl Checker for TokenOrder {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "tokens rise from tenure to tenure, one a tenure, and none is beyond etcd's commits"
    }

    // A broken lineage is among the things that it is there to show.
    fn leans_on(&self) -> &'static [Assumption] {
        &[]
    }

    fn check(&self, index: &Index<'_>) -> Finding {
        let locks = index.locks.iter().filter(|lock| lock.named);
        let judged = locks.map(|lock| lock.tenures.len() as u64).sum();
        let tokens = wire_tokens(index);
        let violation = create_revisions_rise(index)
            .or_else(|| tokens_rise(index, &tokens))
            .or_else(|| one_token_a_tenure(index, &tokens))
            .or_else(|| marks_are_committed(index));
        Finding::of(NAME, judged, violation, "no lock was ever owned")
    }
}

/// A token and an event that shows it.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    token: i64,
    seq: u64,
}

/// The wire tokens seen under one incarnation.
#[derive(Debug, Clone, Copy)]
struct Tokens {
    first: Sighting,
    other: Option<Sighting>,
    least: Sighting,
    greatest: Sighting,
}

fn wire_tokens(index: &Index<'_>) -> Vec<Option<Tokens>> {
    let mut tokens: Vec<Option<Tokens>> = vec![None; index.incarnations.len()];
    let mut see = |incarnation: Option<usize>, token: Option<i64>, seq: u64| {
        let (Some(incarnation), Some(token)) = (incarnation, token) else { return };
        let new = Sighting { token, seq };
        let seen = tokens[incarnation].get_or_insert(Tokens {
            first: new,
            other: None,
            least: new,
            greatest: new,
        });
        if token != seen.first.token {
            seen.other.get_or_insert(new);
        }
        if token < seen.least.token {
            seen.least = new;
        }
        if token > seen.greatest.token {
            seen.greatest = new;
        }
    };
    for holding in &index.holdings {
        if let Some(ok) = holding.ok {
            see(holding.incarnation, holding.token, ok);
        }
    }
    for row in index.rows.iter().filter(|row| row.result() != RowResult::Rejected) {
        see(row.incarnation, row.row.token, row.seq);
    }
    tokens
}

fn create_revisions_rise(index: &Index<'_>) -> Option<Violation> {
    for lock in index.locks.iter().filter(|lock| lock.named) {
        let incarnations = lock.incarnations.iter().map(|i| &index.incarnations[*i]);
        let mut greatest = None;
        for new in incarnations {
            let Some(old) = greatest.replace(new) else { continue };
            if new.create_revision > old.create_revision {
                continue;
            }
            let message = format!(
                "{} was created in revision {} after {} in revision {}",
                new.key, new.create_revision, old.key, old.create_revision
            );
            let events = vec![old.created, new.created];
            return Some(Violation::new(NAME, "create-revision", message, events));
        }
    }
    None
}

fn tokens_rise(index: &Index<'_>, tokens: &[Option<Tokens>]) -> Option<Violation> {
    for lock in index.locks.iter().filter(|lock| lock.named) {
        let mut greatest: Option<(usize, Sighting)> = None;
        for &later in &lock.tenures {
            let Some(seen) = tokens[later] else { continue };
            if let Some((earlier, old)) = greatest.filter(|(_, old)| old.token >= seen.least.token)
            {
                let (earlier, later) = (&index.incarnations[earlier], &index.incarnations[later]);
                let message = format!(
                    "the tenure of {} (rank {}) used token {}, the later one of {} (rank {}) {}",
                    earlier.key,
                    earlier.create_revision,
                    old.token,
                    later.key,
                    later.create_revision,
                    seen.least.token
                );
                let events = vec![earlier.created, later.created, old.seq, seen.least.seq];
                return Some(Violation::new(NAME, "order", message, events));
            }
            if greatest.is_none_or(|(_, old)| old.token < seen.greatest.token) {
                greatest = Some((later, seen.greatest));
            }
        }
    }
    None
}

fn one_token_a_tenure(index: &Index<'_>, tokens: &[Option<Tokens>]) -> Option<Violation> {
    let with_tokens = index.incarnations.iter().zip(tokens);
    let with_tokens = with_tokens.filter(|(incarnation, _)| incarnation.owner_since.is_some());
    with_tokens.filter_map(|(incarnation, seen)| Some((incarnation, (*seen)?))).find_map(
        |(incarnation, seen)| {
            let other = seen.other?;
            let message = format!(
                "the tenure of {} (rank {}) used token {} and token {}",
                incarnation.key, incarnation.create_revision, seen.first.token, other.token
            );
            Some(Violation::new(NAME, "one-token", message, vec![seen.first.seq, other.seq]))
        },
    )
}

/// The mark that the judge recomputes is at most the highest create revision of the lock's queue;
/// for a request of no known holding, of all queues.
fn marks_are_committed(index: &Index<'_>) -> Option<Violation> {
    let highest: Vec<Vec<(u64, i64)>> = index
        .locks
        .iter()
        .map(|lock| {
            let mut highest = i64::MIN;
            let incarnations = lock.incarnations.iter().map(|i| &index.incarnations[*i]);
            let raise = |i: &super::index::Incarnation<'_>| {
                highest = highest.max(i.create_revision);
                (i.created, highest)
            };
            incarnations.map(raise).collect()
        })
        .collect();
    let highest_before = |lock: usize, seq: u64| {
        let after = highest[lock].partition_point(|(created, _)| *created < seq);
        after.checked_sub(1).map(|last| highest[lock][last].1)
    };
    index.rows.iter().filter(|row| row.announces()).find_map(|row| {
        let committed = match row.holding {
            Some(holding) => highest_before(index.holdings[holding].lock, row.seq),
            None => (0..index.locks.len()).filter_map(|lock| highest_before(lock, row.seq)).max(),
        };
        if row.row.token <= committed {
            return None;
        }
        let message = format!(
            "the storage admitted token {}, beyond the highest create revision committed, {}",
            row.row.token.unwrap_or_default(),
            committed.unwrap_or_default()
        );
        Some(Violation::new(NAME, "beyond-committed", message, vec![row.seq]))
    })
}
