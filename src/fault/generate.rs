//! Draws a plan from a seed.
//!
//! Swarm: per seed some families are off altogether, so that the others get room.

use std::time::Duration;

use super::{CATALOG, Family};
use crate::{
    history::NodeName,
    plan::{Fault, Plan},
    seed::{Seed, Stream},
};

/// What a plan is drawn for.
#[derive(Debug, Clone)]
pub(crate) struct PlanShape {
    /// How many clients there are.
    pub(crate) clients: u8,
    /// How long the clients work.
    pub(crate) traffic: Duration,
    /// The fewest and the most faults.
    pub(crate) faults: (u64, u64),
}

impl PlanShape {
    /// One of the clients.
    pub(super) fn client(&self, stream: &mut Stream) -> NodeName {
        NodeName::Client(stream.between(1, u64::from(self.clients.max(1))) as u8)
    }

    /// A client or, less often, a server.
    pub(super) fn node(&self, stream: &mut Stream) -> NodeName {
        if stream.chance(800) { self.client(stream) } else { self.server(stream) }
    }

    /// One of the servers.
    pub(super) fn server(&self, stream: &mut Stream) -> NodeName {
        if stream.chance(600) { self.etcd() } else { NodeName::Storage }
    }

    /// The etcd member.
    pub(super) fn etcd(&self) -> NodeName {
        NodeName::Etcd(1)
    }
}

/// The plan of this seed. A shape without faults gives an empty plan.
pub(crate) fn draw_plan(seed: Seed, shape: &PlanShape) -> Plan {
    let mut stream = seed.stream("plan");
    let count = stream.between(shape.faults.0, shape.faults.1);
    let mut families: Vec<&Family> = CATALOG.iter().filter(|_| !stream.chance(300)).collect();
    if families.is_empty() {
        families.push(stream.pick(&CATALOG));
    }
    let total = families.iter().map(|family| u64::from(family.weight)).sum();
    let traffic_ms = shape.traffic.as_millis() as u64;
    let mut faults: Vec<Fault> = (0..count)
        .map(|_| {
            let family = pick_weighted(&mut stream, &families, total);
            let kind = (family.draw)(&mut stream, shape);
            let start_ms = stream.between(300, traffic_ms.saturating_sub(500).max(300));
            let length_ms = stream.between(family.length_ms.0, family.length_ms.1);
            Fault { start_ms, length_ms, kind }
        })
        .collect();
    faults.sort_by_key(|fault| fault.start_ms);
    Plan { faults }
}

fn pick_weighted<'a>(stream: &mut Stream, families: &[&'a Family], total: u64) -> &'a Family {
    let mut left = stream.below(total);
    for family in families {
        match left.checked_sub(u64::from(family.weight)) {
            Some(rest) => left = rest,
            None => return family,
        }
    }
    families[families.len() - 1]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fault::family_of;

    /// Every plan is valid, equal seeds give equal plans, and no family is left out for ever.
    #[test]
    fn plans_are_valid_and_cover_the_catalog() {
        let shape = PlanShape { clients: 3, traffic: Duration::from_secs(20), faults: (2, 8) };
        let mut seen = BTreeSet::new();
        for seed in (0..300).map(Seed) {
            let plan = draw_plan(seed, &shape);
            assert_eq!(plan, draw_plan(seed, &shape));
            assert_eq!(plan.validate(3), Ok(()), "seed {seed}: {plan:?}");
            assert!((2..=8).contains(&plan.faults.len()));
            seen.extend(plan.faults.iter().map(|fault| family_of(&fault.kind).name));
        }
        assert_eq!(seen.len(), CATALOG.len(), "drawn: {seen:?}");
    }
}
