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
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut last: Option<(u64, u64)> = None;
    for event in scene.index.history.events.iter().filter(|event| event.node == node) {
        let local_ns = match &event.kind {
            EventKind::Held { local_ns, .. } => *local_ns,
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
            if shown < 0 {
                // It went back: another clock, or none at all.
                last = Some((event.at_ns, local_ns));
                continue;
            }
            let next = Stretch { from_ns: at_ns, passed, shown, seq: event.seq };
            // Off by a twentieth at least: less is the grain of the readings.
            if drift.abs() >= DRIFT_NS_MIN && drift.abs() * 20 >= passed {
                match stretches.last_mut().filter(|before| before.goes_on_as(&next)) {
                    Some(before) => before.take_in(&next),
                    None => stretches.push(next),
                }
            } else if passed < DRIFT_NS_MIN {
                // Too close to tell: the next reading is compared with the earlier one.
                continue;
            }
        }
        last = Some((event.at_ns, local_ns));
    }
    stretches.into_iter().map(bar).collect()
}

/// A time in which a clock ran at one rate.
struct Stretch {
    from_ns: u64,
    /// How much true time passed, in nanoseconds.
    passed: i128,
    /// How much the clock showed of it.
    shown: i128,
    /// `seq` of the reading that ended it.
    seq: u64,
}

impl Stretch {
    /// Whether the next one follows at about the same rate, to a tenth.
    fn goes_on_as(&self, next: &Stretch) -> bool {
        let (a, b) = (self.shown * next.passed, next.shown * self.passed);
        i128::from(self.from_ns) + self.passed == i128::from(next.from_ns)
            && (a - b).abs() * 10 <= a.abs().max(b.abs())
    }

    fn take_in(&mut self, next: &Stretch) {
        self.passed += next.passed;
        self.shown += next.shown;
        self.seq = next.seq;
    }
}

fn bar(Stretch { from_ns, passed, shown, seq }: Stretch) -> Bar {
    let ms = |ns: i128| ns / 1_000_000;
    let to_ns = from_ns.saturating_add(u64::try_from(passed).unwrap_or(0));
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
