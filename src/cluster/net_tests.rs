//! The network, from inside nodes: each test harms a link and looks at what arrives, and when.

use std::{io, time::Duration};

use madsim::{runtime::Handle, task::NodeId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::sim;
use crate::{
    net::{MessageListener, MessageStream, NetSim, TcpListener, TcpStream},
    seed::Seed,
    time::{sim::true_ns, sleep, timeout},
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn now() -> Duration {
    Duration::from_nanos(true_ns())
}

struct Pair {
    a: madsim::runtime::NodeHandle,
    b: madsim::runtime::NodeHandle,
}

impl Pair {
    fn new() -> Self {
        let node = |ip: [u8; 4]| {
            let node = Handle::current().create_node().build();
            NetSim::current().set_address(node.id(), ip.into());
            node
        };
        Pair { a: node([10, 0, 0, 1]), b: node([10, 0, 0, 2]) }
    }

    fn ids(&self) -> (NodeId, NodeId) {
        (self.a.id(), self.b.id())
    }
}

fn run<T: Send + 'static>(body: impl AsyncFnOnce(Pair) -> T + Send + 'static) -> T {
    sim::run(Seed(1), move || async move { body(Pair::new()).await })
        .expect("the run has no harness error")
}

/// Sends 1, 2 and 3 from `a` at 100 ms, 200 ms, 300 ms; gives what `b` got, and when.
async fn three_messages(pair: &Pair) -> Vec<(u8, Duration)> {
    let receiver = pair.b.spawn(async {
        let listener = MessageListener::bind("10.0.0.2:1").await?;
        let (_sender, mut receiver) = listener.accept().await?.split();
        let mut got = Vec::new();
        while let Some(message) = receiver.recv::<u8>().await? {
            got.push((message, now()));
        }
        Ok::<_, io::Error>(got)
    });
    sleep(ms(5)).await;
    pair.a.spawn(async {
        let stream = MessageStream::connect("10.0.0.2:1").await?;
        let (sender, _receiver) = stream.split();
        for message in 1..=3u8 {
            sleep(ms(100 * u64::from(message)).saturating_sub(now())).await;
            sender.send(message)?;
        }
        Ok::<_, io::Error>(())
    });
    receiver.await.expect("not aborted").expect("the stream ends in order")
}

/// Undisturbed messages arrive in order, after the latency.
#[test]
fn messages_arrive_in_order() {
    let got = run(async |pair| three_messages(&pair).await);
    assert_eq!(got.iter().map(|(message, _)| *message).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(got.iter().all(|(message, at)| *at < ms(100 * u64::from(*message) + 5)), "{got:?}");
}

/// A cut holds what is sent during it; it arrives after the cut, in order, and is counted.
#[test]
fn a_cut_holds_messages() {
    let (got, held) = run(async |pair| {
        let (a, b) = pair.ids();
        let net = NetSim::current();
        let cut = pair.b.spawn(async move {
            sleep(ms(150)).await;
            NetSim::current().cut(a, b);
            sleep(ms(1850)).await;
            NetSim::current().mend(a, b);
        });
        let got = three_messages(&pair).await;
        cut.await.expect("not aborted");
        (got, net.effect(a, b).held)
    });
    assert_eq!(got.iter().map(|(message, _)| *message).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(got[0].1 < ms(110), "sent before the cut: {got:?}");
    assert!(got[1].1 > ms(2000) && got[2].1 < ms(3100), "held by the cut: {got:?}");
    // Two messages and the end of the stream.
    assert_eq!(held, 3);
}

/// A delay acts on its own direction only, and is counted.
#[test]
fn a_delay_is_per_direction() {
    let (got, effects) = run(async |pair| {
        let (a, b) = pair.ids();
        NetSim::current().add_delay(a, b, ms(700));
        let got = three_messages(&pair).await;
        (got, (NetSim::current().effect(a, b).delayed, NetSim::current().effect(b, a).delayed))
    });
    assert!(got[0].1 > ms(800), "{got:?}");
    assert_eq!(effects.1, 0);
    assert!(effects.0 >= 3, "{effects:?}");
}

/// Nobody listens: refused. A cut on the way: neither refused nor done until it heals.
#[test]
fn connecting_waits_for_a_cut_and_is_refused_without_a_listener() {
    let (refused, waited) = run(async |pair| {
        let (a, b) = pair.ids();
        let refused = pair.a.spawn(TcpStream::connect("10.0.0.2:1"));
        let refused = refused.await.expect("not aborted").map(drop).map_err(|e| e.kind());
        NetSim::current().cut(b, a);
        let connect = timeout(ms(2000), TcpStream::connect("10.0.0.2:1"));
        let waited = pair.a.spawn(connect).await.expect("not aborted");
        (refused, waited.map(drop).map_err(drop))
    });
    assert_eq!(refused, Err(io::ErrorKind::ConnectionRefused));
    assert_eq!(waited, Err(()));
}

/// The death of a process ends its connections, unless a cut holds that news back.
#[test]
fn death_is_an_end_of_stream_and_a_cut_makes_it_silent() {
    for silent in [false, true] {
        let read = run(async move |pair| {
            let (a, b) = pair.ids();
            pair.b.spawn(async {
                let listener = TcpListener::bind("10.0.0.2:1").await?;
                let (_stream, _) = listener.accept().await?;
                std::future::pending::<io::Result<()>>().await
            });
            sleep(ms(5)).await;
            let client = pair.a.spawn(async {
                let mut stream = TcpStream::connect("10.0.0.2:1").await?;
                stream.write_all(b"hello").await?;
                stream.flush().await?;
                timeout(ms(3000), stream.read_u8()).await.map_err(io::Error::other)?
            });
            sleep(ms(100)).await;
            if silent {
                NetSim::current().cut(b, a);
            }
            Handle::current().kill(b);
            client.await.expect("not aborted").map_err(|error| error.kind())
        });
        let expected = if silent { io::ErrorKind::Other } else { io::ErrorKind::UnexpectedEof };
        assert_eq!(read, Err(expected), "silent: {silent}");
    }
}

/// An empty flush sends nothing: hyper flushes far more often than it writes.
#[test]
fn an_empty_flush_sends_nothing() {
    let unread = run(async |pair| {
        let b = pair.b.id();
        pair.b.spawn(async {
            let listener = TcpListener::bind("10.0.0.2:1").await?;
            let (_stream, _) = listener.accept().await?;
            std::future::pending::<io::Result<()>>().await
        });
        sleep(ms(5)).await;
        let client = pair.a.spawn(async {
            let mut stream = TcpStream::connect("10.0.0.2:1").await?;
            for _ in 0..10 {
                stream.flush().await?;
            }
            stream.write_all(b"one").await?;
            stream.flush().await?;
            sleep(ms(50)).await;
            Ok::<_, io::Error>(stream)
        });
        let _stream = client.await.expect("not aborted").expect("connected");
        NetSim::current().unread(b)
    });
    assert_eq!(unread, 1);
}

/// A server dies while a connection waits to be accepted: the client sees an end, and the run goes
/// on. An end is sent over the very network that forgets the listener.
#[test]
fn a_death_ends_connections_that_nobody_accepted() {
    let told = run(async |pair: Pair| {
        let listening = pair.b.spawn(async {
            let _listener = MessageListener::bind("10.0.0.2:1").await;
            std::future::pending::<()>().await
        });
        sleep(ms(5)).await;
        let client = pair.a.spawn(async {
            let (_sender, mut receiver) = MessageStream::connect("10.0.0.2:1").await?.split();
            receiver.recv::<u8>().await
        });
        sleep(ms(50)).await;
        Handle::current().kill(pair.b.id());
        drop(listening);
        timeout(ms(1000), client).await.expect("it is told").expect("not aborted")
    });
    assert!(!matches!(told, Ok(Some(_))), "{told:?}");
}
