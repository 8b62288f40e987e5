//! The storage over HTTP/1.1: accepting, turning away, stopping.
//!
//! Any method and any path work, as with `contrib/lock`'s storage; unlike there, no request can end
//! the process. `peer` serves one connection and watches its pace, `answer` one request.

mod answer;
mod peer;

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
};

use super::{counter::Count, protocol::Response, service::Service};
use crate::{
    net::{TcpListener, TcpStream},
    time,
};

/// How many connections are told at one time that there are too many; others are just closed.
const TURNED_AWAY_MAX: usize = 64;
/// How long that may take.
const TURN_AWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until `shutdown` completes; then requests in progress are answered, for a bounded time.
///
/// A service on a disk is served once: its journal ends with this call.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    shutdown: impl Future<Output = ()>,
) {
    let journal = service.journal().is_some().then(|| {
        let service = service.clone();
        AbortOnDrop(tokio::spawn(async move { service.keep_journal().await }))
    });
    let connections = u32::try_from(service.limits().connections).unwrap_or(u32::MAX).max(1);
    let slots = Arc::new(Semaphore::new(connections as usize));
    let stop = Arc::new(Semaphore::new(0));
    accept(&listener, &service, &slots, &stop, shutdown).await;
    drop(listener);
    stop.close();
    let drained = async {
        drop(slots.acquire_many(connections).await);
        // What nobody waits for any more is made durable too.
        if let (Some(journal), Some(mut writing)) = (service.journal(), journal) {
            journal.end();
            if let Err(error) = (&mut writing.0).await {
                tracing::error!(%error, "the journal ended badly");
            }
        }
    };
    if time::timeout(service.limits().drain_timeout, drained).await.is_err() {
        tracing::warn!("requests were still in progress at the end of the shutdown");
    }
}

/// A task that ends with whoever started it.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Accepts until the shutdown. `stop` never has a permit: it is closed to stop the connections. It
/// is no `watch` channel, which wakes its receivers in an order drawn from the process.
async fn accept(
    listener: &TcpListener,
    service: &Arc<Service>,
    slots: &Arc<Semaphore>,
    stop: &Arc<Semaphore>,
    shutdown: impl Future<Output = ()>,
) {
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => return,
            accepted = listener.accept() => accepted,
        };
        match (accepted, slots.clone().try_acquire_owned()) {
            (Ok((stream, peer)), Ok(slot)) => {
                tracing::debug!(%peer, "connection accepted");
                service.counters().add(Count::Connections);
                let (service, stop) = (service.clone(), stop.clone());
                drop(tokio::spawn(async move {
                    peer::connection(stream, service, &stop).await;
                    drop(slot);
                }));
            }
            (Ok((stream, peer)), Err(_)) => {
                tracing::debug!(%peer, "too many connections: turned away");
                service.counters().add(Count::ConnectionsRefused);
                if let Ok(permit) = turned_away.clone().try_acquire_owned() {
                    drop(tokio::spawn(turn_away(stream, permit)));
                }
            }
            (Err(error), _) => {
                // Out of file descriptors, for one: others close soon, and a hot loop helps nobody.
                tracing::warn!(%error, "cannot accept a connection");
                time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Tells a client that there are too many connections.
async fn turn_away(mut stream: TcpStream, permit: OwnedSemaphorePermit) {
    let text = "too many connections: close some, or raise the limit";
    let body = String::from_utf8_lossy(&Response::error(text).encode()).into_owned();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let told = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing on unread bytes would reset the connection, and the answer might be lost.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    if !matches!(time::timeout(TURN_AWAY_TIMEOUT, told).await, Ok(Ok(()))) {
        tracing::debug!("the client that was turned away did not hear it out");
    }
    drop(permit);
}
