//! One request: numbered when its head is there, applied when its body is, answered when the state
//! that the answer was computed from is as durable as it is meant to be.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{CONNECTION, CONTENT_TYPE, HeaderValue},
};

use super::peer::{Pace, Phase};
use crate::{
    history::RowResult,
    point,
    storage::{
        TAG_HEADER,
        counter::Count,
        protocol,
        service::{Outcome, Service},
    },
};

/// A status and a text, for what cannot be answered otherwise.
type Refusal = (StatusCode, String);

/// Answers one request, whatever happens on the way.
pub(super) async fn answer(
    service: &Service,
    pace: &Pace,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let answered = AssertUnwindSafe(handle(service, pace, request));
    let answered = if service.catch_panics() {
        answered.catch_unwind().await.unwrap_or_else(|_| {
            service.counters().add(Count::Panics);
            tracing::error!("the code for a request panicked");
            let text = "the storage failed at this request: its outcome is unknown".to_owned();
            Err((StatusCode::INTERNAL_SERVER_ERROR, text))
        })
    } else {
        answered.0.await
    };
    pace.enter(Phase::Idle);
    match answered {
        Ok((status, response)) => http(status, &response),
        Err((status, text)) => {
            tracing::debug!(%status, text, "no answer of the state machine");
            http(status, &protocol::Response::error(text))
        }
    }
}

/// An answer; errors of the transport and of the server end the connection.
fn http(status: StatusCode, response: &protocol::Response) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(response.encode())));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    let keep = matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST);
    if !keep {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// The status and the response, if the request may have one; else what to say instead. Only the
/// former is an answer to the judge: the latter reveals nothing of the state.
async fn handle(
    service: &Service,
    pace: &Pace,
    request: Request<Incoming>,
) -> Result<(StatusCode, protocol::Response), Refusal> {
    let number = service.arrive();
    pace.enter(Phase::Body);
    let (length, max) = (head_bytes(&request), service.limits().head_bytes);
    if length > max {
        service.counters().add(Count::Rejected);
        let text = format!("the head has {length} bytes, more than {max}: leave out some fields");
        return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text));
    }
    let tag = request.headers().get(TAG_HEADER);
    let tag = tag.and_then(|tag| tag.to_str().ok()).and_then(|tag| tag.parse().ok());
    let mut room = Room { taken: service.bodies(), bytes: 0 };
    let body = body(service, pace, request.into_body(), &mut room).await;
    pace.enter(Phase::Busy);
    let decoded = body.and_then(|body| {
        let malformed =
            |error: protocol::ProtocolError| (StatusCode::BAD_REQUEST, error.to_string());
        protocol::Request::decode(&body).map_err(malformed)
    });
    let (status, response) = match decoded {
        Ok(request) => {
            point::reach("storage.before_apply").await;
            if let Some(why) = service.stopped() {
                service.counters().add(Count::Failed);
                let text = format!("the storage has stopped: {why}: restart it");
                return Err((StatusCode::SERVICE_UNAVAILABLE, text));
            }
            let Outcome { response, result, position } = service.apply(number, tag, request);
            service.settle(position).await.map_err(|why| {
                service.counters().add(Count::Failed);
                let text = format!("the outcome is unknown: {why}");
                (StatusCode::INTERNAL_SERVER_ERROR, text)
            })?;
            let rejected = result == RowResult::Rejected;
            (if rejected { StatusCode::BAD_REQUEST } else { StatusCode::OK }, response)
        }
        Err((status, text)) => {
            tracing::debug!(request = number, %status, text, "malformed request");
            service.counters().add(Count::Rejected);
            (status, protocol::Response::error(text))
        }
    };
    drop(room);
    point::reach("storage.before_answer").await;
    service.answer(number);
    Ok((status, response))
}

/// The length of a head as it is written without white space that means nothing. hyper limits its
/// buffer, which may hold more than the head when that is complete.
fn head_bytes(request: &Request<Incoming>) -> usize {
    // The blanks of the first line and what follows "HTTP/"; the ends of that and the empty line.
    let line = request.method().as_str().len() + request.uri().to_string().len() + 14;
    let fields = request.headers().iter();
    fields.fold(line, |sum, (name, value)| sum + name.as_str().len() + value.len() + 4)
}

/// Room for a body among those of all connections.
struct Room<'a> {
    taken: &'a AtomicUsize,
    bytes: usize,
}

impl Room<'_> {
    fn take(&mut self, bytes: usize, max: usize) -> Result<(), Refusal> {
        self.bytes += bytes;
        if self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes <= max {
            return Ok(());
        }
        let text = "too many large requests at one time: send it again later".to_owned();
        Err((StatusCode::SERVICE_UNAVAILABLE, text))
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The whole body. One that came in one piece is not copied.
async fn body(
    service: &Service,
    pace: &Pace,
    mut body: Incoming,
    room: &mut Room<'_>,
) -> Result<Bytes, Refusal> {
    let limits = service.limits();
    let max = limits.body_bytes;
    let too_large = || {
        let text = format!("the body has more than {max} bytes: send a smaller key or value");
        (StatusCode::PAYLOAD_TOO_LARGE, text)
    };
    if body.size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut rest: Vec<u8> = Vec::new();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = pace.late.notified() => {
                let text = format!("the body did not come within {:?}", limits.body_timeout);
                return Err((StatusCode::REQUEST_TIMEOUT, text));
            }
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            let text =
                format!("the body is broken: {error}: send Content-Length bytes or valid chunks");
            (StatusCode::BAD_REQUEST, text)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > max {
            return Err(too_large());
        }
        room.take(data.len(), limits.bodies_bytes)?;
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = Vec::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.into())
}
