//! The storage's client: one operation at a time, resent under the same number until its outcome is
//! definite or it is given up (D7).
//!
//! A time-out proves nothing: the request may be on its way. So all attempts of an operation carry
//! one request number, and nothing else is issued under that token before the outcome is known.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    connection::{Broken, Connection, Progress},
    error::{self, Definiteness, StorageError},
    protocol::{Request, Response},
};
use crate::{
    history::OpKind,
    time::{self, Instant},
};

/// How patient a client is. All times are on its own clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long one attempt may take, connecting included.
    pub attempt_timeout: Duration,
    /// From the first attempt until the operation is given up.
    pub give_up_after: Duration,
    /// Between two attempts.
    pub retry_pause: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            attempt_timeout: Duration::from_secs(1),
            give_up_after: Duration::from_secs(10),
            retry_pause: Duration::from_millis(100),
        }
    }
}

/// A client of one storage.
pub struct Client {
    connection: Connection,
    options: ClientOptions,
    buffer: Vec<u8>,
    /// The number of the last request. One count over all holdings, because a token may come back:
    /// with lease ids as tokens every holding of a session has the same one.
    seq: u64,
}

/// The address of a storage is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("storage address {0:?}: expected host:port or http://host:port")]
pub struct AddressError(String);

impl Client {
    /// A client of the storage at `address`, as `host:port` or `http://host:port`. It connects when
    /// it has something to say.
    ///
    /// # Errors
    /// When the address has another form.
    pub fn new(address: &str, options: ClientOptions) -> Result<Self, AddressError> {
        let connection =
            Connection::new(address).ok_or_else(|| AddressError(address.to_owned()))?;
        Ok(Client { connection, options, buffer: Vec::new(), seq: 0 })
    }

    /// Begins to work under a token. The first operation should be [`Holding::enter`].
    pub fn holding(&mut self, domain: impl Into<String>, token: i64) -> Holding<'_> {
        Holding { client: self, domain: domain.into(), token, given_up: false }
    }

    /// The number of the last request that was sent under a token; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.seq
    }

    /// A read without a token: neither fenced nor announced.
    ///
    /// # Errors
    /// See [`StorageError`].
    pub async fn read_unfenced(
        &mut self,
        domain: &str,
        key: &str,
        tag: Option<u64>,
    ) -> Result<Option<String>, StorageError> {
        let request = Request { domain: domain.to_owned(), ..Request::read(key) };
        let response = self.operate(&request, tag).await?;
        Ok(response.map(|response| response.val))
    }

    /// The old protocol: one attempt, and the answer as it is, refusals in `err` included.
    ///
    /// # Errors
    /// When there is no answer, or its status is not 200.
    pub async fn call(&mut self, request: &Request) -> Result<Response, StorageError> {
        self.call_tagged(request, None).await
    }

    /// The same with a mark of the client's own ([`super::TAG_HEADER`]).
    ///
    /// # Errors
    /// When there is no answer, or its status is not 200.
    pub async fn call_tagged(
        &mut self,
        request: &Request,
        tag: Option<u64>,
    ) -> Result<Response, StorageError> {
        let started = Instant::now();
        let body = self.encode(request);
        let mut resent = false;
        match self.attempt(body, tag, self.options.attempt_timeout, &mut resent).await {
            Ok((status, body)) => error::answer(status, &body, false),
            Err(ended) => Err(self.given_up(ended, started, resent)),
        }
    }

    /// Sends a request until its outcome is definite or it is given up.
    async fn operate(
        &mut self,
        request: &Request,
        tag: Option<u64>,
    ) -> Result<Option<Response>, StorageError> {
        let started = Instant::now();
        let give_up = started + self.options.give_up_after;
        let body = self.encode(request);
        let mut resent = false;
        let mut hurry = true;
        loop {
            let earlier = resent;
            let left = give_up.saturating_duration_since(Instant::now());
            let limit = self.options.attempt_timeout.min(left);
            let ended = match self.attempt(body.clone(), tag, limit, &mut resent).await {
                Ok((status, body)) => match error::settle(status, &body, request.op, earlier) {
                    // A proxy's or a dying server's answer says nothing: ask again.
                    Err(error @ StorageError::Protocol { .. }) => Ended::Answer(error),
                    settled => return settled,
                },
                Err(ended) => ended,
            };
            if let Ended::Broken(Broken::Unreachable(_)) = &ended
                && !resent
            {
                return Err(self.given_up(ended, started, resent));
            }
            tracing::debug!(?ended, "attempt without an outcome");
            if Instant::now() + self.options.retry_pause >= give_up {
                return Err(self.given_up(ended, started, resent));
            }
            // A connection that the server closed while idle is no reason to wait, once.
            if hurry && matches!(ended, Ended::Broken(Broken::Unsent(_))) {
                hurry = false;
                continue;
            }
            time::sleep(self.options.retry_pause).await;
        }
    }

    fn encode(&mut self, request: &Request) -> Bytes {
        self.buffer.clear();
        request.encode(&mut self.buffer);
        Bytes::copy_from_slice(&self.buffer)
    }

    /// One attempt. `resent` becomes true if the request may have arrived.
    async fn attempt(
        &mut self,
        body: Bytes,
        tag: Option<u64>,
        limit: Duration,
        resent: &mut bool,
    ) -> Result<(u16, Bytes), Ended> {
        let mut progress = Progress::default();
        let exchange = self.connection.exchange(body, tag, &mut progress);
        let result = time::timeout(limit, exchange).await;
        *resent |= progress.sent;
        match result {
            Ok(result) => result.map_err(Ended::Broken),
            Err(_) => Err(Ended::TimedOut),
        }
    }

    /// The error of an operation whose last attempt ended like this.
    fn given_up(&self, ended: Ended, started: Instant, resent: bool) -> StorageError {
        match ended {
            Ended::Broken(Broken::Unreachable(source)) => StorageError::Unreachable {
                address: self.connection.address().to_owned(),
                source: Arc::new(source),
                resent,
            },
            Ended::Broken(Broken::Lost(message)) => StorageError::Lost { message },
            Ended::Answer(error) => error,
            Ended::Broken(Broken::Unsent(_)) | Ended::TimedOut => {
                StorageError::TimedOut { after: started.elapsed(), resent }
            }
        }
    }
}

/// Work under one token in one domain: its requests are numbered and sent one after another.
pub struct Holding<'a> {
    client: &'a mut Client,
    domain: String,
    token: i64,
    given_up: bool,
}

impl Holding<'_> {
    /// The wire token.
    pub fn token(&self) -> i64 {
        self.token
    }

    /// Whether an operation ended unknown, so that nothing more can be sent under the token.
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// The step after the lock: a fenced read, which announces the token to the storage.
    ///
    /// Once it succeeded, no operation of an earlier tenure takes effect in the domain any more.
    ///
    /// # Errors
    /// See [`StorageError`]; an indefinite one ends the holding.
    pub async fn enter(
        &mut self,
        key: &str,
        tag: Option<u64>,
    ) -> Result<Option<String>, StorageError> {
        self.read(key, tag).await
    }

    /// A fenced read; `None` if the key is not there.
    ///
    /// # Errors
    /// See [`StorageError`]; an indefinite one ends the holding.
    pub async fn read(
        &mut self,
        key: &str,
        tag: Option<u64>,
    ) -> Result<Option<String>, StorageError> {
        self.operate(OpKind::Read, key, "", tag).await
    }

    /// A write under the token.
    ///
    /// # Errors
    /// See [`StorageError`]; an indefinite one ends the holding.
    pub async fn write(
        &mut self,
        key: &str,
        val: &str,
        tag: Option<u64>,
    ) -> Result<(), StorageError> {
        self.operate(OpKind::Write, key, val, tag).await.map(drop)
    }

    async fn operate(
        &mut self,
        op: OpKind,
        key: &str,
        val: &str,
        tag: Option<u64>,
    ) -> Result<Option<String>, StorageError> {
        if self.given_up {
            return Err(StorageError::GivenUp);
        }
        self.client.seq += 1;
        let request = Request {
            op,
            key: key.to_owned(),
            val: val.to_owned(),
            version: Some(self.token),
            domain: self.domain.clone(),
            seq: Some(self.client.seq),
        };
        // Set first: when the caller drops this future half way, the outcome is unknown too.
        self.given_up = true;
        let result = self.client.operate(&request, tag).await;
        self.given_up =
            result.as_ref().is_err_and(|error| error.definiteness() == Definiteness::Indefinite);
        Ok(result?.map(|response| response.val))
    }
}

/// How an attempt ended that settled nothing.
#[derive(Debug)]
enum Ended {
    Broken(Broken),
    TimedOut,
    Answer(StorageError),
}
