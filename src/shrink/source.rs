//! A small case as the source of a test, ready to be pasted.

use super::Shrunk;
use crate::{
    explore::Outcome,
    runner::{HarnessError, RunError},
    system::OwnParts,
};

/// As the house rules have it.
const COLUMNS: usize = 100;

impl Shrunk {
    /// Whether it shows only that a run falls short of what was asked of it beside its verdict.
    pub fn is_of_demand(&self) -> bool {
        !demand(&self.outcome).is_empty()
    }

    /// A `#[test]` that runs the case again. With parts of the caller's own, which no case can
    /// hold, it asks for them and passes once they are mended, and so it does where the crate's own
    /// parts gave no verdict; otherwise it holds the scheme to being caught. What a check demands
    /// of a run beside its verdict is asked for again.
    pub fn test_source(&self, own: OwnParts) -> String {
        let name = format!("{} seed {}", self.symptom.words(), self.case().seed);
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let demand = demand(&self.outcome);
        let says = match self.symptom.broken() {
            _ if own.any() => own_text(own, &demand),
            Some(broken) => {
                format!("    case.assert_violates({:?}, {:?});", broken.checker, broken.rule)
            }
            None => format!("    case{demand}.assert_passes();"),
        };
        // The numbers in an error are those of this run, and not of the one that was shrunk.
        let shows = match &self.outcome {
            Ok(_) => self.symptom.to_string(),
            Err(broken) => format!("no run: {}", broken.1),
        };
        format!(
            "{}#[test]\nfn {name}() {{\n    let case = leasehold::testing::replay_case(\n        \
             r#\"{}\"#,\n    );\n{says}\n}}\n",
            doc(&format!("{shows}: {}.", self.case().sentence())),
            self.case().to_json()
        )
    }
}

fn own_text(own: OwnParts, demand: &str) -> String {
    let mut what = Vec::new();
    if own.storage {
        what.push("storage, made as for the check that found this");
    }
    if own.lock {
        what.push("lock");
    }
    let what = what.join(", and your own ");
    format!("    // Your own {what}:\n    case{}{demand}.assert_passes();", own.calls())
}

/// What the check asked of the run beside its verdict, if it fell short of that: a test that does
/// not ask for it would pass.
fn demand(outcome: &Outcome) -> String {
    let Err(broken) = outcome else { return String::new() };
    match &broken.1 {
        RunError::Harness(HarnessError::TooLong { limit, .. }) => {
            let limit = match limit.subsec_nanos() % 1_000_000 {
                0 => format!("from_millis({})", limit.as_millis()),
                _ => format!("from_nanos({})", limit.as_nanos()),
            };
            format!(".time_limit(std::time::Duration::{limit})")
        }
        RunError::Harness(HarnessError::NotDeterministic { .. }) => {
            ".check_determinism()".to_owned()
        }
        _ => String::new(),
    }
}

/// The text as doc comment.
fn doc(text: &str) -> String {
    let mut lines = vec!["///".to_owned()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("/// {word}")),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long texts are broken between words, at the house's width.
    #[test]
    fn doc_comments_keep_to_the_width() {
        let text = "word ".repeat(50);
        let comment = doc(&text);
        assert!(comment.lines().all(|line| line.starts_with("/// ") && line.len() <= COLUMNS));
        assert_eq!(comment.matches("word").count(), 50);
        assert!(comment.lines().count() == 3, "{comment}");
    }
}
