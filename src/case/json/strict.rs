//! JSON text to a value, without losing a field that is given twice.
//!
//! `serde_json` keeps the last of two fields with one name, so that what a person reads first would
//! not be what is run.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{CaseError, joined};

/// Reads JSON text.
///
/// # Errors
/// If it is not JSON, or a field of it is given twice, which is named.
pub fn parse_json(text: &str) -> Result<Value, CaseError> {
    let twice = RefCell::new(None);
    let place = Place { path: String::new(), twice: &twice };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = place
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| CaseError::Syntax(error.to_string()))?;
    match twice.into_inner() {
        None => Ok(value),
        Some(field) => {
            Err(CaseError::Field { field, message: "it is given twice: remove one".to_owned() })
        }
    }
}

/// Where in the text a value stands, and the first field that is there twice.
struct Place<'a> {
    path: String,
    twice: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let place = |index| Place { path: format!("{}[{index}]", self.path), twice: self.twice };
        while let Some(item) = items.next_element_seed(place(list.len()))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = joined(&self.path, &name);
            if object.contains_key(&name) {
                self.twice.borrow_mut().get_or_insert_with(|| path.clone());
            }
            let value = fields.next_value_seed(Place { path, twice: self.twice })?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
