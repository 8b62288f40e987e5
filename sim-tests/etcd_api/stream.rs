//! Streams: watches, and observed elections.

use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
};

use super::{
    super::api::{Client, Error, WatchStream},
    answer,
    request::Request,
};

/// An open stream.
pub enum Stream {
    Watch(Box<WatchStream>),
    Observe(Observed),
}

/// A task reads the observed election: opening it takes until there is a leader.
pub struct Observed {
    messages: UnboundedReceiver<Value>,
    task: JoinHandle<()>,
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub async fn open(mut client: Client, request: Request, base: i64) -> Result<Stream, Error> {
    match request {
        Request::Watch(key, options) => {
            let stream = client.watch_client().watch(key, Some(options)).await?;
            Ok(Stream::Watch(Box::new(stream)))
        }
        Request::Observe(name) => {
            let (sender, messages) = unbounded_channel();
            let task = tokio::spawn(async move {
                if let Err(error) = observe(&mut client, name, base, &sender).await {
                    // Nobody may be listening any more.
                    let _ = sender.send(answer::error(&error));
                }
            });
            Ok(Stream::Observe(Observed { messages, task }))
        }
        _ => Err(Error::InvalidArgs("no stream begins with this request".to_owned())),
    }
}

async fn observe(
    client: &mut Client,
    name: Vec<u8>,
    base: i64,
    sender: &UnboundedSender<Value>,
) -> Result<(), Error> {
    let mut stream = client.election_client().observe(name).await?;
    while let Some(response) = stream.message().await? {
        let kv = response.kv().map(|kv| answer::pair(kv, base));
        let answer = answer::of(response.header(), base).message("kv", kv).value();
        let _ = sender.send(json!({ "ok": answer }));
    }
    Ok(())
}

impl Stream {
    pub async fn send(&mut self, request: Request) -> Result<(), Error> {
        match (self, request) {
            (Stream::Watch(stream), Request::Watch(key, options)) => {
                stream.watch(key, Some(options)).await
            }
            (Stream::Watch(stream), Request::WatchCancel(id)) => stream.cancel(id).await,
            (Stream::Watch(stream), Request::WatchProgress) => stream.request_progress().await,
            _ => Err(Error::InvalidArgs("the stream does not take this request".to_owned())),
        }
    }

    pub async fn next(&mut self, base: i64) -> Value {
        let ended = json!("ended");
        match self {
            Stream::Watch(stream) => match stream.message().await {
                Ok(Some(response)) => json!({ "ok": answer::watch(&response, base) }),
                Ok(None) => ended,
                Err(error) => answer::error(&error),
            },
            Stream::Observe(observed) => observed.messages.recv().await.unwrap_or(ended),
        }
    }
}
