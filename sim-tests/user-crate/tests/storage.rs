//! The store under leasehold, and one that is wrong, to see that it would be caught.

use std::collections::BTreeMap;

use fenced::Fenced;
use leasehold::testing::{Answer, Check, StorageUnderTest, check_case, strategy::cases};
use proptest::prelude::*;

#[derive(Default)]
struct Mine(Fenced);

impl StorageUnderTest for Mine {
    fn read(&mut self, key: &str, token: Option<i64>) -> Answer {
        self.0.read(key, token).map_or_else(Answer::Refused, Answer::Value)
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        self.0.write(key, value, token).map_or_else(Answer::Refused, |()| Answer::Written)
    }
}

#[test]
fn no_late_write_gets_in() {
    Check::new().storage(Mine::default).seeds(0..200).assert_passes();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_late_write_gets_in_whatever_the_case(case in cases()) {
        check_case(&case).storage(Mine::default).passes()?;
    }
}

#[test]
fn the_cases_of_the_corpus_give_their_verdicts() {
    leasehold::testing::assert_corpus("corpus");
}

/// What failing checks of this storage saved: once it is mended, and from then on, it passes.
#[test]
fn what_failed_once_passes() {
    leasehold::testing::corpus("corpus-of-mine").storage(Mine::default).assert_passes();
}

/// Wrong: it compares the tokens of one key, and a read leaves no trace.
#[derive(Default)]
struct PerKey(BTreeMap<String, (String, i64)>);

impl StorageUnderTest for PerKey {
    fn read(&mut self, key: &str, _token: Option<i64>) -> Answer {
        Answer::Value(self.0.get(key).map(|(value, _)| value.clone()))
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        let token = token.unwrap_or(0);
        match self.0.get(key) {
            Some((_, newest)) if token < *newest => Answer::Refused(format!("{token} < {newest}")),
            _ => {
                self.0.insert(key.to_owned(), (value.to_owned(), token));
                Answer::Written
            }
        }
    }
}

#[test]
fn a_fence_per_key_is_caught() {
    Check::new().storage(PerKey::default).seeds(0..100).assert_violates("no-stale-write");
}
