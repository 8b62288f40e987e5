//! `testing::strategy` in the real build: it draws nothing, and says what is missing.

use std::ops::RangeInclusive;

use proptest::{
    strategy::{Just, NewTree, Strategy},
    test_runner::TestRunner,
};

use crate::case::Case;

/// Cases, in the simulation build.
pub fn cases() -> Cases {
    Cases(())
}

/// A strategy that draws nothing; made by [`cases`].
#[derive(Debug, Clone)]
pub struct Cases(());

/// Takes what the simulation's strategy takes, and forgets it.
macro_rules! forgets {
    ($($name:ident : $type:ty),* $(,)?) => {
        $(
            /// As in the simulation build; forgotten here.
            pub fn $name(self, _value: $type) -> Self {
                self
            }
        )*
    };
}

impl Cases {
    forgets!(
        scenario: &str,
        profile: &str,
        guard: &str,
        token: &str,
        clients: RangeInclusive<u8>,
        holdings: RangeInclusive<u32>,
        ttl_s: RangeInclusive<u16>,
        readers: RangeInclusive<u16>,
        faults: RangeInclusive<usize>,
    );
}

impl Strategy for Cases {
    type Tree = Just<Case>;
    type Value = Case;

    fn new_tree(&self, _runner: &mut TestRunner) -> NewTree<Self> {
        Err(super::NoSimulation.to_string().into())
    }
}
