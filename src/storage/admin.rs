//! The counters over HTTP, on a listener of their own: `GET /metrics` gives `name value` lines.
//!
//! Off by default, and not meant for the world: no limits but the few connections it serves.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;

use super::service::Service;
use crate::{
    net::{TcpListener, TcpStream},
    time,
};

/// How many are served at one time; others wait.
const CONNECTIONS_MAX: usize = 16;
/// How long a connection may last: each serves one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the counters of this service until `shutdown` completes.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    shutdown: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let slot = slots.clone().acquire_owned().await.expect("the slots are never closed");
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = &mut shutdown => return,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let service = service.clone();
                drop(tokio::spawn(async move {
                    let served = time::timeout(CONNECTION_TIMEOUT, connection(stream, &service));
                    if !matches!(served.await, Ok(Ok(()))) {
                        tracing::debug!("a connection for the counters ended badly");
                    }
                    drop(slot);
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for the counters");
                time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, service: &Service) -> hyper::Result<()> {
    let handler =
        service_fn(|request| async move { Ok::<_, Infallible>(answer(service, &request)) });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).header_read_timeout(None).auto_date_header(false);
    builder.serve_connection(TokioIo::new(stream), handler).await
}

fn answer(service: &Service, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, metrics(service)),
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "there is only /metrics\n".to_owned()),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}

/// The counters, and what is no counter: the boot, the last index, and whether it has stopped.
fn metrics(service: &Service) -> String {
    let stopped = service.stopped();
    format!(
        "{}boot {}\napplied {}\nstopped {}\n",
        service.counters(),
        service.boot(),
        service.applied(),
        u8::from(stopped.is_some())
    )
}
