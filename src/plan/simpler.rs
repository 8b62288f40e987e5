//! Faults that do a part of what another does: shrinking tries them in its place.

use super::FaultKind;
use crate::history::NodeName;

impl FaultKind {
    /// Kinds that do less, the least first; none if this one has a single effect.
    ///
    /// ```
    /// use leasehold::{history::NodeName, plan::FaultKind};
    /// let node = NodeName::Client(1);
    /// assert_eq!(FaultKind::Suspend { node }.simpler(), [FaultKind::Pause { node }]);
    /// ```
    pub fn simpler(&self) -> Vec<FaultKind> {
        match self.clone() {
            FaultKind::Suspend { node } => vec![FaultKind::Pause { node }],
            FaultKind::SilentDeath { node } | FaultKind::PointKill { node, .. } => {
                vec![FaultKind::Kill { node }]
            }
            FaultKind::RestartUnder { node, point, occurrence, server } => vec![
                FaultKind::Kill { node: server },
                FaultKind::PointPause { node, point, occurrence },
            ],
            FaultKind::CompactionCrash => {
                vec![FaultKind::Compaction, FaultKind::Kill { node: NodeName::Etcd(1) }]
            }
            FaultKind::Cut { from, to, both_ways: true } => vec![
                FaultKind::Cut { from, to, both_ways: false },
                FaultKind::Cut { from: to, to: from, both_ways: false },
            ],
            FaultKind::ClockStep { node, step_ms } => {
                vec![FaultKind::ClockOffset { node, offset_ms: step_ms }]
            }
            FaultKind::ClockStrobe { node, offset_ms, .. } => {
                vec![FaultKind::ClockOffset { node, offset_ms }]
            }
            FaultKind::LostRenewals => vec![FaultKind::LeaseRunsOut],
            FaultKind::Pause { .. }
            | FaultKind::PointPause { .. }
            | FaultKind::Cut { .. }
            | FaultKind::LinkDelay { .. }
            | FaultKind::SlowLink { .. }
            | FaultKind::ClockRate { .. }
            | FaultKind::ClockOffset { .. }
            | FaultKind::ForcedRevoke
            | FaultKind::Kill { .. }
            | FaultKind::Reset { .. }
            | FaultKind::Request { .. }
            | FaultKind::LeaseRunsOut
            | FaultKind::LostRevocations
            | FaultKind::OutsideDelete
            | FaultKind::Compaction
            | FaultKind::Leaderless
            | FaultKind::SlowSync { .. }
            | FaultKind::DiskFailure { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It ends: what is simpler is no way back.
    #[test]
    fn what_is_simpler_ends() {
        let (node, server) = (NodeName::Client(1), NodeName::Storage);
        let point = "client.before_write".to_owned();
        let mut kinds = vec![
            FaultKind::RestartUnder { node, point, occurrence: 2, server },
            FaultKind::CompactionCrash,
            FaultKind::LostRenewals,
            FaultKind::Cut { from: node, to: server, both_ways: true },
            FaultKind::ClockStrobe { node, offset_ms: 5, period_ms: 7 },
        ];
        let mut steps = 0;
        while !kinds.is_empty() {
            kinds = kinds.iter().flat_map(FaultKind::simpler).collect();
            steps += 1;
        }
        assert_eq!(steps, 2);
    }
}
