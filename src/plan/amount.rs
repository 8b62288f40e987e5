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
            | FaultKind::RestartUnder { occurrence, .. } => {
                let value = set(Amount { value: i64::from(*occurrence), rest: 1 });
                *occurrence = u32::try_from(value).unwrap_or(*occurrence);
            }
            FaultKind::LinkDelay { delay_ms, .. } => {
                let value = i64::try_from(*delay_ms).unwrap_or(i64::MAX);
                let value = set(Amount { value, rest: 0 });
                *delay_ms = u64::try_from(value).unwrap_or(*delay_ms);
            }
            FaultKind::ClockRate { permille, .. } => {
                let value = set(Amount { value: i64::from(*permille), rest: 1000 });
                *permille = u32::try_from(value).unwrap_or(*permille);
            }
            FaultKind::ClockOffset { offset_ms, .. } => {
                *offset_ms = set(Amount { value: *offset_ms, rest: 0 });
            }
            _ => {}
        }
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
        let pause = FaultKind::Pause { node: from };
        assert_eq!((pause.amounts(), pause.with_amount(0, 9)), (Vec::new(), pause));
    }
}
