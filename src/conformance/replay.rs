//! One recorded case, replayed: the clock moves as it moved for the recorder.
//!
//! Every call and every stream has a number, as over a connection. What the model sends is kept by
//! number until a step asks for it, so a message that came unasked is seen by the next step that
//! reads the stream or expects it to be idle.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    etcd::model::{
        Identity, Model, Output, error::Refusal, request::Request, response::Response,
        version::EtcdVersion,
    },
    history::LeaseChange,
};

use super::{
    answer, ask,
    compare::{Difference, difference},
    lease::ChosenLeases,
    recording::{Case, Step},
};

/// How often a member looks for expired leases.
const TICK: Duration = Duration::from_millis(500);
/// A step takes some time even of a server without latency, so that a time left is cut off.
const STEP: Duration = Duration::from_millis(1);
/// How long the recorder waited: for a message of a stream and for the answer of a call at most,
/// after a call was started or cancelled, and before it looked whether one is blocked.
const MESSAGE_TIMEOUT_MS: u64 = 4000;
const CALL_TIMEOUT_MS: u64 = 6000;
const STARTED: Duration = Duration::from_millis(150);
const CANCELLED: Duration = Duration::from_millis(300);
const PENDING: Duration = Duration::from_millis(250);
/// All of a case is one connection.
const CONNECTION: u64 = 1;

/// The step of a case at which the model parted from the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The number of the step, from 1 on.
    pub step: usize,
    /// Its operation.
    pub op: String,
    /// How they parted.
    pub cause: Cause,
}

/// How the model parted from a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The answer was another.
    Differs(Difference),
    /// The step asks what is not known here; the text says what.
    NotAsked(String),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} ({}): ", self.step, self.op)?;
        match &self.cause {
            Cause::Differs(difference) => write!(f, "{difference}"),
            Cause::NotAsked(what) => write!(f, "cannot be asked: {what}"),
        }
    }
}

/// Replays a case against a fresh model that behaves as this version.
///
/// # Errors
/// The first step at which the model parted from the recording.
pub fn replay_case(case: &Case, version: EtcdVersion) -> Result<(), Mismatch> {
    let mut replay = Replay::new(version);
    for (index, step) in case.steps.iter().enumerate() {
        let part = |cause| Mismatch { step: index + 1, op: step.op.clone(), cause };
        let got = replay.step(step).map_err(|what| part(Cause::NotAsked(what)))?;
        let Some(expected) = &step.expected else { continue };
        let Some(first) = replay.difference(step, expected, &got) else { continue };
        let alternative = step.alternative.as_ref();
        if alternative.is_none_or(|other| replay.difference(step, other, &got).is_some()) {
            return Err(part(Cause::Differs(first)));
        }
    }
    Ok(())
}

type Answer = Result<Response, Refusal>;

/// One case under way.
struct Replay {
    model: Model,
    now: Duration,
    next_tick: Duration,
    chosen: ChosenLeases,
    /// Whether the request under way lets the server choose the lease.
    is_choosing: bool,
    /// The numbers of named streams and calls.
    streams: BTreeMap<String, u64>,
    calls: BTreeMap<String, u64>,
    /// Calls whose answer an `await` has taken.
    answered: BTreeSet<u64>,
    next_number: u64,
    arrived: BTreeMap<u64, VecDeque<Answer>>,
}

impl Replay {
    fn new(version: EtcdVersion) -> Self {
        let mut model = Model::new(Identity { version, ..Identity::default() });
        let now = Duration::from_secs(10);
        model.start(now, 1_000_000, Duration::ZERO);
        Replay {
            model,
            now,
            // Just after a tick, so that expiry comes late within its half second.
            next_tick: now + TICK,
            chosen: ChosenLeases::default(),
            is_choosing: false,
            streams: BTreeMap::new(),
            calls: BTreeMap::new(),
            answered: BTreeSet::new(),
            next_number: 1,
            arrived: BTreeMap::new(),
        }
    }

    fn difference(&self, step: &Step, expected: &Value, got: &Value) -> Option<Difference> {
        let expected = match expected.get("server_crash") {
            Some(_) => answer::instead_of_a_crash(),
            None => self.chosen.canonical("", expected),
        };
        if step.op == "lease_time_to_live" {
            return difference(step, &with_sorted_keys(&expected), &with_sorted_keys(got));
        }
        difference(step, &expected, got)
    }

    /// Does a step and gives what came of it, in the form of the recordings.
    fn step(&mut self, step: &Step) -> Result<Value, String> {
        self.advance(STEP);
        let wait = Duration::from_millis(step.wait_ms.unwrap_or(0));
        match &step.op[..] {
            "sleep" => {
                self.advance(wait);
                Ok(Value::Null)
            }
            "watch_idle" | "observe_idle" => {
                let number = self.known_stream(step)?;
                self.advance(wait);
                Ok(self.take(number).unwrap_or_else(|| json!("idle")))
            }
            "watch_next" | "observe_next" => {
                let number = self.known_stream(step)?;
                Ok(self.wait_for(number, step, MESSAGE_TIMEOUT_MS).unwrap_or_else(|| json!("none")))
            }
            "pending" => {
                let number = self.known_call(step)?;
                self.advance(PENDING);
                let open = self.is_quiet(number) && !self.answered.contains(&number);
                Ok(json!(if open { "blocked" } else { "done" }))
            }
            "await" => {
                let number = self.known_call(step)?;
                if self.answered.contains(&number) {
                    return Err("an earlier step has taken the answer of this call".to_owned());
                }
                let answer = self.wait_for(number, step, CALL_TIMEOUT_MS);
                if answer.is_some() {
                    self.answered.insert(number);
                }
                Ok(answer.unwrap_or_else(|| json!("blocked")))
            }
            "cancel" => {
                let number = self.known_call(step)?;
                self.send(number, Request::Cancel);
                self.arrived.remove(&number);
                self.advance(CANCELLED);
                Ok(json!("cancelled"))
            }
            _ => self.ask(step),
        }
    }

    /// Sends the request of a step, and reads its answer if the recorder did.
    fn ask(&mut self, step: &Step) -> Result<Value, String> {
        let request = ask::request(&step.op, &step.args, &self.chosen)?;
        let request = request.ok_or_else(|| "the operation is not known".to_owned())?;
        self.is_choosing = chooses_lease(step);
        let number = match (&step.stream, &step.handle) {
            (Some(name), _) => self.named_stream(name),
            (None, Some(name)) => {
                let number = self.number();
                self.calls.insert(name.clone(), number);
                number
            }
            (None, None) => self.number(),
        };
        self.send(number, request);
        if step.op == "observe_open" {
            return Ok(json!("started"));
        }
        if step.handle.is_some() {
            self.advance(STARTED);
            return Ok(json!("started"));
        }
        let (timeout_ms, silence) = match step.stream {
            Some(_) => (MESSAGE_TIMEOUT_MS, "none"),
            None => (CALL_TIMEOUT_MS, "blocked"),
        };
        let got = self.wait_for(number, step, timeout_ms).unwrap_or_else(|| json!(silence));
        if step.op == "lease_keepalive" {
            self.send(number, Request::CloseStream);
        }
        Ok(got)
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// A stream is opened by the first request on it.
    fn named_stream(&mut self, name: &str) -> u64 {
        if let Some(number) = self.streams.get(name) {
            return *number;
        }
        let number = self.number();
        self.streams.insert(name.to_owned(), number);
        number
    }

    fn known_stream(&self, step: &Step) -> Result<u64, String> {
        let name = step.stream.as_deref().unwrap_or_default();
        self.streams.get(name).copied().ok_or_else(|| format!("no stream {name:?} was opened"))
    }

    fn known_call(&self, step: &Step) -> Result<u64, String> {
        let name = step.handle.as_deref().unwrap_or_default();
        self.calls.get(name).copied().ok_or_else(|| format!("no call {name:?} was started"))
    }

    fn send(&mut self, number: u64, request: Request) {
        let answer = self.model.handle(self.now, (CONNECTION, number), request);
        self.receive();
        self.is_choosing = false;
        match answer {
            Some(Ok(Response::StreamEnd)) | None => {}
            Some(answer) => self.arrived.entry(number).or_default().push_back(answer),
        }
    }

    fn receive(&mut self) {
        for output in self.model.take_outputs() {
            match output {
                Output::Message((_, number), response) => {
                    self.arrived.entry(number).or_default().push_back(Ok(response));
                }
                Output::Answer((_, number), answer) => {
                    self.arrived.entry(number).or_default().push_back(answer);
                }
                Output::Lease(event) => {
                    if self.is_choosing && matches!(event.change, LeaseChange::Granted { .. }) {
                        self.chosen.push(event.lease);
                    }
                }
                Output::Commit(_) => {}
            }
        }
    }

    fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while self.next_tick <= until {
            self.now = self.next_tick;
            self.next_tick += TICK;
            self.model.expire(self.now);
            self.receive();
        }
        self.now = until;
    }

    fn is_quiet(&self, number: u64) -> bool {
        self.arrived.get(&number).is_none_or(VecDeque::is_empty)
    }

    fn take(&mut self, number: u64) -> Option<Value> {
        let answer = self.arrived.get_mut(&number)?.pop_front()?;
        Some(match answer {
            Ok(response) => answer::response(&response),
            Err(refusal) => answer::refusal(refusal),
        })
    }

    /// The next thing that comes, if it comes in time.
    fn wait_for(&mut self, number: u64, step: &Step, timeout_ms: u64) -> Option<Value> {
        let until = self.now + Duration::from_millis(step.timeout_ms.unwrap_or(timeout_ms));
        while self.is_quiet(number) && self.now < until {
            self.advance((self.next_tick - self.now).min(until - self.now));
        }
        self.take(number)
    }
}

/// The keys of a lease are a set: a real server lists them in any order.
fn with_sorted_keys(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(keys) = answer.pointer_mut("/ok/keys").and_then(Value::as_array_mut) {
        keys.sort_by_key(Value::to_string);
    }
    answer
}

/// Whether the request names no lease, so that the server chooses one.
fn chooses_lease(step: &Step) -> bool {
    let field = match &step.op[..] {
        "lease_grant" => "ID",
        "lock" | "campaign" => "lease",
        _ => return false,
    };
    step.args.get(field).is_none_or(|id| id.as_i64() == Some(0))
}
