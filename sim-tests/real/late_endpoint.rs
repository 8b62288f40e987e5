//! An endpoint that is down when a program starts, and comes up later, is used from then on.

use std::{fs, path::PathBuf, time::Duration};

use leasehold::{
    etcd::{Client, GetOptions},
    time::{Instant, sleep},
};

use super::{
    program::{PATIENCE, Program, leasehold},
    trio::Trio,
};

/// What a member says: its own id, and that of the leader it knows.
async fn told(endpoint: &str) -> Option<(u64, u64)> {
    let mut client = Client::connect([endpoint], None).await.expect("well formed");
    let status = client.status().await.ok()?;
    Some((status.header()?.member_id(), status.leader()))
}

/// The member of 1 and 2 that does not lead: its death stops nobody for the time of an election.
/// For a while after the death of a leader the others still name that one.
async fn follower(endpoints: &[String]) -> usize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let (Some((one, leader)), Some((two, also))) =
            (told(&endpoints[1]).await, told(&endpoints[2]).await)
            && leader == also
        {
            match leader {
                leader if leader == one => return 2,
                leader if leader == two => return 1,
                _ => {}
            }
        }
        assert!(Instant::now() < deadline, "nobody leads");
        sleep(Duration::from_millis(50)).await;
    }
}

/// The member that did not answer at the start comes up, and the one that did dies: the lock is
/// given back through the late one, long before the lease could expire.
#[tokio::test]
async fn lock_uses_a_member_that_came_up_later() {
    let mut trio = Trio::start().await;
    trio.kill(0);
    let endpoints = trio.endpoints();
    let other = follower(&endpoints).await;
    let done = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("late-endpoint-done");
    let _ = fs::remove_file(&done);
    let script = format!("until [ -e {} ]; do sleep 0.05; done; exit 5", done.display());
    let list = format!("{},{}", endpoints[0], endpoints[other]);
    let mut command = leasehold(["lock", "job", "--ttl", "2m", "--endpoints", &list, "--", "sh"]);
    command.args(["-c", &script]).env("RUST_LOG", "leasehold=debug");
    let program = Program::spawn(&mut command);
    program.line("locked").await;
    trio.start_again(0);
    program.line("answers now").await;
    trio.kill(other);
    fs::write(&done, "").expect("written");
    let (status, lines) = program.ends().await;
    assert_eq!(status, Some(5), "{lines:?}");

    let mut client = Client::connect([&endpoints[3 - other]], None).await.expect("well formed");
    let options = GetOptions::new().with_prefix();
    let queue = client.get("job/", Some(options)).await.expect("two of three serve");
    assert!(queue.kvs().is_empty(), "{lines:?}");
    let _ = fs::remove_file(&done);
}
