//! Values in the form of the recordings: canonical JSON, and what counts as equal.

use serde_json::{Map, Value, json};

/// Fields of proto3: one that has its default is absent.
#[derive(Default)]
pub struct Fields(pub Map<String, Value>);

impl Fields {
    /// A field that is spelled out even at its default.
    pub fn always(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// A field that is absent at its default.
    pub fn unless_default(self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let default = match &value {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(_) => false,
        };
        if default { self } else { self.always(name, value) }
    }

    /// A message that may be missing.
    pub fn message(self, name: &str, value: Option<Value>) -> Self {
        match value {
            Some(value) => self.always(name, value),
            None => self,
        }
    }

    /// A revision, relative to the first one of the case.
    pub fn revision(self, name: &str, revision: i64, base: i64) -> Self {
        if revision == 0 {
            return self;
        }
        self.always(name, format!("r{:+}", revision - base))
    }

    pub fn value(self) -> Value {
        Value::Object(self.0)
    }
}

/// A header with this revision.
pub fn header(revision: i64, base: i64) -> Value {
    if base == 0 {
        // A server that counts from 0 has no default here.
        return Fields::default().always("revision", format!("r{revision:+}")).value();
    }
    Fields::default().revision("revision", revision, base).value()
}

/// Bytes of an answer.
pub fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": bytes.iter().map(|b| format!("{b:02x}")).collect::<String>() }),
    }
}

/// Bytes of a request, already canonical.
pub fn bytes(field: &Value) -> Vec<u8> {
    match field {
        Value::String(text) => text.clone().into_bytes(),
        Value::Object(object) => {
            let hex = object["hex"].as_str().expect("hex digits");
            (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex digits"))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A recorded value with names of leases and repetitions put in.
pub fn canonical(value: &Value, chosen: &[i64]) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            for (index, id) in chosen.iter().enumerate() {
                text = text.replace(&format!("${{L{}:hex}}", index + 1), &format!("{id:x}"));
                if text == format!("L{}", index + 1) {
                    return json!(id);
                }
            }
            json!(text)
        }
        Value::Array(items) => items.iter().map(|item| canonical(item, chosen)).collect(),
        Value::Object(object) => match (&object.get("repeat"), &object.get("n")) {
            (Some(Value::String(part)), Some(n)) => {
                json!(part.repeat(n.as_u64().expect("a count") as usize))
            }
            _ => object.iter().map(|(k, v)| (k.clone(), canonical(v, chosen))).collect(),
        },
        other => other.clone(),
    }
}

/// The value without these fields, wherever they are.
pub fn without(value: &Value, hidden: &[&str]) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without(item, hidden)).collect(),
        Value::Object(object) => object
            .iter()
            .filter(|(name, _)| !hidden.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), without(value, hidden)))
            .collect(),
        other => other.clone(),
    }
}

/// Whether an answer is the expected one, but for the fields named in `tol`: they depend on the
/// clock, and are `expected - slack ..= expected + 1`.
pub fn equal(expected: &Value, answer: &Value, tol: &Value, slack: i64) -> bool {
    let tol: Vec<&str> = tol.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let near = tol.iter().all(|field| {
        let of = |value: &Value| value["ok"][*field].as_i64().unwrap_or(0);
        (of(expected) - slack..=of(expected) + 1).contains(&of(answer))
    });
    near && without(expected, &tol) == without(answer, &tol)
}

/// Sorts the keys of a lease: a real server gives them in random order.
pub fn sort_keys(mut answer: Value) -> Value {
    let keys = answer.get_mut("ok").and_then(|ok| ok.get_mut("keys"));
    if let Some(keys) = keys.and_then(Value::as_array_mut) {
        keys.sort_by_key(bytes);
    }
    answer
}

/// An error with its gRPC code.
pub fn status(status: &tonic::Status) -> Value {
    // The names as gRPC spells them: `NotFound` is `NOT_FOUND`.
    let mut name = String::new();
    for letter in format!("{:?}", status.code()).chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    let code = status.code() as i32;
    json!({ "error": { "code": code, "status": name, "message": status.message() } })
}
