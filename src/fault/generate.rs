//! Draws a plan from a seed.
//!
//! Swarm: per seed some families are off altogether, so that the others get room. How many is the
//! strategy's choice; none is plain chance.

use std::time::Duration;

use super::{Family, profile::Profile};
use crate::{
    history::NodeName,
    plan::{Fault, FaultKind, Plan},
    seed::{Seed, Stream},
};

/// What a plan is drawn for.
#[derive(Debug, Clone)]
pub(crate) struct PlanShape {
    /// How many clients there are.
    pub(crate) clients: u8,
    /// How long the clients work.
    pub(crate) traffic: Duration,
    /// What is drawn.
    pub(crate) profile: &'static Profile,
    /// How many of 1,000 families are off in a seed, if the profile allows for that.
    pub(crate) off_permille: u32,
}

/// How many of 1,000 families a swarm does without in a seed.
pub const SWARM_OFF_PERMILLE: u32 = 300;

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

/// The plan of this seed. A profile without faults gives an empty plan.
pub(crate) fn draw_plan(seed: Seed, shape: &PlanShape) -> Plan {
    let mut stream = seed.stream("plan");
    let count = stream.between(shape.profile.faults.0, shape.profile.faults.1);
    draw_faults(&mut stream, shape, count)
}

/// A plan of so many faults, or none if the profile is without.
pub(crate) fn draw_faults(stream: &mut Stream, shape: &PlanShape, count: u64) -> Plan {
    let profile = shape.profile;
    let all = profile.families();
    if all.is_empty() {
        return Plan::default();
    }
    let off_permille = if profile.swarm { shape.off_permille } else { 0 };
    let mut families = all.clone();
    families.retain(|_| !(off_permille > 0 && stream.chance(off_permille)));
    if families.is_empty() {
        families.push(*stream.pick(&all));
    }
    let traffic_ms = shape.traffic.as_millis() as u64;
    let mut faults: Vec<Fault> = (0..count)
        .map(|_| {
            let family = pick_weighted(stream, &families);
            let kind = match (family.draw)(stream, shape) {
                FaultKind::Kill { .. } if profile.storage_dies => {
                    FaultKind::Kill { node: NodeName::Storage }
                }
                FaultKind::RestartUnder { node, point, occurrence, .. } if profile.storage_dies => {
                    FaultKind::RestartUnder { node, point, occurrence, server: NodeName::Storage }
                }
                kind => kind,
            };
            let start_ms = stream.between(300, traffic_ms.saturating_sub(500).max(300));
            let length_ms = stream.between(family.length_ms.0, family.length_ms.1);
            Fault { start_ms, length_ms, kind }
        })
        .collect();
    faults.sort_by_key(|fault| fault.start_ms);
    Plan { faults }
}

fn pick_weighted(stream: &mut Stream, families: &[(&'static Family, u32)]) -> &'static Family {
    let mut left = stream.below(families.iter().map(|(_, weight)| u64::from(*weight)).sum());
    for (family, weight) in families {
        match left.checked_sub(u64::from(*weight)) {
            Some(rest) => left = rest,
            None => return family,
        }
    }
    families[families.len() - 1].0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fault::{family_of, profile::PROFILES};

    fn shape(profile: &'static Profile, off_permille: u32) -> PlanShape {
        PlanShape { clients: 3, traffic: Duration::from_secs(20), profile, off_permille }
    }

    /// Every plan of every profile is valid, has as many faults as the profile says and of its
    /// families only; equal seeds give equal plans, and no family is left out for ever.
    #[test]
    fn plans_are_valid_and_cover_their_profile() {
        for profile in &PROFILES {
            let shape = shape(profile, SWARM_OFF_PERMILLE);
            let mut seen = BTreeSet::new();
            for seed in (0..300).map(Seed) {
                let plan = draw_plan(seed, &shape);
                assert_eq!(plan, draw_plan(seed, &shape));
                assert_eq!(plan.validate(3), Ok(()), "seed {seed}: {plan:?}");
                let (fewest, most) = profile.faults;
                assert!((fewest..=most).contains(&(plan.faults.len() as u64)));
                seen.extend(plan.faults.iter().map(|fault| family_of(&fault.kind).name));
            }
            let families: BTreeSet<_> = profile.families().iter().map(|(f, _)| f.name).collect();
            assert_eq!(seen, families, "{}", profile.name);
        }
    }

    /// Swarm: with many seeds each family is missing from some plans that had room for it; by
    /// plain chance far fewer plans miss it.
    #[test]
    fn swarm_leaves_families_out() {
        let profile = PROFILES.iter().find(|profile| profile.name == "gc").unwrap();
        for (family, _) in profile.families() {
            let without = |off_permille| {
                let shape = shape(profile, off_permille);
                let is_without = |seed: &Seed| {
                    let faults = draw_plan(*seed, &shape).faults;
                    let has = |f: &Fault| family_of(&f.kind).name == family.name;
                    faults.len() >= 6 && !faults.iter().any(has)
                };
                (0..300).map(Seed).filter(is_without).count()
            };
            let (swarm, chance) = (without(SWARM_OFF_PERMILLE), without(0));
            assert!(swarm > 20 && chance * 2 < swarm, "{}: {swarm} and {chance}", family.name);
        }
    }
}
