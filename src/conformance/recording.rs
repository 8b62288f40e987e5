//! Recordings: the form of the files, read strictly.
//!
//! Schema 1. What is read here is only the frame: names, operations, timing, what is expected. The
//! arguments of a request are read when it is asked. A field that is not part of the frame is a
//! remark and has no effect.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The schema of the files that can be read.
pub const SCHEMA: u64 = 1;
/// The revision of a fresh server; each case begins on one.
pub const FIRST_REVISION: i64 = 1;
/// No recording is larger, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;
const CASES_MAX: usize = 10_000;
const STEPS_MAX: usize = 10_000;
/// Nothing in a file is nested deeper. A transaction within a transaction takes three levels, and a
/// real server takes 127 of them.
const DEPTH_MAX: usize = 512;
/// No step waits longer.
const WAIT_MS_MAX: f64 = 3_600_000.0;

/// Operations, each with whether it needs `stream` and `handle`.
const OPERATIONS: &[(&str, bool, bool)] = &[
    ("range", false, false),
    ("put", false, false),
    ("delete_range", false, false),
    ("txn", false, false),
    ("compact", false, false),
    ("lease_grant", false, false),
    ("lease_revoke", false, false),
    ("lease_time_to_live", false, false),
    ("lease_leases", false, false),
    ("lease_keepalive", false, false),
    ("lock", false, false),
    ("unlock", false, false),
    ("campaign", false, false),
    ("proclaim", false, false),
    ("leader", false, false),
    ("resign", false, false),
    ("status", false, false),
    ("member_list", false, false),
    ("pending", false, true),
    ("await", false, true),
    ("cancel", false, true),
    ("watch_create", true, false),
    ("watch_next", true, false),
    ("watch_idle", true, false),
    ("watch_cancel", true, false),
    ("watch_progress", true, false),
    ("observe_open", true, false),
    ("observe_next", true, false),
    ("observe_idle", true, false),
    ("sleep", false, false),
];
/// What can be expected instead of an answer.
const WORDS: &[&str] = &["started", "blocked", "done", "cancelled", "none", "idle"];

/// Whether a value is of a kind.
type IsKind = fn(&Value) -> bool;

/// The parts of a recorded error, and what each must be.
const ERROR_PARTS: &[(&str, &str, IsKind)] = &[
    ("code", "number", Value::is_u64),
    ("status", "text", Value::is_string),
    ("message", "text", Value::is_string),
];

/// A file of recorded cases.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The file's name, for messages.
    pub file: String,
    /// The release that was recorded: `3.5.30`.
    pub etcd_version: String,
    /// What the cases are about: `kv_range`.
    pub area: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One recorded case: steps from a fresh server on.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name, as the file gives it.
    pub name: String,
    /// What was done, in order.
    pub steps: Vec<Step>,
}

/// One recorded step.
#[derive(Debug, Clone)]
pub struct Step {
    /// The operation: `put`, `watch_next`, `sleep` …
    pub op: String,
    /// The fields of the request, by the names of the protos.
    pub args: Map<String, Value>,
    /// The name of the stream that it is about.
    pub stream: Option<String>,
    /// The name of the call that it starts or is about.
    pub handle: Option<String>,
    /// How long to sleep or to see nothing, in milliseconds.
    pub wait_ms: Option<u64>,
    /// How long to wait for an answer at most, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Fields of the answer that depend on the clock.
    pub tolerated: Vec<String>,
    /// What came: an object with `ok`, `error` or `server_crash`, or a word. None for a sleep.
    pub expected: Option<Value>,
    /// What came when the same was recorded again, if that differed.
    pub alternative: Option<Value>,
}

/// Why a file is no recording, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{place}: {what}")]
pub struct RecordingError {
    file: String,
    place: String,
    what: String,
}

impl RecordingError {
    /// About the whole file.
    pub fn of_file(file: &str, what: impl Into<String>) -> Self {
        RecordingError { file: file.to_owned(), place: String::new(), what: what.into() }
    }
}

type Read<T> = Result<T, (String, String)>;

fn wrong<T>(place: impl Into<String>, what: impl Into<String>) -> Read<T> {
    Err((place.into(), what.into()))
}

impl Recording {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// It is not JSON, not of this schema, or not complete; the error says where.
    pub fn parse(file: &str, text: &str) -> Result<Self, RecordingError> {
        if text.len() > FILE_BYTES_MAX {
            let what = format!("{} bytes, at most {FILE_BYTES_MAX}", text.len());
            return Err(RecordingError::of_file(file, what));
        }
        if depth(text) > DEPTH_MAX {
            let what = format!("nested more than {DEPTH_MAX} deep; split the case");
            return Err(RecordingError::of_file(file, what));
        }
        // The library's own limit is less than what a real server takes; ours stands above.
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
        let value =
            value.map_err(|error| RecordingError::of_file(file, format!("not JSON: {error}")))?;
        read_file(file, &value).map_err(|(place, what)| RecordingError {
            file: file.to_owned(),
            place,
            what,
        })
    }
}

/// How deep objects and lists are nested, without reading them.
fn depth(text: &str) -> usize {
    let (mut deepest, mut depth, mut in_string, mut escaped) = (0, 0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn read_file(file: &str, value: &Value) -> Read<Recording> {
    let Value::Object(fields) = value else { return wrong("", "not an object") };
    match fields.get("schema") {
        Some(schema) if schema.as_u64() == Some(SCHEMA) => {}
        Some(schema) => return wrong(", field schema", format!("is {schema}, expected {SCHEMA}")),
        None => return wrong(", field schema", "is missing"),
    }
    let cases = list(fields, "cases", CASES_MAX).map_err(|what| (", field cases".into(), what))?;
    let read_case = |(index, case): (usize, &Value)| {
        let name = case.get("name").and_then(Value::as_str);
        let label = name.map_or_else(|| (index + 1).to_string(), |name| format!("{name:?}"));
        read_case(case).map_err(|(place, what)| (format!(", case {label}{place}"), what))
    };
    Ok(Recording {
        file: file.to_owned(),
        etcd_version: text(fields, "etcd_version", "")?,
        area: text(fields, "area", "")?,
        cases: cases.iter().enumerate().map(read_case).collect::<Read<_>>()?,
    })
}

fn read_case(value: &Value) -> Read<Case> {
    let Value::Object(fields) = value else { return wrong("", "not an object") };
    let name = text(fields, "name", "")?;
    if fields.get("base_revision").and_then(Value::as_i64) != Some(FIRST_REVISION) {
        let what = match fields.get("base_revision") {
            Some(other) => format!("is {other}; a fresh server is at {FIRST_REVISION}"),
            None => "is missing".to_owned(),
        };
        return wrong(", field base_revision", what);
    }
    let steps = list(fields, "steps", STEPS_MAX).map_err(|what| (", field steps".into(), what))?;
    let steps: Vec<Step> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            read_step(step).map_err(|(place, what)| (format!(", step {}{place}", index + 1), what))
        })
        .collect::<Read<_>>()?;
    if steps.iter().all(|step| step.expected.is_none()) {
        return wrong(", field steps", "nothing is expected");
    }
    Ok(Case { name, steps })
}

fn read_step(value: &Value) -> Read<Step> {
    let Value::Object(fields) = value else { return wrong("", "not an object") };
    let op = text(fields, "op", "")?;
    let known = OPERATIONS.iter().find(|(name, ..)| *name == op);
    let Some((_, needs_stream, needs_handle)) = known else {
        return wrong(", field op", format!("{op:?} is no operation of this schema"));
    };
    let args = match fields.get("args") {
        None => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(_) => return wrong(", field args", "not an object"),
    };
    let step = Step {
        args,
        stream: optional_text(fields, "stream")?,
        handle: optional_text(fields, "handle")?,
        wait_ms: duration(fields, "ms", 1.0)?,
        timeout_ms: duration(fields, "timeout_s", 1000.0)?,
        tolerated: tolerated(fields)?,
        expected: expectation(fields, "expect")?,
        alternative: expectation(fields, "expect_alt")?,
        op,
    };
    let needs_wait = matches!(&step.op[..], "sleep" | "watch_idle" | "observe_idle");
    let needs = [
        ("stream", *needs_stream && step.stream.is_none()),
        ("handle", *needs_handle && step.handle.is_none()),
        ("ms", needs_wait && step.wait_ms.is_none()),
        ("expect", step.op != "sleep" && step.expected.is_none()),
    ];
    match needs.iter().find(|(_, missing)| *missing) {
        Some((field, _)) => wrong(format!(", field {field}"), "is missing"),
        None => Ok(step),
    }
}

fn text(fields: &Map<String, Value>, field: &str, place: &str) -> Read<String> {
    match fields.get(field) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => wrong(format!("{place}, field {field}"), "not a string"),
        None => wrong(format!("{place}, field {field}"), "is missing"),
    }
}

fn optional_text(fields: &Map<String, Value>, field: &str) -> Read<Option<String>> {
    match fields.contains_key(field) {
        true => text(fields, field, "").map(Some),
        false => Ok(None),
    }
}

fn list<'a>(
    fields: &'a Map<String, Value>,
    field: &str,
    items_max: usize,
) -> Result<&'a [Value], String> {
    match fields.get(field) {
        Some(Value::Array(items)) if items.is_empty() => Err("is empty".to_owned()),
        Some(Value::Array(items)) if items.len() > items_max => {
            Err(format!("has {} entries, at most {items_max}", items.len()))
        }
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err("not a list".to_owned()),
        None => Err("is missing".to_owned()),
    }
}

fn duration(fields: &Map<String, Value>, field: &str, unit_ms: f64) -> Read<Option<u64>> {
    let Some(value) = fields.get(field) else { return Ok(None) };
    match value.as_f64().map(|number| number * unit_ms) {
        Some(ms) if (0.0..=WAIT_MS_MAX).contains(&ms) => Ok(Some(ms.round() as u64)),
        _ => wrong(format!(", field {field}"), format!("{value} is no time of up to an hour")),
    }
}

fn tolerated(fields: &Map<String, Value>) -> Read<Vec<String>> {
    let Some(value) = fields.get("tol") else { return Ok(Vec::new()) };
    let names = value.as_array().and_then(|names| {
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    names.map_or_else(|| wrong(", field tol", "not a list of field names"), Ok)
}

fn expectation(fields: &Map<String, Value>, field: &str) -> Read<Option<Value>> {
    let Some(value) = fields.get(field) else { return Ok(None) };
    let place = || format!(", field {field}");
    match value {
        Value::Null => return Ok(None),
        Value::String(word) if WORDS.contains(&&word[..]) => {}
        Value::Object(object) if object.len() == 1 => match object.iter().next() {
            Some((kind, Value::Object(_))) if kind == "ok" => {}
            Some((kind, Value::String(_))) if kind == "server_crash" => {}
            Some((kind, Value::Object(error))) if kind == "error" => {
                for (part, wanted, fits) in ERROR_PARTS {
                    let what = match error.get(*part) {
                        None => "is missing".to_owned(),
                        Some(value) if !fits(value) => format!("is {value}, which is no {wanted}"),
                        Some(_) => continue,
                    };
                    return wrong(format!("{}.error.{part}", place()), what);
                }
            }
            _ => return wrong(place(), "neither ok, nor error, nor server_crash"),
        },
        _ => return wrong(place(), format!("is no answer and none of {}", WORDS.join(", "))),
    }
    Ok(Some(value.clone()))
}
