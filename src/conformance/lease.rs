//! Names of leases in recordings: `"L1"` is the first id that the server chose in the case.
//!
//! A real server's ids are not the model's, so the files give them names: a field that is a lease
//! id has the name as its value, and `${L1:hex}` inside a text is the id in hexadecimal digits.

use serde_json::Value;

/// Fields that hold the id of a lease.
const LEASE_FIELDS: &[&str] = &["ID", "lease"];

/// The ids that the server has chosen so far in a case.
#[derive(Debug, Default)]
pub(super) struct ChosenLeases(Vec<i64>);

impl ChosenLeases {
    /// The server has chosen one more.
    pub(super) fn push(&mut self, id: i64) {
        self.0.push(id);
    }

    /// The id of a name, if the text is one and so many have been chosen.
    pub(super) fn id(&self, name: &str) -> Option<i64> {
        let number: usize = name.strip_prefix('L')?.parse().ok()?;
        self.0.get(number.checked_sub(1)?).copied()
    }

    /// The text with the digits of ids in place of their names.
    pub(super) fn spell_out(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.contains("${L") {
            for (index, id) in self.0.iter().enumerate() {
                text = text.replace(&format!("${{L{}:hex}}", index + 1), &format!("{id:x}"));
            }
        }
        text
    }

    /// A recorded answer as the model would give it: ids for their names, bytes written out.
    pub(super) fn canonical(&self, field: &str, value: &Value) -> Value {
        match value {
            Value::String(name) if LEASE_FIELDS.contains(&field) => {
                self.id(name).map_or_else(|| value.clone(), Value::from)
            }
            Value::String(text) => Value::String(self.spell_out(text)),
            Value::Array(items) => items.iter().map(|item| self.canonical("", item)).collect(),
            Value::Object(object) => match super::ask::plain_bytes(value) {
                Some(Ok(bytes)) => super::answer::text(&bytes),
                _ => object
                    .iter()
                    .map(|(name, value)| (name.clone(), self.canonical(name, value)))
                    .collect(),
            },
            other => other.clone(),
        }
    }
}
