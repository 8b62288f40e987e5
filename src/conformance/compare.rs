//! Whether an answer is the recorded one, and where not.

use std::fmt;

use serde_json::Value;

use super::recording::Step;

/// How much of a value is shown, in characters.
const SHOWN_MAX: usize = 160;

/// The first place where an answer is not the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path to it: `ok.kvs[0].version`; empty for the answer as a whole.
    pub path: String,
    /// What the recording has there, as JSON; `nothing` if it has no such field.
    pub expected: String,
    /// What the answer has there.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "at {}: ", self.path)?;
        }
        write!(f, "expected {}, got {}", self.expected, self.got)
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// The first difference between what is expected (in canonical form) and an answer. A field that
/// the step tolerates may be one more in the answer: a real server is slower than none.
pub(super) fn difference(step: &Step, expected: &Value, got: &Value) -> Option<Difference> {
    find(step, "", Some(expected), Some(got))
}

fn find(
    step: &Step,
    path: &str,
    expected: Option<&Value>,
    got: Option<&Value>,
) -> Option<Difference> {
    if expected == got || is_tolerated(step, path, expected, got) {
        return None;
    }
    let inner = |path: String, expected, got| find(step, &path, expected, got);
    match (expected, got) {
        // An answer of another kind is shown as a whole.
        (Some(Value::Object(expected)), Some(Value::Object(got)))
            if !path.is_empty() || expected.keys().eq(got.keys()) =>
        {
            let added = got.keys().filter(|name| !expected.contains_key(*name));
            expected.keys().chain(added).find_map(|name| {
                let dot = if path.is_empty() { "" } else { "." };
                inner(format!("{path}{dot}{name}"), expected.get(name), got.get(name))
            })
        }
        (Some(Value::Array(expected)), Some(Value::Array(got))) => {
            (0..expected.len().max(got.len())).find_map(|index| {
                inner(format!("{path}[{index}]"), expected.get(index), got.get(index))
            })
        }
        _ => Some(Difference { path: path.to_owned(), expected: shown(expected), got: shown(got) }),
    }
}

fn is_tolerated(step: &Step, path: &str, expected: Option<&Value>, got: Option<&Value>) -> bool {
    let field = path.strip_prefix("ok.").unwrap_or_default();
    // A field with its default is absent.
    let number = |value: Option<&Value>| value.map_or(Some(0), Value::as_i64);
    step.tolerated.iter().any(|name| name == field)
        && match (number(expected), number(got)) {
            (Some(expected), Some(got)) => got.checked_sub(expected) == Some(1),
            _ => false,
        }
}
