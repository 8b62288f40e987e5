//! The numbers of a fault that shrinking brings to rest.
//!
//! Each kind lists its own, so that shrinking knows no kind by name. A kind that lists none is
//! shrunk in its start and its length only.

use super::FaultKind;

/// A number of a fault, and where it does least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// What it is.
    pub value: i64,
    /// The value at which it does the least that it can.
    pub rest: i64,
}

impl FaultKind {
    /// The numbers of this kind beside start and length, in a fixed order.
    ///
    /// ```
    /// use leasehold::{history::NodeName, plan::{Amount, FaultKind}};
    /// let slow = FaultKind::ClockRate { node: NodeName::Client(1), permille: 500 };
    /// assert_eq!(slow.amounts(), [Amount { value: 500, rest: 1000 }]);
    /// ```
    pub fn amounts(&self) -> Vec<Amount> {
        let mut amounts = Vec::new();
        self.clone().each_amount(&mut |amount| {
            amounts.push(amount);
            amount.value
        });
        amounts
    }

    /// The same fault with another value of one of its [`FaultKind::amounts`].
    pub fn with_amount(&self, index: usize, value: i64) -> FaultKind {
        let mut kind = self.clone();
        let mut at = 0;
        kind.each_amount(&mut |amount| {
            at += 1;
            if at == index + 1 { value } else { amount.value }
        });
        kind
    }

    /// Shows each number and takes the one that is to be in its place.
    fn each_amount(&mut self, set: &mut dyn FnMut(Amount) -> i64) {
        match self {
            FaultKind::PointPause { occurrence, .. }
            | FaultKind::PointKill { occurrence, .. }
            | FaultKind::RestartUnder { occurrence, .. } => replace(occurrence, 1, set),
            FaultKind::Request { count, .. } => replace(count, 1, set),
            FaultKind::LinkDelay { delay_ms, .. } => replace(delay_ms, 0, set),
            FaultKind::SlowLink { message_ms, .. } => replace(message_ms, 0, set),
            FaultKind::SlowSync { latency_ms } => replace(latency_ms, 0, set),
            FaultKind::ClockRate { permille, .. } => replace(permille, 1000, set),
            FaultKind::ClockOffset { offset_ms, .. } => replace(offset_ms, 0, set),
            FaultKind::ClockStep { step_ms, .. } => replace(step_ms, 0, set),
            // The longer it stays on a side the fewer jumps there are: its period has no rest.
            FaultKind::ClockStrobe { offset_ms, .. } => replace(offset_ms, 0, set),
            FaultKind::Pause { .. }
            | FaultKind::Suspend { .. }
            | FaultKind::Cut { .. }
            | FaultKind::ForcedRevoke
            | FaultKind::Kill { .. }
            | FaultKind::Reset { .. }
            | FaultKind::SilentDeath { .. }
            | FaultKind::LostRenewals
            | FaultKind::LeaseRunsOut
            | FaultKind::OutsideDelete
            | FaultKind::LostRevocations
            | FaultKind::Compaction
            | FaultKind::CompactionCrash
            | FaultKind::Leaderless
            | FaultKind::DiskFailure { .. } => {}
        }
    }
}

/// Shows a number, and puts another in its place if it can hold it.
fn replace<T>(number: &mut T, rest: i64, set: &mut dyn FnMut(Amount) -> i64)
where
    T: Copy + TryFrom<i64>,
    i64: TryFrom<T>,
{
    let value = i64::try_from(*number).unwrap_or(i64::MAX);
    if let Ok(value) = T::try_from(set(Amount { value, rest })) {
        *number = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::NodeName;

    /// A number is read and replaced in its place; nothing else changes, and a kind without
    /// numbers stays as it is.
    #[test]
    fn a_number_is_replaced_in_its_place() {
        let (from, to) = (NodeName::Client(1), NodeName::Storage);
        let slow = FaultKind::LinkDelay { from, to, delay_ms: 700 };
        assert_eq!(slow.amounts(), [Amount { value: 700, rest: 0 }]);
        assert_eq!(slow.with_amount(0, 20), FaultKind::LinkDelay { from, to, delay_ms: 20 });
        assert_eq!(slow.with_amount(1, 20), slow, "there is no second number");
        assert_eq!(slow.with_amount(0, -1), slow, "a delay is not negative");
        let step = FaultKind::ClockStep { node: from, step_ms: -900 };
        assert_eq!(step.with_amount(0, -80), FaultKind::ClockStep { node: from, step_ms: -80 });
        let pause = FaultKind::Pause { node: from };
        assert_eq!((pause.amounts(), pause.with_amount(0, 9)), (Vec::new(), pause));
    }
}
