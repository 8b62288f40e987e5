//! The catalogs are complete: each row has what its readers need.

use std::collections::BTreeSet;

use leasehold::{checker, fault, scenario};

/// Names are unique and say something; faults have a colour and a way to count their effect.
#[test]
fn rows_are_complete() {
    let mut names = BTreeSet::new();
    for family in &fault::CATALOG {
        assert!(names.insert(family.name), "{} twice", family.name);
        assert!(!family.help.is_empty() && !family.effect.is_empty(), "{}", family.name);
        assert!(family.weight > 0 && family.colour.starts_with('#'), "{}", family.name);
        assert!(family.length_ms.0 <= family.length_ms.1, "{}", family.name);
    }
    for checker in checker::all() {
        assert!(names.insert(checker.name()), "{} twice", checker.name());
        assert!(!checker.help().is_empty(), "{}", checker.name());
    }
    for scenario in &scenario::CATALOG {
        assert!(names.insert(scenario.name), "{} twice", scenario.name);
        assert!(!scenario.help.is_empty(), "{}", scenario.name);
    }
}

/// The README names every family, checker, scenario and profile, so that it cannot fall behind.
#[test]
fn the_readme_names_every_row() {
    let readme = include_str!("../README.md");
    let families = fault::CATALOG.iter().map(|family| family.name);
    let checkers = checker::all().iter().map(|checker| checker.name());
    let scenarios = scenario::CATALOG.iter().map(|scenario| scenario.name);
    let profiles = fault::profile::PROFILES.iter().map(|profile| profile.name);
    for name in families.chain(checkers).chain(scenarios).chain(profiles) {
        assert!(readme.contains(&format!("`{name}`")), "README.md lacks `{name}`");
    }
}
