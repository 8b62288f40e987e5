//! The storage over HTTP/1.1.
//!
//! Any method and any path work, as with `contrib/lock`'s storage; unlike there, no request can end
//! the process. A request is numbered when its head is there, applied when its body is, and its
//! answer leaves after the application. hyper gets no timer and writes no `Date`: it would read a
//! clock that is not the node's; idle connections are closed by a watch of our own.

use std::{
    convert::Infallible,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;

use super::{
    TAG_HEADER,
    protocol::{Request, Response},
    service::Service,
};
use crate::{
    history::RowResult,
    net::{TcpListener, TcpStream},
    point, time,
};

/// Serves until `shutdown` completes; then requests in progress are answered, for a bounded time.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    shutdown: impl Future<Output = ()>,
) {
    let connections = u32::try_from(service.limits().connections).unwrap_or(u32::MAX).max(1);
    let slots = Arc::new(Semaphore::new(connections as usize));
    // It never has a slot: it is closed to stop the connections. Not a `watch` channel, which wakes
    // its receivers in an order drawn from the process.
    let stop = Arc::new(Semaphore::new(0));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let slot = slots.clone().acquire_owned().await.expect("the slots are never closed");
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                tracing::debug!(%peer, "connection accepted");
                let (service, stop) = (service.clone(), stop.clone());
                drop(tokio::spawn(async move {
                    connection(stream, service, &stop).await;
                    drop(slot);
                }));
            }
            Err(error) => {
                // Out of file descriptors, for one: others close soon, and a hot loop helps nobody.
                tracing::warn!(%error, "cannot accept a connection");
                time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    stop.close();
    if time::timeout(service.limits().drain_timeout, slots.acquire_many(connections)).await.is_err()
    {
        tracing::warn!("connections were still open at the end of the shutdown");
    }
}

/// Serves one connection until it ends, idles, or the server stops.
async fn connection(stream: TcpStream, service: Arc<Service>, stop: &Semaphore) {
    let idle_timeout = service.limits().idle_timeout;
    let done = AtomicU64::new(0);
    let handler = service_fn(|request| {
        let (service, done) = (&service, &done);
        async move {
            let answer = handle(service, request).await;
            done.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = http1::Builder::new();
    builder.half_close(true).header_read_timeout(None).auto_date_header(false);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), handler));
    let mut seen = 0;
    let mut stopping = false;
    // One timer a connection and not one a request: the count tells whether anything happened.
    let mut idle = pin!(time::sleep(idle_timeout));
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            _ = stop.acquire(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut idle => {
                let now = done.load(Ordering::Relaxed);
                if now == seen {
                    tracing::debug!("connection closed: no request completed in time");
                    return;
                }
                seen = now;
                idle.as_mut().reset(time::Instant::now() + idle_timeout);
            }
        }
    }
}

/// Answers one request.
async fn handle(
    service: &Service,
    request: hyper::Request<Incoming>,
) -> hyper::Response<Full<Bytes>> {
    let number = service.arrive();
    let tag = request.headers().get(TAG_HEADER);
    let tag = tag.and_then(|tag| tag.to_str().ok()).and_then(|tag| tag.parse().ok());
    let decoded = match body(request.into_body(), service.limits().body_bytes).await {
        Ok(body) => Request::decode(&body).map_err(|error| (400, error.to_string())),
        Err(refusal) => Err(refusal),
    };
    let (status, response) = match decoded {
        Ok(request) => {
            point::reach("storage.before_apply").await;
            let (response, result) = service.apply(number, tag, request);
            (if result == RowResult::Rejected { 400 } else { 200 }, response)
        }
        Err((status, text)) => {
            tracing::debug!(request = number, status, text, "malformed request");
            (status, Response::error(text))
        }
    };
    point::reach("storage.before_answer").await;
    service.answer(number);
    let mut answer = hyper::Response::new(Full::new(Bytes::from(response.encode())));
    *answer.status_mut() =
        hyper::StatusCode::from_u16(status).expect("the statuses above are valid");
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}

/// The whole body, or a status and a text. A body that came in one piece is not copied.
async fn body(mut body: Incoming, max: usize) -> Result<Bytes, (u16, String)> {
    let too_large =
        || (413, format!("the body has more than {max} bytes: send a smaller key or value"));
    if body.size_hint().lower() > max as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            (400, format!("the body is broken: {error}: send Content-Length bytes or valid chunks"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > max {
            return Err(too_large());
        }
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
