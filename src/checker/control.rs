//! The control arm (D11): without faults nothing out of the ordinary may happen.

use super::{Class, Finding, Index, Verdict, classify, reached::overlaps, violation};

/// Judges a run without faults: no overlap, only fresh-accepted writes, at least one contended
/// hand-over.
pub fn control_arm(index: &Index<'_>) -> Finding {
    let classed = classify(index);
    let handovers = contended_handovers(index);
    let verdict = if let Some((older, newer)) = overlaps(index).first() {
        let message = "two holders believed in the lock at once though nothing was wrong".into();
        let events = [older, newer].into_iter().filter_map(|holding| holding.acquired);
        violation(message, events)
    } else if let Some(odd) = classed.iter().find(|write| write.class != Class::FreshAccepted) {
        violation(format!("a write is {} though nothing was wrong", odd.class), [odd.write.seq])
    } else if handovers == 0 {
        Verdict::NotRun("no contended hand-over".to_owned())
    } else {
        Verdict::Pass
    };
    Finding { checker: "control_arm", verdict, judged: handovers }
}

/// How many tenures followed another at once: the next owner had been waiting.
pub(super) fn contended_handovers(index: &Index<'_>) -> u64 {
    let follows =
        |pair: &[super::Tenure]| pair[0].ended.is_some_and(|(ended, _)| ended == pair[1].began);
    let count = |tenures: &Vec<super::Tenure>| tenures.windows(2).filter(|w| follows(w)).count();
    index.tenures.values().map(count).sum::<usize>() as u64
}
