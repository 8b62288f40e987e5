//! Fewer faults, and milder ones.

use super::search::Search;
use crate::{
    case::Case,
    plan::{Amount, Fault},
};

/// With more faults than this not every small selection is tried.
const SELECTED_FROM_MAX: usize = 10;

/// Delta debugging (Zeller and Hildebrandt's `ddmin`): ends with faults none of which can be left
/// out alone.
pub(super) fn fewer(search: &mut Search<'_>) {
    if search.faults().is_empty() || search.keeps_faults(Vec::new()) {
        return;
    }
    let mut parts = 2;
    while search.faults().len() > 1 {
        let faults = search.faults().to_vec();
        let parts_now = parts.min(faults.len());
        let size = faults.len().div_ceil(parts_now);
        let chunks: Vec<&[Fault]> = faults.chunks(size).collect();
        let mut kept = None;
        for (at, chunk) in chunks.iter().enumerate() {
            if search.keeps_faults(chunk.to_vec()) {
                kept = Some(2);
                break;
            }
            let rest = chunks.iter().enumerate().filter(|(other, _)| *other != at);
            if chunks.len() > 2 && search.keeps_faults(rest.flat_map(|(_, c)| c.to_vec()).collect())
            {
                kept = Some((parts_now - 1).max(2));
                break;
            }
        }
        match kept {
            Some(next) => parts = next,
            None if parts_now >= faults.len() => return,
            None => parts = parts_now * 2,
        }
    }
}

/// Tries each single fault of the original plan, then each pair, then three at a time, while that
/// is fewer than there are: leaving out one fault moves all that comes after it in time, so that
/// delta debugging may end at a place that is not the smallest.
pub(super) fn fewest_of(search: &mut Search<'_>, original: &[Fault]) {
    if original.len() > SELECTED_FROM_MAX {
        return;
    }
    for size in 1..=3 {
        for selected in selections(original.len(), size) {
            if search.faults().len() <= size {
                return;
            }
            search.keeps_faults(selected.iter().map(|at| original[*at].clone()).collect());
        }
    }
}

/// Every selection of `size` of the numbers below `count`, in order.
fn selections(count: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let smaller = selections(count, size - 1);
    let longer = smaller.iter().flat_map(|chosen| {
        let from = chosen.last().map_or(0, |last| last + 1);
        (from..count).map(move |next| chosen.iter().copied().chain([next]).collect())
    });
    longer.collect()
}

/// Brings the numbers of each fault to small round values: its length, its own numbers, its start.
pub(super) fn milder(search: &mut Search<'_>) {
    for index in 0..search.faults().len() {
        let length = search.faults()[index].length_ms;
        search.keeps_least(&below(length), |case, length_ms| {
            changed(case, index, |fault| fault.length_ms = *length_ms)
        });
        for at in 0..search.faults()[index].kind.amounts().len() {
            calmer(search, index, at);
        }
    }
    // The start says when and not how much: rounding it, the roundest first, moves the fault.
    for index in 0..search.faults().len() {
        for unit in [1000, 500, 100] {
            let start_ms = search.faults()[index].start_ms / unit * unit;
            let case = changed(search.case(), index, |fault| fault.start_ms = start_ms);
            // Another order of the faults would give `index` another meaning.
            let ordered = case.plan.faults.is_sorted_by_key(|fault| fault.start_ms);
            if ordered && search.keeps(case) {
                break;
            }
        }
    }
}

/// Puts faults that do less in the place of those that do more.
pub(super) fn simpler(search: &mut Search<'_>) {
    for index in 0..search.faults().len() {
        while search.faults()[index].kind.simpler().into_iter().any(|kind| {
            let case = changed(search.case(), index, |fault| fault.kind = kind);
            search.keeps(case)
        }) {}
    }
}

/// Moves the whole plan to the beginning, as far as that shows the same: what happens early needs
/// fewer holdings. Each time is another run, so they are tried one by one.
pub(super) fn earlier(search: &mut Search<'_>) {
    let Some(first) = search.faults().first().map(|fault| fault.start_ms) else { return };
    let fine = (1..=12).map(|n| n * 250);
    for start_ms in fine.chain((7..=20).map(|n| n * 500)).take_while(|start| *start < first) {
        let mut case = search.case().clone();
        for fault in &mut case.plan.faults {
            fault.start_ms -= first - start_ms;
        }
        if search.keeps(case) {
            return;
        }
    }
}

/// Brings one number of one fault towards its rest.
fn calmer(search: &mut Search<'_>, index: usize, at: usize) {
    let Amount { value, rest } = search.faults()[index].kind.amounts()[at];
    let away = value.saturating_sub(rest);
    let candidates = below(away.unsigned_abs());
    search.keeps_least(&candidates, |case, distance| {
        let distance = i64::try_from(*distance).unwrap_or(i64::MAX);
        let value = rest.saturating_add(distance.saturating_mul(away.signum()));
        changed(case, index, |fault| fault.kind = fault.kind.with_amount(at, value))
    });
}

fn changed(case: &Case, index: usize, change: impl FnOnce(&mut Fault)) -> Case {
    let mut case = case.clone();
    if let Some(fault) = case.plan.faults.get_mut(index) {
        change(fault);
    }
    case
}

/// Round numbers below `value`, rising: more of them where they are small, and `value` itself
/// rounded down.
fn below(value: u64) -> Vec<u64> {
    let fine = (0..=5).chain([8, 10, 20, 50, 100, 200, 300]);
    let halves = (1..=20).map(|n| n * 500);
    let coarse = (1..=60).map(|n| n * 10_000).chain([15_000, 25_000, 86_400_000]);
    let rounded = [1000, 500, 100, 10].map(|unit| value / unit * unit);
    let mut numbers: Vec<u64> = fine.chain(halves).chain(coarse).chain(rounded).collect();
    numbers.retain(|number| *number < value);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Selections are complete, in order, and nothing is in one twice.
    #[test]
    fn selections_are_complete() {
        assert_eq!(selections(3, 1), [vec![0], vec![1], vec![2]]);
        assert_eq!(selections(4, 2).len(), 6);
        assert_eq!(selections(4, 3), [vec![0, 1, 2], vec![0, 1, 3], vec![0, 2, 3], vec![1, 2, 3]]);
        assert!(selections(2, 3).is_empty());
    }

    /// Candidates are below the value and round; nothing is below nothing.
    #[test]
    fn candidates_are_below_and_round() {
        assert!(below(0).is_empty());
        assert_eq!(below(4), [0, 1, 2, 3]);
        let candidates = below(3123);
        assert!(candidates.ends_with(&[3000, 3100, 3120]), "{candidates:?}");
        assert!(below(86_400_001).contains(&86_400_000));
    }
}
