//! Reading requests, as lenient as Go's `encoding/json` and with errors that name the field.
//!
//! As in Go: names match without regard to case (the long s and the Kelvin sign included), of a
//! name given twice the last counts, `null` leaves a field as it is, unknown fields are skipped,
//! invalid UTF-8 becomes U+FFFD. Not as in Go: unknown fields may nest 127 levels deep, not 10,000.

use std::{borrow::Cow, fmt};

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};

use super::protocol::{ProtocolError, Request};
use crate::history::OpKind;

/// The fields as they were given.
#[derive(Default)]
struct Fields {
    op: String,
    request_key: String,
    val: String,
    version: Option<i64>,
    domain: String,
    seq: Option<u64>,
}

/// Reads a request.
pub(super) fn request(body: &[u8]) -> Result<Request, ProtocolError> {
    let text = String::from_utf8_lossy(body);
    if text.trim_ascii().is_empty() {
        return Err(ProtocolError::new(
            "the body is empty: send a JSON object such as {\"op\":\"read\",\"key\":\"k\"}",
        ));
    }
    let fields: Fields = serde_json::from_str(&text)
        .map_err(|error| ProtocolError::new(format!("malformed request: {error}")))?;
    let op = match fields.op.as_str() {
        "read" => OpKind::Read,
        "write" => OpKind::Write,
        "" => {
            let text = "field \"op\" is missing or empty: send \"read\" or \"write\"";
            return Err(ProtocolError::new(text));
        }
        other => {
            let shown: String = other.chars().take(40).collect();
            let text =
                format!("field \"op\": unknown operation {shown:?}: send \"read\" or \"write\"");
            return Err(ProtocolError::new(text));
        }
    };
    Ok(Request {
        op,
        key: fields.request_key,
        val: fields.val,
        version: fields.version,
        domain: fields.domain,
        seq: fields.seq,
    })
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object such as {\"op\":\"read\",\"key\":\"k\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key_seed(NameSeed)? {
            let name = folded(&name);
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("op") {
                map.next_value_seed(Text { name: "op", into: &mut fields.op })?;
            } else if is("key") {
                map.next_value_seed(Text { name: "key", into: &mut fields.request_key })?;
            } else if is("val") {
                map.next_value_seed(Text { name: "val", into: &mut fields.val })?;
            } else if is("version") {
                map.next_value_seed(Version(&mut fields.version))?;
            } else if is("domain") {
                map.next_value_seed(Text { name: "domain", into: &mut fields.domain })?;
            } else if is("seq") {
                map.next_value_seed(Seq(&mut fields.seq))?;
            } else {
                map.next_value::<Skipped>()?;
            }
        }
        Ok(fields)
    }
}

/// The two letters outside ASCII that Go's `strings.EqualFold` takes for ASCII ones.
fn folded<'a>(name: &'a Cow<'a, str>) -> Cow<'a, str> {
    if name.is_ascii() {
        return Cow::Borrowed(name);
    }
    let fold = |letter| match letter {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        other => other,
    };
    Cow::Owned(name.chars().map(fold).collect())
}

/// A name, borrowed from the body where it holds no escapes.
struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// A string field.
struct Text<'a> {
    name: &'static str,
    into: &'a mut String,
}

/// The version field.
struct Version<'a>(&'a mut Option<i64>);

/// The number field.
struct Seq<'a>(&'a mut Option<u64>);

macro_rules! field_seed {
    ($seed:ident) => {
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_any(self)
            }
        }
    };
}
field_seed!(Text);
field_seed!(Version);
field_seed!(Seq);

impl<'de> Visitor<'de> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a JSON string for field {:?}", self.name)
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.into.clear();
        self.into.push_str(text);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl<'de> Visitor<'de> for Version<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "for field \"version\" an integer from {} to {} without quotes, fraction or exponent",
            i64::MIN,
            i64::MAX
        )
    }

    fn visit_i64<E>(self, version: i64) -> Result<(), E> {
        *self.0 = Some(version);
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, version: u64) -> Result<(), E> {
        let checked = i64::try_from(version)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(version), &self))?;
        self.visit_i64(checked)
    }

    fn visit_f64<E: de::Error>(self, version: f64) -> Result<(), E> {
        // The parser gives the integer -0 as a float, and Go takes it for 0.
        if version == 0.0 && version.is_sign_negative() {
            return self.visit_i64(0);
        }
        Err(E::invalid_type(Unexpected::Float(version), &self))
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

impl<'de> Visitor<'de> for Seq<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "for field \"seq\" an integer from 0 to {}", u64::MAX)
    }

    fn visit_u64<E>(self, seq: u64) -> Result<(), E> {
        *self.0 = Some(seq);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Any value, parsed and forgotten. It recurses on purpose: serde's own `IgnoredAny` has no limit
/// on nesting, and a body must not be able to ask for more than the parser's limit.
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Skipped)
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = Skipped;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Skipped, E> {
        Ok(Skipped)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Skipped, E> {
        Ok(Skipped)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Skipped, E> {
        Ok(Skipped)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Skipped, E> {
        Ok(Skipped)
    }

    fn visit_str<E>(self, _: &str) -> Result<Skipped, E> {
        Ok(Skipped)
    }

    fn visit_unit<E>(self) -> Result<Skipped, E> {
        Ok(Skipped)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Skipped, A::Error> {
        while items.next_element::<Skipped>()?.is_some() {}
        Ok(Skipped)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Skipped, A::Error> {
        while map.next_entry::<Skipped, Skipped>()?.is_some() {}
        Ok(Skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each error names the field, shows the value and says what to send.
    #[test]
    fn errors_name_field_value_and_remedy() {
        let cases = [
            (r#"{"op":"write","version":1.5}"#, ["version", "1.5", "without quotes, fraction"]),
            (r#"{"op":"write","version":"7"}"#, ["version", "\"7\"", "an integer from -922"]),
            (r#"{"op":"write","version":9223372036854775808}"#, ["version", "775808`", "integer"]),
            (r#"{"op":"write","key":5}"#, ["\"key\"", "`5`", "a JSON string"]),
            (r#"{"op":"write","seq":-1}"#, ["\"seq\"", "`-1`", "from 0 to"]),
            (r#"{"op":"delete"}"#, ["\"op\"", "\"delete\"", "send \"read\" or \"write\""]),
            (r#"{}"#, ["\"op\"", "missing", "send"]),
            (" ", ["body", "empty", "send a JSON object"]),
            ("[]", ["malformed", "sequence", "a JSON object such as"]),
        ];
        for (body, expected) in cases {
            let message = request(body.as_bytes()).unwrap_err().to_string();
            for part in expected {
                assert!(message.contains(part), "{body}: {message} lacks {part}");
            }
        }
    }
}
