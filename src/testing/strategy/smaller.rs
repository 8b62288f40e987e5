//! What is smaller than a value: plans, options and cases, the greatest step first.

use std::fmt::Debug;

use crate::{
    case::{Case, CaseOptions},
    history::NodeName,
    plan::{Amount, Fault, Plan},
};

/// The least that the strategy draws, below which nothing is tried.
#[derive(Debug, Clone, Default)]
pub struct Floor {
    pub(super) faults: usize,
    pub(super) clients: u8,
    pub(super) holdings: u32,
    pub(super) ttl_s: u16,
    pub(super) readers: u16,
}

/// Knows what is smaller than itself. Its module is private: nobody else implements it.
pub trait Smaller: Clone + Debug + PartialEq {
    /// Smaller values, the best first. None of them is the value itself.
    fn smaller(&self, floor: &Floor) -> Vec<Self>;
}

impl Smaller for Plan {
    fn smaller(&self, floor: &Floor) -> Vec<Self> {
        let mut plans = fewer(self, floor.faults);
        plans.extend(simpler(self));
        plans.extend(shorter(self));
        plans.extend(milder(self));
        plans.extend(earlier(self));
        plans.retain(|plan| plan != self && plan.validate(floor.clients).is_ok());
        plans
    }
}

impl Smaller for CaseOptions {
    fn smaller(&self, floor: &Floor) -> Vec<Self> {
        let clients = (floor.clients.max(1)..self.clients)
            .map(|clients| CaseOptions { clients, ..self.clone() });
        let least = floor.holdings.max(1);
        let holdings = holdings_below(self.holdings).into_iter().filter(|n| *n >= least);
        let holdings = holdings.map(|holdings| CaseOptions { holdings, ..self.clone() });
        let readers = below(self.readers.into()).into_iter().filter_map(|n| u16::try_from(n).ok());
        let readers = readers.filter(|readers| *readers >= floor.readers);
        let readers = readers.map(|readers| CaseOptions { readers, ..self.clone() });
        // What each session draws is the usual, and smaller than a choice.
        let ttls = (floor.ttl_s..self.ttl_s).map(|ttl_s| CaseOptions { ttl_s, ..self.clone() });
        clients.chain(holdings).chain(readers).chain(ttls).collect()
    }
}

impl Smaller for Case {
    fn smaller(&self, floor: &Floor) -> Vec<Self> {
        let of_plan = Floor { clients: self.options.clients, ..floor.clone() };
        let plans = self.plan.smaller(&of_plan).into_iter();
        let plans = plans.map(|plan| Case { plan, ..self.clone() });
        let options = self.options.smaller(floor).into_iter().map(|options| {
            let gone =
                |node: &NodeName| matches!(node, NodeName::Client(n) if *n > options.clients);
            let mut case = Case { options: options.clone(), ..self.clone() };
            case.plan.faults.retain(|fault| !fault.kind.nodes().iter().any(gone));
            case
        });
        plans.chain(options.filter(|case| case.plan.faults.len() >= floor.faults)).collect()
    }
}

/// Without all faults, without a half of them, a quarter, …, without one.
fn fewer(plan: &Plan, least: usize) -> Vec<Plan> {
    let count = plan.faults.len();
    let mut plans = Vec::new();
    let mut size = count;
    while size > 0 {
        for from in (0..count).step_by(size) {
            let mut faults = plan.faults.clone();
            faults.drain(from..(from + size).min(count));
            if faults.len() >= least {
                plans.push(Plan { faults });
            }
        }
        size /= 2;
    }
    plans
}

/// A fault that does less in the place of each.
fn simpler(plan: &Plan) -> Vec<Plan> {
    each(plan, |fault| {
        let kinds = fault.kind.simpler().into_iter();
        kinds.map(|kind| Fault { kind, ..fault.clone() }).collect()
    })
}

/// Each fault shorter, down to tenths of a second.
fn shorter(plan: &Plan) -> Vec<Plan> {
    each(plan, |fault| {
        let lengths = below(fault.length_ms).into_iter();
        lengths.map(|length_ms| Fault { length_ms, ..fault.clone() }).collect()
    })
}

/// Each number of each fault nearer to where it does least.
fn milder(plan: &Plan) -> Vec<Plan> {
    each(plan, |fault| {
        let amounts = fault.kind.amounts().into_iter().enumerate();
        let kinds = amounts.flat_map(|(index, Amount { value, rest })| {
            let away = value.saturating_sub(rest);
            below(away.unsigned_abs()).into_iter().map(move |distance| {
                let distance = i64::try_from(distance).unwrap_or(i64::MAX);
                (index, rest.saturating_add(distance.saturating_mul(away.signum())))
            })
        });
        kinds
            .map(|(index, value)| Fault {
                kind: fault.kind.with_amount(index, value),
                ..fault.clone()
            })
            .collect()
    })
}

/// The whole plan nearer to the beginning, then each start rounded.
fn earlier(plan: &Plan) -> Vec<Plan> {
    let Some(first) = plan.faults.first().map(|fault| fault.start_ms) else { return Vec::new() };
    let starts = [250, 500, 1000, 2000, 4000, 8000].into_iter().filter(|start| *start < first);
    let moved = starts.map(|start| {
        let mut plan = plan.clone();
        plan.faults.iter_mut().for_each(|fault| fault.start_ms -= first - start);
        plan
    });
    let rounded = each(plan, |fault| {
        let units = [1000, 500, 100].into_iter();
        let starts = units.map(|unit| fault.start_ms / unit * unit);
        let starts = starts.filter(|start_ms| *start_ms < fault.start_ms);
        starts.map(|start_ms| Fault { start_ms, ..fault.clone() }).collect()
    });
    moved.chain(rounded).collect()
}

/// The plan with one fault in another's place, for each fault.
fn each(plan: &Plan, change: impl Fn(&Fault) -> Vec<Fault>) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (index, fault) in plan.faults.iter().enumerate() {
        for changed in change(fault) {
            let mut plan = plan.clone();
            plan.faults[index] = changed;
            plans.push(plan);
        }
    }
    plans
}

/// Round numbers below, rising: by parts, then the next below, so that a few steps come near the
/// least that fails.
fn below(value: u64) -> Vec<u64> {
    let unit = if value > 200 { 100 } else { 1 };
    let parts = [0, value / 8, value / 4, value / 2, value / 4 * 3];
    let near = [value.saturating_sub(5 * unit), value.saturating_sub(unit), value];
    let mut numbers: Vec<u64> = parts.into_iter().chain(near).map(|n| n / unit * unit).collect();
    numbers.retain(|number| *number < value);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Limits below this one, of which 0 is none at all.
fn holdings_below(limit: u32) -> Vec<u32> {
    let powers = (0..8).map(|power| 1 << power);
    let mut limits: Vec<u32> = powers.chain(limit.checked_sub(1)).collect();
    limits.retain(|n| *n > 0 && (limit == 0 || *n < limit));
    limits.sort_unstable();
    limits.dedup();
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers below are round, rise, and end next to the value: greedy steps come to the least.
    #[test]
    fn numbers_below_lead_to_the_least() {
        assert_eq!(below(3123), [0, 300, 700, 1500, 2300, 2600, 3000, 3100]);
        assert_eq!(below(1), [0]);
        assert!(below(0).is_empty());
        assert_eq!(holdings_below(0), [1, 2, 4, 8, 16, 32, 64, 128]);
        assert_eq!(holdings_below(6), [1, 2, 4, 5]);
        assert!(holdings_below(1).is_empty());
    }
}
