//! Faults: one file a family, and the catalog.
//!
//! A family knows how to draw a fault of its own, how to begin it, and how to end it; ending tells
//! how much the fault has changed. To add one: a variant in `plan.rs`, a file here, a row below and
//! an arm in [`family_of`].

mod clock;
mod cut;
mod delay;
mod generate;
mod injector;
mod kill;
mod pause;
mod point;
mod revoke;

pub(crate) use generate::{PlanShape, draw_plan};
pub(crate) use injector::Injector;

use crate::{
    cluster::Cluster,
    plan::{Fault, FaultKind},
    seed::Stream,
};

/// A family of faults.
pub struct Family {
    /// Its name, as in `explore`'s summary.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// How its effect is counted, in one line.
    pub effect: &'static str,
    /// How often it is drawn, relative to the others.
    pub weight: u32,
    /// The shortest and the longest that is drawn, in milliseconds.
    pub length_ms: (u64, u64),
    /// Its colour on a timeline.
    pub colour: &'static str,
    draw: fn(&mut Stream, &PlanShape) -> FaultKind,
    begin: fn(&Cluster, u32, &Fault) -> Begun,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What became of the attempt to begin a fault.
enum Begun {
    /// It could not be applied, and why.
    Skipped(&'static str),
    /// It acts; this ends it and gives its effect.
    Active(Box<dyn FnOnce(&Cluster) -> u64>),
    /// It waits for its target to pass a code point; the injector ends it when that was seen.
    Armed,
}

/// All families.
pub static CATALOG: [Family; 9] = [
    pause::PAUSE,
    pause::SUSPEND,
    point::POINT_PAUSE,
    cut::CUT,
    delay::LINK_DELAY,
    clock::RATE,
    clock::OFFSET,
    revoke::FORCED_REVOKE,
    kill::KILL,
];

/// The family that a fault belongs to.
pub fn family_of(kind: &FaultKind) -> &'static Family {
    let name = match kind {
        FaultKind::Pause { .. } => "pause",
        FaultKind::Suspend { .. } => "suspend",
        FaultKind::PointPause { .. } => "point-pause",
        FaultKind::Cut { .. } => "cut",
        FaultKind::LinkDelay { .. } => "link-delay",
        FaultKind::ClockRate { .. } => "clock-rate",
        FaultKind::ClockOffset { .. } => "clock-offset",
        FaultKind::ForcedRevoke => "forced-revoke",
        FaultKind::Kill { .. } => "kill",
    };
    CATALOG.iter().find(|family| family.name == name).expect("each kind has its row")
}
