//! The arguments of a recorded request.

use serde_json::Value;

use super::value;

/// Something that a client's API may not be able to express, and why.
pub type Asked<T> = Result<T, &'static str>;

pub const UNKNOWN_ENUM: &str = "an unknown enumeration value";

/// A request as it was recorded: the operation, and its arguments in canonical form.
#[derive(Debug, Clone)]
pub struct Ask {
    pub op: String,
    pub args: Value,
    /// The revision that the case begins at.
    pub base: i64,
}

impl Ask {
    /// The same for a message inside this one.
    pub fn of(&self, args: &Value) -> Ask {
        Ask { op: String::new(), args: args.clone(), base: self.base }
    }

    pub fn has(&self, field: &str) -> bool {
        self.args.get(field).is_some()
    }

    pub fn flag(&self, field: &str) -> bool {
        self.args[field].as_bool().unwrap_or(false)
    }

    pub fn int(&self, field: &str) -> i64 {
        self.args[field].as_i64().unwrap_or(0)
    }

    pub fn bytes(&self, field: &str) -> Vec<u8> {
        value::bytes(&self.args[field])
    }

    pub fn list(&self, field: &str) -> Vec<Value> {
        self.args[field].as_array().cloned().unwrap_or_default()
    }

    /// `r+N` counts from the base, a number is absolute.
    pub fn revision(&self, field: &str) -> i64 {
        let Some(relative) = self.args[field].as_str() else { return self.int(field) };
        let offset = relative.strip_prefix('r').and_then(|offset| offset.parse::<i64>().ok());
        self.base + offset.expect("a relative revision")
    }

    /// One of the named values; none if the field is absent.
    pub fn choose<T: Copy>(&self, field: &str, choices: &[(&str, T)]) -> Asked<Option<T>> {
        match &self.args[field] {
            Value::Null => Ok(None),
            Value::String(name) => {
                let found = choices.iter().find(|(choice, _)| choice == name);
                found.map(|(_, value)| Some(*value)).ok_or(UNKNOWN_ENUM)
            }
            _ => Err(UNKNOWN_ENUM),
        }
    }
}
