//! Faults: one file a family, or a few close ones, and the catalog.
//!
//! A family knows how to draw a fault of its own, how to begin it, and how to end it; ending tells
//! how much the fault has changed. To add one: a variant in `plan/kind.rs`, a file here, a row
//! below, an arm in [`family_of`], and a place in the profiles that it belongs to.

mod clock;
mod cut;
mod delay;
mod disk;
mod generate;
mod injector;
mod kill;
mod leaderless;
mod outside;
mod pause;
mod point;
mod point_kill;
pub mod profile;
mod renewal;
mod request;
mod reset;
mod restart_under;
mod revocation;
mod revoke;
mod silent_death;
mod slow_link;
#[cfg(test)]
mod tests;
mod wall;

pub use generate::SWARM_OFF_PERMILLE;
pub(crate) use generate::{PlanShape, draw_faults, draw_plan};
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
pub static CATALOG: [Family; 26] = [
    pause::PAUSE,
    pause::SUSPEND,
    point::POINT_PAUSE,
    cut::CUT,
    delay::LINK_DELAY,
    slow_link::SLOW_LINK,
    reset::RESET,
    request::REQUEST,
    clock::RATE,
    wall::OFFSET,
    wall::STEP,
    wall::STROBE,
    revoke::FORCED_REVOKE,
    renewal::LOST_RENEWALS,
    renewal::LEASE_RUNS_OUT,
    revocation::LOST_REVOCATIONS,
    outside::OUTSIDE_DELETE,
    outside::COMPACTION,
    outside::COMPACTION_CRASH,
    leaderless::LEADERLESS,
    kill::KILL,
    point_kill::POINT_KILL,
    silent_death::SILENT_DEATH,
    restart_under::RESTART_UNDER,
    disk::SLOW_SYNC,
    disk::DISK_FAILURE,
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
        FaultKind::Reset { .. } => "reset",
        FaultKind::SlowLink { .. } => "slow-link",
        FaultKind::SilentDeath { .. } => "silent-death",
        FaultKind::PointKill { .. } => "point-kill",
        FaultKind::ClockStep { .. } => "clock-step",
        FaultKind::ClockStrobe { .. } => "clock-strobe",
        FaultKind::Request { .. } => "request",
        FaultKind::LostRenewals => "lost-renewals",
        FaultKind::LeaseRunsOut => "lease-runs-out",
        FaultKind::OutsideDelete => "outside-delete",
        FaultKind::Compaction => "compaction",
        FaultKind::Leaderless => "leaderless",
        FaultKind::SlowSync { .. } => "slow-sync",
        FaultKind::DiskFailure { .. } => "disk-failure",
        FaultKind::RestartUnder { .. } => "restart-under",
        FaultKind::CompactionCrash => "compaction-crash",
        FaultKind::LostRevocations => "lost-revocations",
    };
    CATALOG.iter().find(|family| family.name == name).expect("each kind has its row")
}
