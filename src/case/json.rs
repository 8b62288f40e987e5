//! A case as JSON: what people paste into a test, keep in a corpus, and edit by hand.
//!
//! The text has a version and is read strictly: whatever is wrong is named by its field, and a
//! field that means nothing here is refused instead of being overlooked.

mod strict;

use std::ops::RangeInclusive;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

pub use self::strict::parse_json;
use super::{CLIENTS_MAX, Case, CaseOptions, READERS_MAX, TTL_S_MAX};
use crate::{
    plan::{Fault, LENGTH_MAX, Plan},
    seed::Seed,
};

/// The version of a case as JSON.
pub const CASE_VERSION: u64 = 1;

const VERSION_FIELD: &str = "case_version";
const FIELDS: [&str; 4] = ["seed", "scenario", "options", "plan"];
const OPTION_FIELDS: [&str; 8] =
    ["guard", "token", "clients", "holdings", "ttl_s", "readers", "profile", "bug"];

/// The text is no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// It is not even JSON.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// It is JSON of something else.
    #[error("not a case: field {VERSION_FIELD:?} is missing; write {CASE_VERSION} there if it is")]
    Foreign,
    /// Another format.
    #[error("{VERSION_FIELD} is {0}, this build reads {CASE_VERSION}: save the case anew")]
    Version(String),
    /// A field is missing, has a value that it may not have, or does not belong there.
    #[error("field {field:?}: {message}")]
    Field {
        /// Where, such as `plan.faults[0].kind`.
        field: String,
        /// What is wrong with it.
        message: String,
    },
}

impl Case {
    /// The case as JSON text that [`Case::from_json`] reads: a line an option, two lines a fault.
    pub fn to_json(&self) -> String {
        let fault = |fault: &Fault| {
            let Fault { start_ms, length_ms, kind } = fault;
            let times = format!("\"start_ms\":{start_ms},\"length_ms\":{length_ms}");
            format!("\n    {{{times},\n     \"kind\":{}}}", line(kind))
        };
        let options = serde_json::to_value(&self.options).expect("options are plain");
        let options = options.as_object().into_iter().flatten();
        let options: Vec<String> =
            options.map(|(name, value)| format!("\n    {name:?}: {value}")).collect();
        let options = options.join(",");
        let faults: Vec<String> = self.plan.faults.iter().map(fault).collect();
        let end = if faults.is_empty() { "" } else { "\n  " };
        format!(
            "{{\n  \"{VERSION_FIELD}\": {CASE_VERSION},\n  \"seed\": {},\n  \"scenario\": {},\n  \
             \"options\": {{{options}\n  }},\n  \"plan\": {{\"faults\": [{}{end}]}}\n}}",
            self.seed,
            line(&self.scenario),
            faults.join(",")
        )
    }

    /// Reads a case from JSON text.
    ///
    /// # Errors
    /// If it is not JSON, not a case, of another version, or a field is wrong, which is named.
    pub fn from_json(text: &str) -> Result<Case, CaseError> {
        Case::from_value(&parse_json(text)?, "")
    }

    /// Reads a case from a JSON value that stands at `path` of a greater one.
    ///
    /// # Errors
    /// As [`Case::from_json`].
    pub fn from_value(value: &Value, path: &str) -> Result<Case, CaseError> {
        let Some(object) = value.as_object() else { return Err(CaseError::Foreign) };
        match object.get(VERSION_FIELD) {
            None => return Err(CaseError::Foreign),
            Some(version) if *version == CASE_VERSION => {}
            Some(version) => return Err(CaseError::Version(version.to_string())),
        }
        let known = |key: &&String| *key == VERSION_FIELD || FIELDS.contains(&key.as_str());
        if let Some(key) = object.keys().find(|key| !known(key)) {
            return Err(unknown(&joined(path, key)));
        }
        Ok(Case {
            seed: Seed(number(object, path, "seed", 0..=u64::MAX)?),
            scenario: parse_field(object, path, "scenario")?,
            options: parse_options(object, path)?,
            plan: parse_plan(object, path)?,
        })
    }
}

/// Option by option, so that a message says which one is wrong. Those that older cases do not have
/// are as in such a case.
fn parse_options(object: &Map<String, Value>, path: &str) -> Result<CaseOptions, CaseError> {
    let options: Value = parse_field(object, path, "options")?;
    let at = joined(path, "options");
    let options = options.as_object().ok_or_else(|| CaseError::Field {
        field: at.clone(),
        message: "expected an object".to_owned(),
    })?;
    if let Some(key) = options.keys().find(|key| !OPTION_FIELDS.contains(&key.as_str())) {
        return Err(unknown(&joined(&at, key)));
    }
    let optional = |name: &str, greatest: u64| match options.get(name) {
        None => Ok(0),
        Some(_) => number(options, &at, name, 0..=greatest),
    };
    let text = |name: &str| match options.get(name) {
        None => Ok(String::new()),
        Some(_) => parse_field(options, &at, name),
    };
    Ok(CaseOptions {
        guard: parse_field(options, &at, "guard")?,
        token: parse_field(options, &at, "token")?,
        clients: number(options, &at, "clients", 1..=CLIENTS_MAX.into())? as u8,
        holdings: optional("holdings", u32::MAX.into())? as u32,
        ttl_s: optional("ttl_s", TTL_S_MAX.into())? as u16,
        readers: optional("readers", READERS_MAX.into())? as u16,
        profile: text("profile")?,
        bug: text("bug")?,
    })
}

/// Reads a whole number, which must be in this range.
fn number(
    object: &Map<String, Value>,
    path: &str,
    name: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, CaseError> {
    let given: Value = parse_field(object, path, name)?;
    given.as_u64().filter(|number| range.contains(number)).ok_or_else(|| CaseError::Field {
        field: joined(path, name),
        message: format!("it is {given}, expected {} to {}", range.start(), range.end()),
    })
}

/// Fault by fault, so that a message says which one is wrong.
fn parse_plan(object: &Map<String, Value>, path: &str) -> Result<Plan, CaseError> {
    let plan: Value = parse_field(object, path, "plan")?;
    let at = joined(path, "plan");
    let wrong = |message: &str| CaseError::Field { field: at.clone(), message: message.to_owned() };
    let plan = plan.as_object().ok_or_else(|| wrong("expected {\"faults\": [...]}"))?;
    if let Some(key) = plan.keys().find(|key| *key != "faults") {
        return Err(unknown(&joined(&at, key)));
    }
    let listed: Vec<Value> = parse_field(plan, &at, "faults")?;
    let mut faults = Vec::new();
    for (index, fault) in listed.iter().enumerate() {
        let at = format!("{at}.faults[{index}]");
        let fault = fault.as_object().ok_or_else(|| CaseError::Field {
            field: at.clone(),
            message: "expected an object".to_owned(),
        })?;
        if let Some(key) = fault.keys().find(|key| !FAULT_FIELDS.contains(&key.as_str())) {
            return Err(unknown(&joined(&at, key)));
        }
        faults.push(Fault {
            start_ms: number(fault, &at, "start_ms", 0..=LENGTH_MS_MAX)?,
            length_ms: number(fault, &at, "length_ms", 0..=LENGTH_MS_MAX)?,
            kind: parse_field(fault, &at, "kind")?,
        });
    }
    Ok(Plan { faults })
}

/// No fault begins later or lasts longer, in milliseconds.
const LENGTH_MS_MAX: u64 = LENGTH_MAX.as_millis() as u64;
const FAULT_FIELDS: [&str; 3] = ["start_ms", "length_ms", "kind"];

/// Reads one field of an object that stands at `path`.
///
/// # Errors
/// If it is missing, has a value that it may not have, or holds a field that means nothing.
pub fn parse_field<T: DeserializeOwned + Serialize>(
    object: &Map<String, Value>,
    path: &str,
    name: &str,
) -> Result<T, CaseError> {
    let field = joined(path, name);
    let wrong = |message: String| CaseError::Field { field: field.clone(), message };
    let value = object.get(name).ok_or_else(|| wrong("it is missing".to_owned()))?;
    let parsed: T = serde_json::from_value(value.clone()).map_err(|error| {
        let field = blamed::<T>(value, &field).unwrap_or_else(|| field.clone());
        CaseError::Field { field, message: ranged(&error.to_string()) }
    })?;
    let again = serde_json::to_value(&parsed).map_err(|error| wrong(error.to_string()))?;
    match overlooked(value, &again, &field) {
        Some(field) => Err(unknown(&field)),
        None => Ok(parsed),
    }
}

/// The number within a value without which the value could be read: serde does not say which it is.
fn blamed<T: DeserializeOwned>(value: &Value, path: &str) -> Option<String> {
    let (Value::Object(_) | Value::Array(_)) = value else { return None };
    let mut found = None;
    each_number(value, path, &mut |path, changed| {
        if found.is_none() && serde_json::from_value::<T>(changed).is_ok() {
            found = Some(path.to_owned());
        }
    });
    found
}

/// Shows the value once for each number in it, with a harmless one in the place of that number.
fn each_number(value: &Value, path: &str, show: &mut dyn FnMut(&str, Value)) {
    match value {
        Value::Number(_) => show(path, Value::from(1)),
        Value::Object(object) => {
            for (name, inner) in object {
                each_number(inner, &joined(path, name), &mut |path, changed| {
                    let mut object = object.clone();
                    object.insert(name.clone(), changed);
                    show(path, Value::Object(object));
                });
            }
        }
        _ => {}
    }
}

/// What serde says, with the range in the place of a type of Rust.
fn ranged(message: &str) -> String {
    let types = [
        ("expected u8", "expected 0 to 255"),
        ("expected u16", "expected 0 to 65535"),
        ("expected u32", "expected 0 to 4294967295"),
        ("expected u64", "expected 0 to 18446744073709551615"),
    ];
    let known = types.iter().find_map(|(name, range)| {
        message.strip_suffix(name).map(|before| format!("{before}{range}"))
    });
    known.unwrap_or_else(|| message.to_owned())
}

/// The first field of what was given that was not understood: it is missing in what was read.
fn overlooked(given: &Value, read: &Value, path: &str) -> Option<String> {
    let (given, read) = (given.as_object()?, read.as_object()?);
    given.iter().find_map(|(key, value)| match read.get(key) {
        None => Some(joined(path, key)),
        Some(read) => overlooked(value, read, &joined(path, key)),
    })
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a case has no unserialisable part")
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn unknown(field: &str) -> CaseError {
    let message = "no such field: correct its name or remove it".to_owned();
    CaseError::Field { field: field.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{history::NodeName, plan::FaultKind, seed::Seed};

    fn case() -> Case {
        let pause = FaultKind::Pause { node: NodeName::Client(1) };
        let faults = vec![
            Fault { start_ms: 1000, length_ms: 3100, kind: pause },
            Fault { start_ms: 2000, length_ms: 0, kind: FaultKind::ForcedRevoke },
        ];
        Case {
            seed: Seed(u64::MAX),
            scenario: "fenced-lock".into(),
            options: CaseOptions {
                guard: "unfenced".into(),
                token: "revision".into(),
                clients: 2,
                holdings: 1,
                ttl_s: 0,
                readers: 0,
                profile: "all".into(),
                bug: String::new(),
            },
            plan: Plan { faults },
        }
    }

    /// What is written is read again, the greatest seed and an empty plan included, and the
    /// sentence says the same.
    #[test]
    fn round_trip() {
        let mut case = case();
        assert_eq!(Case::from_json(&case.to_json()), Ok(case.clone()));
        assert_eq!(
            case.sentence(),
            "pause client-1 for 3.100 s, from 1.000 s; revoke the lease of the lock's owner, from \
             2.000 s (seed 18446744073709551615, 2 clients of 1 holding each)"
        );
        case.plan.faults.clear();
        assert_eq!(Case::from_json(&case.to_json()), Ok(case.clone()));
        assert!(case.sentence().starts_with("no fault at all (seed "));
    }

    const CROWD: &str = "{\"point_pause\":{\"point\":\"x\",\"occurrence\":-1,";

    /// Whatever is wrong is named with its field; nothing is overlooked.
    #[test]
    fn what_is_wrong_is_named() {
        let changes = [
            ("{", "[", "not JSON"),
            ("case_version", "version", "\"case_version\" is missing"),
            ("\"case_version\": 1", "\"case_version\": 9", "case_version is 9, this build reads 1"),
            ("\"seed\": 1", "\"seed\": -1", "field \"seed\""),
            ("\"scenario\"", "\"szenario\"", "field \"szenario\": no such field"),
            ("\"guard\"", "\"gard\"", "field \"options.gard\": no such field"),
            ("\"clients\": 2,", "", "field \"options.clients\": it is missing"),
            (
                "\"clients\": 2",
                "\"clients\": 300",
                "options.clients\": it is 300, expected 1 to 16",
            ),
            ("\"clients\": 2", "\"clients\": 0", "options.clients\": it is 0, expected 1 to 16"),
            ("\"holdings\": 1", "\"holdings\": -1", "options.holdings\": it is -1, expected 0 to"),
            ("\"readers\": 0", "\"readers\": 1001", "options.readers\": it is 1001, expected 0 to"),
            ("\"ttl_s\": 0", "\"ttl_s\": 70000", "options.ttl_s\": it is 70000, expected 0 to 20"),
            ("\"seed\": 1", "\"seed\": 91", "\"seed\": it is 9.18446744"),
            ("\"seed\"", "\"seed\": 3, \"seed\"", "field \"seed\": it is given twice"),
            (
                "\"clients\"",
                "\"clients\": 3, \"clients\"",
                "\"options.clients\": it is given twice",
            ),
            (
                "\"node\":",
                "\"node\":1,\"node\":",
                "\"plan.faults[0].kind.pause.node\": it is given",
            ),
            ("{\"pause\":{", CROWD, "kind.point_pause.occurrence\": invalid value: integer `-1`"),
            ("{\"pause\":{", CROWD, "expected 0 to 4294967295"),
            ("\"holdings\"", "\"holding\"", "field \"options.holding\": no such field"),
            ("\"start_ms\":1000", "\"start_ms\":\"x\"", "field \"plan.faults[0].start_ms\""),
            ("\"pause\"", "\"puase\"", "field \"plan.faults[0].kind\": unknown variant `puase`"),
            ("\"node\":", "\"at\":3,\"node\":", "field \"plan.faults[0].kind.pause.at\""),
            ("\"length_ms\":0", "\"lenght_ms\":0", "field \"plan.faults[1].lenght_ms\""),
            ("\"faults\"", "\"harms\"", "field \"plan.harms\": no such field"),
        ];
        for (from, to, expected) in changes {
            let text = case().to_json().replacen(from, to, 1);
            let error = Case::from_json(&text).expect_err(to).to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
        assert_eq!(Case::from_json("[]"), Err(CaseError::Foreign));
    }
}
