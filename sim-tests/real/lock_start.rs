//! `leasehold lock` when etcd cannot serve at its start, and then can.

use std::time::Duration;

use leasehold::time::Instant;

use super::{member::Member, program::Program, trio::Trio};

fn lock(endpoints: &str, options: &[&str]) -> Program {
    let head = ["lock", "job", "--endpoints", endpoints, "--dial-timeout", "500ms"];
    Program::start([&head, options, &["--", "sh", "-c", "exit 7"]].concat())
}

/// Two of three members are dead: the third knows no leader, and nothing can be granted. When one
/// of them is back, the program gets its lease and runs the command.
#[tokio::test]
async fn waits_for_a_leader() {
    let mut trio = Trio::start().await;
    trio.kill(0);
    trio.kill(1);
    let program = lock(&trio.endpoints()[2], &["--wait", "1m"]);
    program.line("it is tried again for ").await;
    trio.start_again(0);
    let (status, lines) = program.ends().await;
    assert_eq!(status, Some(7), "{lines:?}");
}

/// A member that does not answer is asked until `--wait` is over, and not longer; one that answers
/// by then is used.
#[tokio::test]
async fn waits_for_a_silent_member() {
    let member = Member::start().await;
    member.freeze();
    let begun = Instant::now();
    let (status, lines) = lock(member.endpoint(), &["--wait", "2s"]).ends().await;
    let took = begun.elapsed();
    assert_eq!(status, Some(69), "{lines:?}");
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(5), "{took:?}");
    let program = lock(member.endpoint(), &[]);
    program.line("it is tried again for ").await;
    member.thaw();
    let (status, lines) = program.ends().await;
    assert_eq!(status, Some(7), "{lines:?}");
}
