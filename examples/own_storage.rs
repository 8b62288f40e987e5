//! A storage of your own, with a check that looks right and is not: it compares tokens per key.
//! Run it with `cargo run --release --example own_storage`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::{collections::BTreeMap, process::ExitCode};

use leasehold::testing::{Answer, Check, StorageUnderTest, explain};

/// Keeps, beside each value, the token it was written under.
#[derive(Default)]
struct PerKey(BTreeMap<String, (String, i64)>);

impl StorageUnderTest for PerKey {
    fn read(&mut self, key: &str, _token: Option<i64>) -> Answer {
        // The first mistake: a new holder reads, and nobody remembers that it was here.
        Answer::Value(self.0.get(key).map(|(value, _)| value.clone()))
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        let token = token.unwrap_or(0);
        // The second: an old holder may still write any key that the new one has not touched.
        match self.0.get(key) {
            Some((_, newest)) if token < *newest => Answer::Refused(format!("{token} < {newest}")),
            _ => {
                self.0.insert(key.to_owned(), (value.to_owned(), token));
                Answer::Written
            }
        }
    }
}

/// Status 0 if the harness caught the storage.
pub fn main() -> ExitCode {
    let summary = match Check::new().storage(PerKey::default).seeds(0..300).run() {
        Ok(summary) => summary,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if summary.violations == 0 {
        println!("no violation in {} runs", summary.runs);
        return ExitCode::FAILURE;
    }
    println!("{}", explain(&summary));
    for (checker, (runs, first)) in &summary.caught {
        println!("caught by {checker} in {runs} of {} runs, first seed {first}", summary.runs);
    }
    ExitCode::SUCCESS
}
