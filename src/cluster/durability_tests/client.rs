//! The clients of the durability test, and what their answers prove.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use madsim::task::JoinHandle;

use super::node;
use crate::{
    history::OpKind,
    seed::{Seed, Stream},
    storage::{Client, ClientOptions, Definiteness, Request},
    time::sleep,
};

const URL: &str = "http://10.0.0.9:8080";
/// The mark of a request that had been answered before.
pub(super) const RESEND: u64 = 77;
/// How long the clients go on after the last death.
const ROUNDS: u64 = 40;

/// What answers have proved so far about the shared domain.
#[derive(Default)]
pub(super) struct Evidence(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The greatest token that some answer showed the mark to have reached.
    mark: i64,
    /// The greatest version that some answer showed to be stored.
    version: i64,
    /// The greatest token that was given out.
    issued: i64,
    written: u64,
    refused: u64,
    violation: Option<String>,
}

impl Evidence {
    pub(super) fn violation(&self) -> Option<String> {
        self.0.lock().unwrap().violation.clone()
    }

    pub(super) fn counts(&self) -> (u64, u64) {
        let known = self.0.lock().unwrap();
        (known.written, known.refused)
    }

    fn violated(&self, what: String) {
        self.0.lock().unwrap().violation.get_or_insert(what);
    }
}

/// The clients at work.
pub(super) struct Clients(Vec<JoinHandle<()>>);

impl Clients {
    pub(super) fn start(seed: u64, count: u8, evidence: &Arc<Evidence>) -> Self {
        let start = |number: u8| {
            let node = node(&format!("client-{number}"), &format!("10.0.0.{number}"));
            let stream = Seed(seed).stream(&format!("client {number}"));
            let evidence = evidence.clone();
            let options = ClientOptions {
                attempt_timeout: Duration::from_millis(200),
                give_up_after: Duration::from_secs(10),
                retry_pause: Duration::from_millis(5),
            };
            node.spawn(async move {
                let client = Client::new(URL, options).unwrap();
                let domain = format!("own {number}");
                let mut work = Work { client, domain, evidence, stream, own: Vec::new() };
                for round in 1..=ROUNDS {
                    work.own_round(i64::try_from(round).unwrap()).await;
                    for _ in 0..3 {
                        work.shared_round().await;
                    }
                }
            })
        };
        Clients((1..=count).map(start).collect())
    }

    pub(super) async fn finish(self) {
        for client in self.0 {
            client.await.unwrap();
        }
    }
}

struct Work {
    client: Client,
    domain: String,
    evidence: Arc<Evidence>,
    stream: Stream,
    /// What the client's own key may hold: one value, or two after an unknown outcome.
    own: Vec<Option<String>>,
}

impl Work {
    /// Enters with a new token, looks whether all is as it was left, and writes; then an earlier
    /// token must be stale, and the write that was answered must be known when it comes again.
    async fn own_round(&mut self, token: i64) {
        if self.own.is_empty() {
            self.own.push(None);
        }
        let val = format!("value {token}");
        let mut holding = self.client.holding(self.domain.clone(), token);
        match holding.enter("k", None).await {
            Ok(found) if self.own.contains(&found) => self.own = vec![found],
            Ok(found) => {
                let (domain, own) = (&self.domain, &self.own);
                self.evidence.violated(format!("{domain}: {found:?} instead of {own:?}"));
            }
            Err(error) => return self.unsuccessful(&error.to_string(), error.definiteness()),
        }
        match holding.write("k", &val, None).await {
            Ok(()) => self.own = vec![Some(val.clone())],
            Err(error) => {
                self.own.push(Some(val));
                return self.unsuccessful(&error.to_string(), error.definiteness());
            }
        }
        self.evidence.0.lock().unwrap().written += 1;
        let stale = Request::write("k", "stale", token - 1);
        let stale = Request { domain: self.domain.clone(), ..stale };
        if token > 1
            && let Ok(answer) = self.client.call(&stale).await
            && answer.err.is_empty()
        {
            self.evidence.violated(format!("{}: {stale:?} was accepted", self.domain));
        }
        self.resend(token, &val).await;
    }

    fn unsuccessful(&self, error: &str, definiteness: Definiteness) {
        if definiteness == Definiteness::Definite && !error.starts_with("cannot reach") {
            self.evidence.violated(format!("{}: {error}", self.domain));
        }
    }

    /// Sends the client's last write again, under its own number.
    async fn resend(&mut self, token: i64, val: &str) {
        let seq = self.client.last_seq();
        let request = Request::write("k", val, token);
        let request = Request { domain: self.domain.clone(), seq: Some(seq), ..request };
        if let Ok(answer) = self.client.call_tagged(&request, Some(RESEND)).await
            && answer.val != val
        {
            self.evidence.violated(format!("{request:?} was answered {answer:?}"));
        }
    }

    /// A request in the domain that all share, with a token that is new or old.
    async fn shared_round(&mut self) {
        let request = self.shared_request();
        let (mark, version) = {
            let known = self.evidence.0.lock().unwrap();
            (known.mark, known.version)
        };
        let Ok(answer) = self.client.call(&request).await else {
            return sleep(Duration::from_millis(5)).await;
        };
        let token = request.version.unwrap_or(0);
        let mut known = self.evidence.0.lock().unwrap();
        if let Some(shown) = shown_mark(&answer.err) {
            known.refused += 1;
            known.mark = known.mark.max(shown);
            return;
        }
        let what = if token > 0 && token < mark {
            Some(format!("{request:?} passed a mark that was {mark}: {answer:?}"))
        } else if answer.version.max(0) < version && (request.op == OpKind::Read || token == 0) {
            Some(format!("{request:?} found {answer:?} after version {version} had been seen"))
        } else {
            None
        };
        if let Some(what) = what {
            known.violation.get_or_insert(what);
        }
        known.mark = known.mark.max(token);
        known.version = known.version.max(answer.version);
        known.written += u64::from(request.op == OpKind::Write);
    }

    fn shared_request(&mut self) -> Request {
        let mut known = self.evidence.0.lock().unwrap();
        let token = if self.stream.chance(500) {
            known.issued += 1;
            known.issued
        } else {
            (known.issued - self.stream.between(0, 3) as i64).max(1)
        };
        known.issued = known.issued.max(token);
        let request = match self.stream.below(3) {
            0 => Request::write("k", format!("value {token}"), token),
            1 => Request { version: Some(token), ..Request::read("k") },
            _ => Request::read("k"),
        };
        Request { domain: "shared".to_owned(), ..request }
    }
}

/// The mark that a refusal names.
fn shown_mark(err: &str) -> Option<i64> {
    let (_, rest) = err.split_once("below the highest version (")?;
    rest.split_once(')')?.0.parse().ok()
}
