//! Whether a plan can be executed: it may come from a file, a token or a stranger.

use std::time::Duration;

use super::{
    FAULTS_MAX, Fault, FaultKind, LENGTH_MAX, Plan, PlanError, RequestHarm, RequestName,
    point::never_passed,
};
use crate::history::NodeName;

/// No wall clock is further off, in milliseconds: a day.
const OFFSET_MS_MAX: i64 = 86_400_000;
/// No message is later, in milliseconds.
const DELAY_MS_MAX: u64 = 600_000;
/// No sync takes longer, in milliseconds.
const SYNC_MS_MAX: u64 = 60_000;

/// The field at fault, its value, and what it may be.
type Wrong = (&'static str, String, &'static str);

impl Plan {
    /// Says what is wrong with the plan, if anything. `clients` is how many there are.
    pub fn validate(&self, clients: u8) -> Result<(), PlanError> {
        if self.faults.len() > FAULTS_MAX {
            return Err(PlanError::TooMany { found: self.faults.len() });
        }
        let mut before = 0;
        for (index, fault) in self.faults.iter().enumerate() {
            fault.validate(index, clients)?;
            if fault.start_ms < before {
                return Err(PlanError::Field {
                    index,
                    field: "start_ms",
                    value: fault.start_ms.to_string(),
                    expected: "no less than that of the fault before it",
                });
            }
            before = fault.start_ms;
        }
        Ok(())
    }
}

impl Fault {
    fn validate(&self, index: usize, clients: u8) -> Result<(), PlanError> {
        let field = |(field, value, expected)| PlanError::Field { index, field, value, expected };
        self.times().and_then(|()| nodes(&self.kind, clients)).map_err(field)?;
        amounts(&self.kind).and_then(|()| links(&self.kind)).map_err(field)
    }

    fn times(&self) -> Result<(), Wrong> {
        let within = |field, ms: u64| {
            let fits = Duration::from_millis(ms) <= LENGTH_MAX;
            fits.then_some(()).ok_or_else(|| (field, ms.to_string(), "at most 600000"))
        };
        within("length_ms", self.length_ms)?;
        within("start_ms", self.start_ms)
    }
}

/// Each node is one of the case.
fn nodes(kind: &FaultKind, clients: u8) -> Result<(), Wrong> {
    for node in kind.nodes() {
        let known = match node {
            NodeName::Nemesis => false,
            NodeName::Etcd(n) => n == 1,
            NodeName::Storage => true,
            NodeName::Client(n) => (1..=clients).contains(&n),
        };
        if !known {
            let expected = "a node of this case: etcd-1, storage, or one of its clients";
            return Err(("node", node.to_string(), expected));
        }
    }
    Ok(())
}

/// A link has two ends.
fn links(kind: &FaultKind) -> Result<(), Wrong> {
    match kind {
        FaultKind::Cut { from, to, .. }
        | FaultKind::LinkDelay { from, to, .. }
        | FaultKind::SlowLink { from, to, .. }
        | FaultKind::Reset { from, to }
            if from == to =>
        {
            Err(("to", to.to_string(), "another node than from"))
        }
        _ => Ok(()),
    }
}

fn amounts(kind: &FaultKind) -> Result<(), Wrong> {
    let day = "at most a day either way";
    let offset = |ms: i64| (-OFFSET_MS_MAX..=OFFSET_MS_MAX).contains(&ms);
    let wrong = match kind {
        FaultKind::ClockRate { permille, .. } if !(100..=10_000).contains(permille) => {
            ("permille", permille.to_string(), "100 to 10000")
        }
        FaultKind::PointPause { node, point, occurrence }
        | FaultKind::PointKill { node, point, occurrence } => {
            return passage(*node, point, *occurrence);
        }
        FaultKind::RestartUnder { server, .. } if matches!(server, NodeName::Client(_)) => {
            ("server", server.to_string(), "etcd-1 or storage")
        }
        FaultKind::RestartUnder { node, .. } if !matches!(node, NodeName::Client(_)) => {
            ("node", node.to_string(), "one of the clients")
        }
        FaultKind::RestartUnder { node, point, occurrence, .. } => {
            return passage(*node, point, *occurrence);
        }
        FaultKind::LinkDelay { delay_ms, .. } if *delay_ms > DELAY_MS_MAX => {
            ("delay_ms", delay_ms.to_string(), "at most 600000")
        }
        FaultKind::SlowLink { message_ms, .. } if !(1..=60_000).contains(message_ms) => {
            ("message_ms", message_ms.to_string(), "1 to 60000")
        }
        FaultKind::ClockOffset { offset_ms, .. } if !offset(*offset_ms) => {
            ("offset_ms", offset_ms.to_string(), day)
        }
        FaultKind::ClockStep { step_ms, .. } if !offset(*step_ms) => {
            ("step_ms", step_ms.to_string(), day)
        }
        FaultKind::ClockStrobe { offset_ms, .. } if !offset(*offset_ms) => {
            ("offset_ms", offset_ms.to_string(), day)
        }
        FaultKind::ClockStrobe { period_ms, .. } if !(1..=600_000).contains(period_ms) => {
            ("period_ms", period_ms.to_string(), "1 to 600000")
        }
        FaultKind::Request { count, .. } if !(1..=1000).contains(count) => {
            ("count", count.to_string(), "1 to 1000")
        }
        FaultKind::Request { request: RequestName::Storage, harm: RequestHarm::Twice, .. } => {
            ("harm", "twice".to_owned(), "lost or reply_lost: the storage's client resends")
        }
        FaultKind::SlowSync { latency_ms } if !(1..=SYNC_MS_MAX).contains(latency_ms) => {
            ("latency_ms", latency_ms.to_string(), "1 to 60000")
        }
        _ => return Ok(()),
    };
    Err(wrong)
}

fn passage(node: NodeName, point: &str, occurrence: u32) -> Result<(), Wrong> {
    if !(1..=1000).contains(&occurrence) {
        return Err(("occurrence", occurrence.to_string(), "1 to 1000"));
    }
    // Words, joined by dots: nothing else may reach a terminal.
    let named = point.len() <= 64
        && point.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.');
    let expected = match named {
        true => never_passed(node, point),
        false => Some("a name such as client.before_write"),
    };
    match expected {
        Some(expected) => Err(("point", format!("{point:?} of {node}"), expected)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind) -> Fault {
        Fault { start_ms: 1500, length_ms: 3100, kind }
    }

    fn restart(node: NodeName, server: NodeName, occurrence: u32) -> FaultKind {
        FaultKind::RestartUnder { node, point: "client.before_write".into(), occurrence, server }
    }

    /// Each kind of nonsense is refused with its field.
    #[test]
    fn nonsense_is_refused() {
        let (c1, c9) = (NodeName::Client(1), NodeName::Client(9));
        let cases = [
            (FaultKind::Pause { node: c9 }, "node is client-9"),
            (FaultKind::ClockRate { node: c1, permille: 0 }, "permille is 0"),
            (FaultKind::Cut { from: c1, to: c1, both_ways: true }, "to is client-1"),
            (FaultKind::Kill { node: NodeName::Nemesis }, "node is nemesis"),
            (FaultKind::Kill { node: NodeName::Client(0) }, "node is client-0"),
            (FaultKind::ClockOffset { node: c1, offset_ms: i64::MIN }, "offset_ms is -9223"),
            (FaultKind::LinkDelay { from: c1, to: c9, delay_ms: u64::MAX }, "node is client-9"),
            (FaultKind::Reset { from: c1, to: c1 }, "to is client-1"),
            (FaultKind::SlowLink { from: c1, to: c9, message_ms: 1 }, "node is client-9"),
            (FaultKind::SlowSync { latency_ms: 0 }, "latency_ms is 0"),
            (FaultKind::ClockStep { node: c1, step_ms: i64::MAX }, "step_ms is 9223"),
            (FaultKind::ClockStrobe { node: c1, offset_ms: 1, period_ms: 0 }, "period_ms is 0"),
            (
                FaultKind::Request {
                    request: RequestName::Storage,
                    harm: RequestHarm::Twice,
                    count: 1,
                },
                "harm is twice",
            ),
            (restart(NodeName::Storage, NodeName::Etcd(1), 1), "node is storage"),
            (restart(c1, c1, 1), "server is client-1"),
            (restart(c1, NodeName::Storage, 0), "occurrence is 0"),
            (
                FaultKind::PointPause { node: c1, point: "\u{1b}[31m".into(), occurrence: 1 },
                "point is \"\\u{1b}[31m\"",
            ),
            (
                FaultKind::PointPause {
                    node: c1,
                    point: "client.befor_write".into(),
                    occurrence: 1,
                },
                "point is \"client.befor_write\" of client-1, expected a point that clients pass",
            ),
            (
                FaultKind::PointKill {
                    node: NodeName::Etcd(1),
                    point: "client.before_write".into(),
                    occurrence: 1,
                },
                "of etcd-1, expected a client or the storage as the node",
            ),
        ];
        for (kind, expected) in cases {
            let plan = Plan { faults: vec![fault(kind)] };
            let message = plan.validate(3).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let later = Fault { start_ms: 2000, ..fault(FaultKind::ForcedRevoke) };
        let plan = Plan { faults: vec![later, fault(FaultKind::ForcedRevoke)] };
        assert!(plan.validate(3).is_err(), "the second starts before the first");
        let plan = Plan { faults: vec![fault(FaultKind::ForcedRevoke); FAULTS_MAX + 1] };
        assert_eq!(plan.validate(3), Err(PlanError::TooMany { found: FAULTS_MAX + 1 }));
    }
}
