//! The client's one connection, kept alive between requests and made anew when it breaks.
//!
//! It has no task of its own: whoever waits for an answer drives it, and dropping it closes it. So
//! an abandoned attempt leaves nothing behind that could still send.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;

use super::TAG_HEADER;
use crate::net::TcpStream;

/// An attempt ended without an answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// Nobody listens there, or the name is unknown: nothing was sent.
    Unreachable(io::Error),
    /// The connection broke before the request was written: nothing was sent.
    Unsent(String),
    /// It broke later: the request may have arrived.
    Lost(String),
}

/// One attempt's progress, readable after the attempt was abandoned.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The request was handed to the connection.
    pub(super) sent: bool,
}

/// A connection that is open, or will be when it is needed.
pub(super) struct Connection {
    address: String,
    host: HeaderValue,
    open: Option<Open>,
}

struct Open {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: http1::Connection<TokioIo<TcpStream>, Full<Bytes>>,
}

impl Connection {
    /// A connection to `host:port`, with or without `http://` in front; none if it is neither.
    pub(super) fn new(url: &str) -> Option<Self> {
        let address = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let (host, port) = address.rsplit_once(':')?;
        if host.is_empty() || host.contains('/') || port.parse::<u16>().is_err() {
            return None;
        }
        let host = HeaderValue::from_str(address).ok()?;
        Some(Connection { address: address.to_owned(), host, open: None })
    }

    /// Where it goes.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Sends a request and waits for its answer: status and body.
    ///
    /// The open connection belongs to this future while it runs: after an error, or when the future
    /// is dropped, it is closed, so that no late answer is taken for the next one's.
    pub(super) async fn exchange(
        &mut self,
        body: Bytes,
        tag: Option<u64>,
        progress: &mut Progress,
    ) -> Result<(u16, Bytes), Broken> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => Open::connect(&self.address).await?,
        };
        open.ready().await?;
        let request = self.request(body, tag);
        progress.sent = true;
        let answer = match open.send(request).await {
            Ok(answer) => answer,
            Err(Broken::Unsent(text)) => {
                progress.sent = false;
                return Err(Broken::Unsent(text));
            }
            Err(broken) => return Err(broken),
        };
        let status = answer.status().as_u16();
        let body = open.body(answer.into_body()).await?;
        if !open.sender.is_closed() {
            self.open = Some(open);
        }
        Ok((status, body))
    }

    /// The bytes of contrib/lock's client, but for two lines of Go's that do not fit: `User-Agent`
    /// names Go, and `Accept-Encoding` asks for what cannot be read here.
    fn request(&self, body: Bytes, tag: Option<u64>) -> hyper::Request<Full<Bytes>> {
        let length = HeaderValue::from(body.len());
        let mut request = hyper::Request::new(Full::new(body));
        *request.method_mut() = hyper::Method::POST;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(CONTENT_LENGTH, length);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(tag) = tag {
            headers.insert(HeaderName::from_static(TAG_HEADER), HeaderValue::from(tag));
        }
        request
    }
}

impl Open {
    async fn connect(address: &str) -> Result<Self, Broken> {
        let stream = TcpStream::connect(address).await.map_err(Broken::Unreachable)?;
        let mut builder = http1::Builder::new();
        builder.title_case_headers(true);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|error| Broken::Unsent(error.to_string()))?;
        Ok(Open { sender, driver })
    }

    /// Waits until a request can be sent.
    async fn ready(&mut self) -> Result<(), Broken> {
        let Open { sender, driver } = self;
        poll_fn(|cx| {
            // First the driver: it notices that the server closed the idle connection.
            if let Poll::Ready(ended) = Pin::new(&mut *driver).poll(cx) {
                return Poll::Ready(Err(Broken::Unsent(text(ended))));
            }
            sender.poll_ready(cx).map_err(|error| Broken::Unsent(error.to_string()))
        })
        .await
    }

    async fn send(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> Result<hyper::Response<Incoming>, Broken> {
        let Open { sender, driver } = self;
        let mut answer = pin!(sender.try_send_request(request));
        let mut drive = Drive { driver, ended: None };
        poll_fn(|cx| {
            drive.poll(cx);
            match answer.as_mut().poll(cx) {
                Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
                Poll::Ready(Err(mut error)) => {
                    // hyper gives the request back if it wrote none of it.
                    let unsent = error.take_message().is_some();
                    let text = error.into_error().to_string();
                    Poll::Ready(Err(if unsent { Broken::Unsent(text) } else { Broken::Lost(text) }))
                }
                Poll::Pending => drive.pending(),
            }
        })
        .await
    }

    async fn body(&mut self, body: Incoming) -> Result<Bytes, Broken> {
        let mut body = pin!(body.collect());
        let mut drive = Drive { driver: &mut self.driver, ended: None };
        poll_fn(|cx| {
            drive.poll(cx);
            match body.as_mut().poll(cx) {
                Poll::Ready(Ok(collected)) => Poll::Ready(Ok(collected.to_bytes())),
                Poll::Ready(Err(error)) => Poll::Ready(Err(Broken::Lost(error.to_string()))),
                Poll::Pending => drive.pending(),
            }
        })
        .await
    }
}

/// The driver while something waits for it. It must not be polled again after its end.
struct Drive<'a> {
    driver: &'a mut http1::Connection<TokioIo<TcpStream>, Full<Bytes>>,
    ended: Option<String>,
}

impl Drive<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) {
        if self.ended.is_none()
            && let Poll::Ready(ended) = Pin::new(&mut *self.driver).poll(cx)
        {
            self.ended = Some(text(ended));
        }
    }

    /// What the waiting one is told: with the driver gone, nothing can come any more.
    fn pending<T>(&mut self) -> Poll<Result<T, Broken>> {
        match self.ended.take() {
            Some(text) => Poll::Ready(Err(Broken::Lost(text))),
            None => Poll::Pending,
        }
    }
}

fn text(ended: hyper::Result<()>) -> String {
    ended.map_or_else(|error| error.to_string(), |()| "closed by the storage".to_owned())
}
