//! Replays recordings of real etcd servers against the model: every answer must be the recorded
//! one.
//!
//! The recordings are in `sim-tests/conformance`. Each case ran against a fresh server; revisions
//! are relative to its first. Left out are the few steps that the facade's types cannot express (an
//! unknown enumeration value, an empty operation) and what the table in `etcd/mod.rs` calls not
//! modelled (message size limits, fragments); they are counted, so that the gap cannot grow unseen.

mod answer;
mod ask;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use crate::history::{LeaseChange, LeaseEvent};

use super::{Answer, Identity, Model, Output, request::Request, version::EtcdVersion};

/// How often a member looks for expired leases.
const TICK: Duration = Duration::from_millis(500);

/// What replaying a case came to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed(usize),
    /// It cannot be expressed, and why.
    LeftOut(&'static str),
}

/// One case under way.
struct Replay {
    model: Model,
    base: i64,
    now: Duration,
    next_tick: Duration,
    /// Lease ids that the server chose, in order: `L1`, `L2` …
    chosen: Vec<i64>,
    streams: Vec<String>,
    messages: BTreeMap<u64, VecDeque<Answer>>,
}

impl Replay {
    fn new(version: EtcdVersion, case: &Value) -> Self {
        let identity = Identity {
            cluster_id: 1,
            member_id: 1,
            name: "default".to_owned(),
            client_url: "http://10.0.0.1:2379".to_owned(),
            version,
        };
        let mut model = Model::new(identity);
        let now = Duration::from_secs(10);
        model.start(now, 1_000_000, Duration::ZERO);
        Replay {
            model,
            base: case["base_revision"].as_i64().expect("a revision"),
            now,
            // Just after a tick, so that expiry comes late within its half second.
            next_tick: now + TICK,
            chosen: Vec::new(),
            streams: Vec::new(),
            messages: BTreeMap::new(),
        }
    }

    fn run(&mut self, case: &Value) -> Outcome {
        let steps = case["steps"].as_array().expect("steps");
        for (index, step) in steps.iter().enumerate() {
            let expected = &step["expect"];
            if expected.get("server_crash").is_some() {
                return Outcome::LeftOut("it killed the real server");
            }
            if expected["ok"]["fragment"] == json!(true) {
                return Outcome::LeftOut("fragments");
            }
            let answer = match self.step(step) {
                Ok(answer) => answer,
                Err(reason) => return Outcome::LeftOut(reason),
            };
            let accepted = [Some(expected), step.get("expect_alt")];
            let same = accepted.into_iter().flatten().any(|expected| {
                let expected = answer::canonical(expected, &self.chosen);
                answer::tolerate(&expected, step) == answer::tolerate(&answer, step)
                    && answer::within_tolerance(&expected, &answer, step)
            });
            assert!(
                same,
                "case {}, step {index}: {}\nexpected {expected}\n  answer {answer}",
                case["name"], step
            );
        }
        Outcome::Passed(steps.len())
    }

    fn step(&mut self, step: &Value) -> Result<Value, &'static str> {
        self.advance(Duration::from_millis(1));
        let millis = |field: &str| Duration::from_millis(step[field].as_u64().unwrap_or(0));
        let stream = step["stream"].as_str().or(step["handle"].as_str());
        let stream = stream.map(|name| self.stream(name));
        match step["op"].as_str().expect("an operation") {
            "sleep" => {
                self.advance(millis("ms"));
                Ok(Value::Null)
            }
            "cancel" => {
                self.model.handle(self.now, (1, stream.expect("a handle")), Request::Cancel);
                self.deliver();
                Ok(json!("cancelled"))
            }
            "pending" => {
                self.advance(Duration::from_millis(250));
                let blocked = self.is_quiet(stream.expect("a handle"));
                Ok(json!(if blocked { "blocked" } else { "done" }))
            }
            "watch_idle" | "observe_idle" => {
                self.advance(millis("ms"));
                let came = self.next_message(stream.expect("a stream"));
                Ok(came.unwrap_or_else(|| json!("idle")))
            }
            "watch_next" | "observe_next" | "await" => {
                let patience = Duration::from_secs_f64(step["timeout_s"].as_f64().unwrap_or(4.0));
                let until = self.now + patience;
                while self.is_quiet(stream.expect("a stream")) && self.now < until {
                    self.advance(TICK.min(until - self.now));
                }
                let none = if step["op"] == "await" { "blocked" } else { "none" };
                Ok(self.next_message(stream.expect("a stream")).unwrap_or_else(|| json!(none)))
            }
            operation => {
                let server_chooses = step["args"]["ID"].as_i64().unwrap_or(0) == 0;
                let request = ask::request(operation, &step["args"], self.base, &self.chosen)?;
                let stream = stream.unwrap_or(0);
                let answer = self.model.handle(self.now, (1, stream), request);
                let granted = self.deliver();
                if server_chooses {
                    self.chosen.extend(granted);
                }
                if step["expect"] == json!("started") {
                    self.messages.entry(stream).or_default().extend(answer);
                    return Ok(json!("started"));
                }
                let Some(answer) = answer else {
                    return Ok(self.next_message(stream).unwrap_or_else(|| json!("none")));
                };
                Ok(self.show(&answer))
            }
        }
    }

    fn show(&self, answer: &Answer) -> Value {
        match answer {
            Ok(response) => json!({ "ok": answer::response(response, self.base) }),
            Err(refusal) => answer::refusal(*refusal),
        }
    }

    fn stream(&mut self, name: &str) -> u64 {
        let known = self.streams.iter().position(|other| other == name);
        let index = known.unwrap_or_else(|| {
            self.streams.push(name.to_owned());
            self.streams.len() - 1
        });
        index as u64 + 1
    }

    fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        while self.next_tick <= until {
            self.now = self.next_tick;
            self.next_tick += TICK;
            self.model.expire(self.now);
            self.deliver();
        }
        self.now = until;
    }

    /// Hands out what was sent; gives the leases that were granted.
    fn deliver(&mut self) -> Vec<i64> {
        let mut granted = Vec::new();
        for output in self.model.take_outputs() {
            let (stream, answer) = match output {
                Output::Message((_, stream), response) => (stream, Ok(response)),
                Output::Answer((_, stream), answer) => (stream, answer),
                Output::Lease(LeaseEvent {
                    lease, change: LeaseChange::Granted { .. }, ..
                }) => {
                    granted.push(lease);
                    continue;
                }
                _ => continue,
            };
            self.messages.entry(stream).or_default().push_back(answer);
        }
        granted
    }

    fn is_quiet(&self, stream: u64) -> bool {
        self.messages.get(&stream).is_none_or(VecDeque::is_empty)
    }

    fn next_message(&mut self, stream: u64) -> Option<Value> {
        let message = self.messages.get_mut(&stream)?.pop_front()?;
        Some(self.show(&message))
    }
}

/// Replays an area; gives the steps that passed and the names of the cases left out.
fn replay(version: EtcdVersion, area: &str) -> (usize, Vec<String>) {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/sim-tests/conformance/etcd-{version}/{area}.json");
    let text = std::fs::read_to_string(&path).expect("the recording is in the repository");
    let recording: Value = serde_json::from_str(&text).expect("the recording is JSON");
    let (mut passed, mut left_out) = (0, Vec::new());
    for case in recording["cases"].as_array().expect("cases") {
        match Replay::new(version, case).run(case) {
            Outcome::Passed(steps) => passed += steps,
            Outcome::LeftOut(reason) => {
                left_out.push(format!("{}: {reason}", case["name"].as_str().unwrap_or("?")));
            }
        }
    }
    (passed, left_out)
}

macro_rules! areas {
    ($version:ident: $($test:ident $area:ident: $left_out:expr;)*) => {
        $(
            /// The model answers this area as the real server did, apart from so many cases left
            /// out.
            #[test]
            fn $test() {
                let (passed, left_out) = replay(EtcdVersion::$version, stringify!($area));
                assert!(passed > 0);
                assert_eq!(left_out.len(), $left_out, "{left_out:#?}");
            }
        )*
    };
}

areas! {
    V3_5:
    client_sequences client_sequences: 0;
    compaction compaction: 0;
    election election: 0;
    kv_basic kv_basic: 1;
    kv_range kv_range: 1;
    lease lease: 0;
    lock lock: 0;
    random random: 0;
    txn txn: 1;
    txn_compare txn_compare: 0;
    watch watch: 1;
}

areas! {
    V3_4:
    election_3_4 election: 0;
    lock_3_4 lock: 0;
}
