//! Walks the steps of a recorded case. What each step does is in the recordings' SCHEMA.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    ask::{Ask, Asked},
    door::Door,
    value,
};

/// A call that was started has had its effect after this long.
const STARTED: Duration = Duration::from_millis(150);
/// A call that still waits after this long is blocked.
const BLOCKED: Duration = Duration::from_millis(250);
/// A cancelled call has had its effect after this long.
const CANCELLED: Duration = Duration::from_millis(300);

/// What driving a case came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All answers are the recorded ones.
    Passed,
    /// The client's API cannot express a step: the operation, and why.
    LeftOut { op: String, reason: &'static str },
    /// An answer is another one.
    Failed { step: usize, op: String, expected: Value, answer: Value },
}

/// Whether the API can express every step; if not, which operation it cannot, and why.
pub fn expressible<D: Door>(case: &Value) -> Result<(), (String, &'static str)> {
    for step in steps(case) {
        let op = text(&step["op"]);
        let left_out = |reason| (op.clone(), reason);
        if step["expect"].get("server_crash").is_some() {
            return Err(left_out("it killed the real server"));
        }
        if step.get("args").is_some() && !matches!(op.as_str(), "sleep" | "pending" | "await") {
            // Names of leases are not known yet; any id shows whether there is a call for it.
            let args = value::canonical(&step["args"], &[1; 9]);
            D::request(&Ask { op: op.clone(), args, base: 1 }).map_err(left_out)?;
        }
    }
    Ok(())
}

/// Drives a case against a fresh server; `slack_s` is how much time to live may be missing.
pub async fn drive<D: Door>(door: &D, case: &Value, base: i64, slack_s: i64) -> Outcome {
    if let Err((op, reason)) = expressible::<D>(case) {
        return Outcome::LeftOut { op, reason };
    }
    let mut run = Run::new(door.clone(), base);
    for (index, step) in steps(case).iter().enumerate() {
        let answer = match run.step(step).await {
            Ok(answer) => answer,
            Err(reason) => return Outcome::LeftOut { op: text(&step["op"]), reason },
        };
        let accepted = [step.get("expect"), step.get("expect_alt")];
        let mut accepted = accepted.into_iter().flatten().map(|expected| run.form(expected));
        let (expected, answer) = (run.form(&step["expect"]), run.form(&answer));
        let same = |expected: &Value| {
            let expected = if is_gone(&answer) { gone_if_so(expected) } else { expected.clone() };
            value::equal(&expected, &answer, &step["tol"], slack_s)
        };
        if !(step.get("expect").is_none() || accepted.any(|expected| same(&expected))) {
            return Outcome::Failed { step: index, op: text(&step["op"]), expected, answer };
        }
    }
    Outcome::Passed
}

/// A renewal of a lease that is gone: clients make an error of it and hide the rest.
pub fn gone() -> Value {
    json!({ "ok": { "TTL": 0 } })
}

fn is_gone(answer: &Value) -> bool {
    *answer == gone()
}

fn gone_if_so(expected: &Value) -> Value {
    if expected["ok"]["TTL"] == json!(0) { gone() } else { expected.clone() }
}

fn steps(case: &Value) -> &[Value] {
    case["steps"].as_array().expect("steps")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A case under way.
pub struct Run<D: Door> {
    door: D,
    base: i64,
    /// Lease ids that the server chose, in order: `L1`, `L2` …
    chosen: Vec<i64>,
    streams: BTreeMap<String, D::Stream>,
    calls: BTreeMap<String, (Ask, JoinHandle<Value>)>,
}

impl<D: Door> Run<D> {
    /// Nothing has been asked yet; the server is at revision `base`.
    pub fn new(door: D, base: i64) -> Self {
        Run { door, base, chosen: Vec::new(), streams: BTreeMap::new(), calls: BTreeMap::new() }
    }

    fn form(&self, value: &Value) -> Value {
        value::sort_keys(value::without(&value::canonical(value, &self.chosen), D::HIDDEN))
    }

    /// Does one step and gives its answer; null where a step has none.
    pub async fn step(&mut self, step: &Value) -> Asked<Value> {
        let millis = |field: &str| Duration::from_millis(step[field].as_u64().unwrap_or(0));
        let seconds =
            |default: f64| Duration::from_secs_f64(step["timeout_s"].as_f64().unwrap_or(default));
        let handle = text(&step["handle"]);
        match step["op"].as_str().expect("an operation") {
            "sleep" => {
                D::sleep(millis("ms")).await;
                Ok(Value::Null)
            }
            "watch_idle" | "observe_idle" => {
                Ok(self.next(step, millis("ms")).await.unwrap_or_else(|| json!("idle")))
            }
            "watch_next" | "observe_next" => {
                Ok(self.next(step, seconds(4.0)).await.unwrap_or_else(|| json!("none")))
            }
            "pending" => {
                D::sleep(BLOCKED).await;
                let done = self.calls[&handle].1.is_finished();
                Ok(json!(if done { "done" } else { "blocked" }))
            }
            "await" => Ok(self.finish(&handle, seconds(6.0)).await),
            "cancel" => {
                let (_, call) = self.calls.remove(&handle).expect("a call was started");
                call.abort();
                drop(call);
                D::sleep(CANCELLED).await;
                Ok(json!("cancelled"))
            }
            op if step.get("stream").is_some() => self.on_stream(op, step).await,
            op => self.unary(op, step, handle).await,
        }
    }

    fn ask(&self, op: &str, step: &Value) -> Ask {
        let args = value::canonical(&step["args"], &self.chosen);
        Ask { op: op.to_owned(), args, base: self.base }
    }

    async fn unary(&mut self, op: &str, step: &Value, handle: String) -> Asked<Value> {
        let ask = self.ask(op, step);
        let request = D::request(&ask)?;
        let (door, base) = (self.door.clone(), self.base);
        if handle.is_empty() {
            let answer = door.call(request, base).await;
            self.note_choice(&ask, &answer);
            return Ok(answer);
        }
        let call = tokio::spawn(async move { door.call(request, base).await });
        self.calls.insert(handle, (ask, call));
        D::sleep(STARTED).await;
        Ok(json!("started"))
    }

    async fn finish(&mut self, handle: &str, patience: Duration) -> Value {
        let (ask, call) = self.calls.get_mut(handle).expect("a call was started");
        let Some(ended) = D::within(patience, call).await else { return json!("blocked") };
        let ask = ask.clone();
        self.calls.remove(handle);
        match ended {
            Ok(answer) => {
                self.note_choice(&ask, &answer);
                answer
            }
            Err(error) => json!(format!("the call ended: {error}")),
        }
    }

    /// The server chooses an id where none is given.
    fn note_choice(&mut self, ask: &Ask, answer: &Value) {
        let ok = &answer["ok"];
        let id = match ask.op.as_str() {
            "lease_grant" if ask.int("ID") == 0 => ok["ID"].as_i64(),
            "campaign" if ask.int("lease") == 0 => ok["leader"]["lease"].as_i64(),
            "lock" if ask.int("lease") == 0 => {
                let hex = ok["key"].as_str().and_then(|key| key.rsplit('/').next());
                hex.and_then(|hex| i64::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        self.chosen.extend(id);
    }

    async fn on_stream(&mut self, op: &str, step: &Value) -> Asked<Value> {
        let name = text(&step["stream"]);
        let request = D::request(&self.ask(op, step))?;
        let sent = match self.streams.get_mut(&name) {
            Some(stream) => D::send(stream, request).await,
            None => self.door.open(request, self.base).await.map(|stream| {
                self.streams.insert(name, stream);
            }),
        };
        Ok(match sent {
            Err(error) => error,
            Ok(()) if op == "observe_open" => json!("started"),
            Ok(()) => {
                let patience = Duration::from_secs(4);
                self.next(step, patience).await.unwrap_or_else(|| json!("none"))
            }
        })
    }

    async fn next(&mut self, step: &Value, patience: Duration) -> Option<Value> {
        let stream = self.streams.get_mut(step["stream"].as_str()?).expect("an open stream");
        D::within(patience, D::next(stream, self.base)).await
    }
}
