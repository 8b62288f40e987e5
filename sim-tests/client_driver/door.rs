//! What a client must be able to do so that cases can be driven through it.

use std::{future::Future, time::Duration};

use serde_json::Value;

use super::ask::{Ask, Asked};

/// A client of one server.
pub trait Door: Clone + Send + Sync + 'static {
    /// A call of the API with its arguments.
    type Request: Send + 'static;
    /// An open stream.
    type Stream: Send;

    /// Fields of answers that the API does not show, wherever they are.
    const HIDDEN: &'static [&'static str];

    /// Makes the call, or says why the API has none.
    fn request(ask: &Ask) -> Asked<Self::Request>;

    /// Sends a unary call; its answer is in the form of the recordings.
    fn call(&self, request: Self::Request, base: i64) -> impl Future<Output = Value> + Send;

    /// Opens a stream with its first request.
    fn open(
        &self,
        request: Self::Request,
        base: i64,
    ) -> impl Future<Output = Result<Self::Stream, Value>> + Send;

    /// Sends one more request on a stream.
    fn send(
        stream: &mut Self::Stream,
        request: Self::Request,
    ) -> impl Future<Output = Result<(), Value>> + Send;

    /// The next message of a stream; dropping the future loses none.
    fn next(stream: &mut Self::Stream, base: i64) -> impl Future<Output = Value> + Send;

    /// Lets time pass on the client's clock.
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send;

    /// Bounds a wait by the client's clock.
    fn within<F: Future + Send>(
        duration: Duration,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + Send;
}
