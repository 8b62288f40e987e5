//! The example in `examples/own_storage.rs`, and storages that are right and wrong in other ways.

use std::collections::BTreeMap;

use leasehold::testing::{Answer, Check, StorageUnderTest};

#[path = "../examples/own_storage.rs"]
#[allow(dead_code)]
mod example;

/// The storage of the example is caught, and the example says so with its exit status.
#[test]
fn the_example_catches_its_storage() {
    assert_eq!(format!("{:?}", example::main()), format!("{:?}", std::process::ExitCode::SUCCESS));
}

/// One mark for all keys, raised by reads too: right.
#[derive(Default)]
pub(super) struct OneMark {
    mark: i64,
    values: BTreeMap<String, String>,
}

impl OneMark {
    fn passes(&mut self, token: Option<i64>) -> Result<(), Answer> {
        let Some(token) = token else { return Ok(()) };
        if token < self.mark {
            return Err(Answer::Refused(format!("{token} is below {}", self.mark)));
        }
        self.mark = token;
        Ok(())
    }
}

impl StorageUnderTest for OneMark {
    fn read(&mut self, key: &str, token: Option<i64>) -> Answer {
        match self.passes(token) {
            Ok(()) => Answer::Value(self.values.get(key).cloned()),
            Err(refused) => refused,
        }
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        match self.passes(token) {
            Ok(()) => {
                self.values.insert(key.to_owned(), value.to_owned());
                Answer::Written
            }
            Err(refused) => refused,
        }
    }
}

/// A right storage is not accused: no stale write in 200 seeds with every fault.
#[test]
fn a_right_storage_is_not_accused() {
    let summary = Check::new().storage(OneMark::default).seeds(0..200).run().unwrap();
    assert_eq!(summary.failures_total(), 0, "{}", leasehold::testing::explain(&summary));
    assert!(summary.classes.stale_refused > 0);
}

/// Refuses the write and does it all the same.
#[derive(Default)]
struct RefusedButWritten(OneMark);

impl StorageUnderTest for RefusedButWritten {
    fn read(&mut self, key: &str, token: Option<i64>) -> Answer {
        self.0.read(key, token)
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        let answer = self.0.write(key, value, token);
        self.0.values.insert(key.to_owned(), value.to_owned());
        answer
    }
}

/// The storage says "refused", its log says "no effect", and yet the value is read: caught.
#[test]
fn refused_but_written_is_caught() {
    let summary = Check::new().storage(RefusedButWritten::default).seeds(0..300).run().unwrap();
    assert!(summary.caught.contains_key("no-stale-write"), "{:?}", summary.caught);
}
