//! Faults as sentences: what a report, a timeline and a shrunk plan say.

use std::fmt;

use super::{Fault, FaultKind, RequestHarm};

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = seconds(self.length_ms);
        match &self.kind {
            FaultKind::Pause { node } => write!(f, "pause {node} for {length}")?,
            FaultKind::Suspend { node } => write!(f, "suspend {node} for {length}")?,
            FaultKind::PointPause { node, point, occurrence } => {
                write!(f, "pause {node} at {point} (passage {occurrence}) for {length}")?
            }
            FaultKind::Cut { from, to, both_ways: true } => {
                write!(f, "cut {from} <-> {to} for {length}")?
            }
            FaultKind::Cut { from, to, both_ways: false } => {
                write!(f, "cut {from} -> {to} for {length}")?
            }
            FaultKind::LinkDelay { from, to, delay_ms } => {
                write!(f, "delay {from} -> {to} by {} for {length}", seconds(*delay_ms))?
            }
            FaultKind::ClockRate { node, permille } => write!(
                f,
                "run the clock of {node} at {}.{:03} of true time for {length}",
                permille / 1000,
                permille % 1000
            )?,
            FaultKind::ClockOffset { node, offset_ms } => {
                write!(f, "set the wall clock of {node} off by {offset_ms} ms for {length}")?
            }
            FaultKind::ForcedRevoke => write!(f, "revoke the lease of the lock's owner")?,
            FaultKind::Kill { node } => write!(f, "kill {node}, restart it after {length}")?,
            other => newer(other, &length, f)?,
        }
        write!(f, ", from {}", seconds(self.start_ms))
    }
}

fn newer(kind: &FaultKind, length: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        FaultKind::Reset { from, to } => write!(f, "reset the connections of {from} and {to}"),
        FaultKind::SlowLink { from, to, message_ms } => {
            let each = seconds(*message_ms);
            write!(f, "slow {from} -> {to} down to a message every {each} for {length}")
        }
        FaultKind::SilentDeath { node } => {
            write!(f, "cut {node} off and kill it, restart it after {length}")
        }
        FaultKind::PointKill { node, point, occurrence } => {
            write!(f, "kill {node} at {point} (passage {occurrence}), restart it after {length}")
        }
        FaultKind::ClockStep { node, step_ms } => {
            write!(f, "step the wall clock of {node} by {step_ms} ms, lead it back in {length}")
        }
        FaultKind::ClockStrobe { node, offset_ms, period_ms } => {
            let each = seconds(*period_ms);
            write!(f, "strobe the wall clock of {node} by {offset_ms} ms every {each} for {length}")
        }
        FaultKind::Request { request, harm, count } => {
            let what = match harm {
                RequestHarm::Lost => "lose",
                RequestHarm::ReplyLost => "lose the reply to",
                RequestHarm::Twice => "deliver twice",
            };
            let more = if *count == 1 { String::new() } else { format!(" up to {count} times") };
            write!(f, "{what} {}{more} within {length}", request.words())
        }
        FaultKind::LostRenewals => write!(f, "lose all renewals of leases for {length}"),
        FaultKind::LeaseRunsOut => {
            write!(f, "lose the renewals of the lock's owner for {length}")
        }
        FaultKind::OutsideDelete => write!(f, "delete the key of the lock's owner"),
        FaultKind::Compaction => {
            write!(f, "compact the history of etcd, and after each change for {length}")
        }
        FaultKind::CompactionCrash => {
            write!(f, "kill etcd while it compacts its history, restart it after {length}")
        }
        FaultKind::LostRevocations => {
            write!(f, "let etcd's revocations of leases that have run out fail for {length}")
        }
        FaultKind::RestartUnder { node, point, occurrence, server } => write!(
            f,
            "pause {node} at {point} (passage {occurrence}) for {length}, then start {server} anew \
             under it"
        ),
        FaultKind::Leaderless => write!(f, "leave etcd without a leader for {length}"),
        FaultKind::SlowSync { latency_ms } => {
            let each = seconds(*latency_ms);
            write!(f, "slow the syncs of the storage's disk down by {each} for {length}")
        }
        FaultKind::DiskFailure { full } => {
            let what = if *full { "fill" } else { "let the syncs fail of" };
            write!(f, "{what} the storage's disk for {length}")
        }
        // The others are told by `Display`.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::NodeName;

    fn fault(kind: FaultKind) -> Fault {
        Fault { start_ms: 1500, length_ms: 3100, kind }
    }

    /// A fault reads as a sentence.
    #[test]
    fn faults_read_as_sentences() {
        let kind = FaultKind::PointPause {
            node: NodeName::Client(1),
            point: "client.before_write".into(),
            occurrence: 2,
        };
        let text = fault(kind).to_string();
        let expected = "pause client-1 at client.before_write (passage 2) for 3.100 s, \
                        from 1.500 s";
        assert_eq!(text, expected);
    }
}
