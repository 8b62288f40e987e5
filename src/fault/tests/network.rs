//! Cuts, delays, slow links, resets, silent deaths.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{CLIENT, NodeName, ask, begin, ms, tell, write};
use crate::{
    cluster::Cluster,
    net::TcpStream,
    plan::FaultKind,
    storage::Request,
    time::{sleep, timeout},
};

const STORAGE: NodeName = NodeName::Storage;

/// Opens a connection to the storage and waits for its end: how it ended, and within 2 s at all.
fn idle(cluster: &Cluster) -> madsim::task::JoinHandle<Option<std::io::Result<usize>>> {
    let address = cluster.storage_url().replace("http://", "");
    cluster.spawn(CLIENT, async move {
        let mut stream = TcpStream::connect(&address).await.expect("the storage listens");
        let mut byte = [0];
        timeout(ms(2000), stream.read(&mut byte)).await.ok()
    })
}

/// A reset is told to who waits on the connection; a new one works at once.
#[test]
fn a_reset_breaks_connections_and_no_more() {
    tell(1, |cluster| async move {
        let waiting = idle(&cluster);
        sleep(ms(100)).await;
        let end = begin(&cluster, 0, FaultKind::Reset { from: CLIENT, to: STORAGE });
        assert_eq!(end(&cluster), 2, "both directions of one connection");
        let ended = waiting.await.unwrap().expect("it is told").unwrap_err();
        assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(write(&cluster, "a", 1).await.0);
        let again = begin(&cluster, 0, FaultKind::Reset { from: CLIENT, to: STORAGE });
        assert_eq!(again(&cluster), 0, "nothing was open");
    });
}

/// On a broken connection nothing can be sent either.
#[test]
fn a_reset_is_told_to_who_sends() {
    tell(1, |cluster| async move {
        let address = cluster.storage_url().replace("http://", "");
        let sending = cluster.spawn(CLIENT, async move {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            sleep(ms(500)).await;
            stream.write_all(b"POST").await.unwrap();
            stream.flush().await.map_err(|error| error.kind())
        });
        sleep(ms(100)).await;
        begin(&cluster, 0, FaultKind::Reset { from: STORAGE, to: CLIENT })(&cluster);
        assert_eq!(sending.await.unwrap(), Err(std::io::ErrorKind::ConnectionReset));
    });
}

/// On a slow link each message waits for those before it.
#[test]
fn a_slow_link_carries_one_message_at_a_time() {
    tell(1, |cluster| async move {
        let quick = ask(&cluster, CLIENT, Request::read("k")).await.1;
        assert!(quick < ms(30), "{quick:?}");
        let kind = FaultKind::SlowLink { from: STORAGE, to: CLIENT, message_ms: 300 };
        let end = begin(&cluster, 5000, kind);
        let asked = (0..4).map(|_| ask(&cluster, CLIENT, Request::read("k")));
        let mut took: Vec<_> =
            futures_util::future::join_all(asked).await.into_iter().map(|(_, took)| took).collect();
        took.sort_unstable();
        // Each exchange has its connection's answer and its own on the slow way.
        assert!(took[0] >= ms(300) && took[3] >= took[0] + ms(890), "{took:?}");
        let other = ask(&cluster, NodeName::Client(2), Request::read("k")).await.1;
        assert!(other < ms(30), "only this link is slow: {other:?}");
        assert!(end(&cluster) >= 4);
        let healed = ask(&cluster, CLIENT, Request::read("k")).await.1;
        assert!(healed < ms(30), "{healed:?}");
    });
}

/// A kill closes the connections at once; a silent death does not before it is over.
#[test]
fn a_silent_death_is_silent() {
    tell(1, |cluster| async move {
        let waiting = idle(&cluster);
        sleep(ms(100)).await;
        let end = begin(&cluster, 1000, FaultKind::Kill { node: STORAGE });
        let ended = waiting.await.unwrap().expect("a kill is seen");
        assert_eq!(ended.unwrap(), 0, "the end of the connection");
        assert_eq!(end(&cluster), 1);
        cluster.storage_listens().await;
        let waiting = idle(&cluster);
        sleep(ms(100)).await;
        let end = begin(&cluster, 3000, FaultKind::SilentDeath { node: STORAGE });
        assert!(waiting.await.unwrap().is_none(), "nothing is seen for 2 s");
        assert!(cluster.is_down(STORAGE));
        assert!(end(&cluster) > 0);
        cluster.storage_listens().await;
        sleep(ms(1100)).await;
        assert!(write(&cluster, "a", 1).await.0, "it is back, and its links are open");
    });
}

/// A cut holds what is sent until it is over; the other direction goes on.
#[test]
fn a_cut_holds_messages() {
    tell(1, |cluster| async move {
        let kind = FaultKind::Cut { from: CLIENT, to: STORAGE, both_ways: false };
        let end = begin(&cluster, 2000, kind);
        let heal = async {
            sleep(ms(2000)).await;
            end(&cluster)
        };
        let ((written, took), held) = tokio::join!(write(&cluster, "a", 1), heal);
        assert!(written && took >= ms(2000) && held > 0, "{took:?}, {held} held");
    });
}

/// A delay makes each message late by just so much.
#[test]
fn a_delay_makes_messages_late() {
    tell(1, |cluster| async move {
        let quick = write(&cluster, "a", 1).await.1;
        let kind = FaultKind::LinkDelay { from: CLIENT, to: STORAGE, delay_ms: 700 };
        let end = begin(&cluster, 5000, kind);
        let late = write(&cluster, "b", 2).await.1;
        // The connection takes one message that way, and the request one.
        assert!(late >= quick + ms(1400) && late < quick + ms(1500), "{quick:?}, {late:?}");
        assert!(end(&cluster) >= 2);
        assert!(write(&cluster, "c", 3).await.1 < ms(30));
    });
}
