//! How far a node's clock ran from true time, as its own readings show.
//!
//! Measured, not planned: wherever an event carries the node's monotonic clock next to true time,
//! the two are compared. So it also works for a saved history without its plan. What lies between
//! two readings is the mean; a clock that was off between two readings and back is not seen.

use crate::history::{EventKind, NodeName};

use super::scene::{Bar, Scene};

/// A clock that moved less than this against true time between two readings counts as right.
const DRIFT_NS_MIN: i128 = 20_000_000;

/// The bars of a node's clock, where it ran at another rate than true time.
pub(super) fn bars(scene: &Scene<'_>, node: NodeName) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    let mut last: Option<(u64, u64)> = None;
    for event in scene.index.history.events.iter().filter(|event| event.node == node) {
        let local_ns = match &event.kind {
            EventKind::Held { local_ns, .. } => *local_ns,
            EventKind::Commit(commit) => commit.member_ns,
            EventKind::Lease(lease) => lease.member_ns,
            // A new process may have a new clock.
            EventKind::Killed | EventKind::Restarted => {
                last = None;
                continue;
            }
            _ => continue,
        };
        if let Some((at_ns, before_ns)) = last {
            let passed = i128::from(event.at_ns) - i128::from(at_ns);
            let shown = i128::from(local_ns) - i128::from(before_ns);
            let drift = shown - passed;
            // Off by a twentieth at least: less is the grain of the readings.
            if drift.abs() >= DRIFT_NS_MIN && drift.abs() * 20 >= passed {
                bars.push(bar((at_ns, event.at_ns), passed, shown, event.seq));
            } else if passed < DRIFT_NS_MIN {
                // Too close to tell: the next reading is compared with the earlier one.
                continue;
            }
        }
        last = Some((event.at_ns, local_ns));
    }
    bars
}

fn bar((from_ns, to_ns): (u64, u64), passed: i128, shown: i128, seq: u64) -> Bar {
    let ms = |ns: i128| ns / 1_000_000;
    let drift_ms = ms(shown - passed);
    let rate = if passed > 0 { shown * 100 / passed } else { 0 };
    let label = format!("×{}.{:02}", rate / 100, rate.rem_euclid(100));
    Bar {
        from_ns,
        to_ns,
        look: "clock".to_owned(),
        label: label.clone(),
        title: format!(
            "monotonic clock at {label} of true time: {} ms passed, it shows {} ms ({drift_ms:+} ms)",
            ms(passed),
            ms(shown)
        ),
        event: Some(seq),
        ..Bar::default()
    }
}
