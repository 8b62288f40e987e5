//! The lock program and an etcd with users: who is let in, and what is said to the others.

use std::time::Duration;

use leasehold::{
    etcd::{ConnectOptions, Permission},
    time::{Instant, sleep},
};

use super::{
    member::{Member, Setting},
    program::{PATIENCE, Program, leasehold},
};

const SECOND: Duration = Duration::from_secs(1);
/// The user of the locks; root's password is `root`.
const WORKER: &str = "worker:secret";

/// A member that knows root, and a worker who may use what is below `job/`.
async fn with_users(token_ttl_s: u32) -> Member {
    let arguments =
        ["--auth-token-ttl".to_owned(), token_ttl_s.to_string(), "--bcrypt-cost=4".to_owned()];
    let setting =
        Setting { arguments: arguments.to_vec(), options: ConnectOptions::new(), secure: false };
    let mut member = Member::start_as(&setting).await;
    let mut client = member.client.clone();
    client.role_add("locker").await.expect("new");
    let range = Permission::read_write("job/").with_prefix();
    client.role_grant_permission("locker", range).await.expect("there");
    client.user_add("worker", "secret", None).await.expect("new");
    client.user_grant_role("worker", "locker").await.expect("there");
    client.user_add("root", "root", None).await.expect("new");
    client.role_add("root").await.expect("new");
    client.user_grant_role("root", "root").await.expect("there");
    client.auth_enable().await.expect("root is there");
    member.log_in("root", "root").await;
    member
}

/// `lock NAME FLAGS -- sh -c SCRIPT`, not yet started. Nothing is left to the lease's end.
fn lock(member: &Member, name: &str, flags: &[&str], script: &str) -> tokio::process::Command {
    let mut command = leasehold(["lock", name, "--ttl", "2m", "--endpoints", member.endpoint()]);
    command.args(flags).args(["--", "sh", "-c", script]);
    command
}

async fn ends(command: &mut tokio::process::Command) -> (Option<i32>, Vec<String>) {
    Program::spawn(command).ends().await
}

/// The user by flag, by variable, and with the password apart.
#[tokio::test]
async fn user_is_let_in() {
    let member = with_users(300).await;
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);
    let none: &[&str] = &[];
    let cases: [Case<'_>; 5] = [
        (&["--user", WORKER], &[]),
        (&["--user", "worker", "--password", "secret"], &[]),
        (none, &[("ETCDCTL_USER", WORKER)]),
        (none, &[("ETCDCTL_USER", "worker"), ("ETCDCTL_PASSWORD", "secret")]),
        (&["--user", "root:root"], &[("ETCDCTL_USER", "worker:wrong")]),
    ];
    for (flags, variables) in cases {
        let before = member.revision().await;
        let mut command = lock(&member, "job", flags, "exit 7");
        command.envs(variables.iter().copied());
        assert_eq!(ends(&mut command).await, (Some(7), vec![]), "{flags:?} {variables:?}");
        assert_eq!(member.revision().await, before + 2);
    }
    assert!(member.queue("job/").await.is_empty());
}

/// A wrong password, an unknown user, none at all, a lock beyond the user's roles: status 69 and
/// one line that says which it is. And a user for an etcd that has none.
#[tokio::test]
async fn others_are_told_why_not() {
    let member = with_users(300).await;
    let before = member.revision().await;
    let cases: [(&str, &[&str], &str); 4] = [
        ("job", &["--user", "worker:wrong"], "etcd refuses at http://127.0.0.1:"),
        ("job", &["--user", "nobody:secret"], "authentication failed, invalid user ID or password"),
        ("job", &[], "see --user"),
        ("other", &["--user", WORKER], "permission denied"),
    ];
    for (name, flags, expected) in cases {
        let (status, lines) = ends(&mut lock(&member, name, flags, "true")).await;
        assert_eq!(status, Some(69), "{flags:?}: {lines:?}");
        assert_eq!(lines.len(), 1, "{flags:?}: {lines:?}");
        assert!(lines[0].contains(expected), "{flags:?}: {lines:?}");
    }
    assert_eq!(member.revision().await, before);
    let member = Member::start().await;
    let (status, lines) = ends(&mut lock(&member, "job", &["--user", WORKER], "true")).await;
    assert_eq!((status, lines.len()), (Some(69), 1), "{lines:?}");
    assert!(lines[0].contains("authentication is not enabled"), "{lines:?}");
    let (status, lines) = ends(&mut lock(&member, "job", &["--user", "worker"], "true")).await;
    assert_eq!((status, lines.len()), (Some(2), 1), "{lines:?}");
}

/// A command that runs longer than etcd remembers the token: the lock is given back all the same,
/// with a new one. Renewals, which need none, kept it meanwhile.
#[tokio::test]
async fn lock_outlives_its_token() {
    let mut member = with_users(1).await;
    let held = lock(&member, "job", &["--user", WORKER], "sleep 5; exit 7").spawn();
    let mut held = held.expect("it can be run");
    sleep(4 * SECOND).await;
    member.log_in("root", "root").await;
    assert_eq!(member.queue("job/").await.len(), 1);
    let status = held.wait().await.expect("it can be waited for");
    assert_eq!(status.code(), Some(7));
    member.log_in("root", "root").await;
    assert!(member.queue("job/").await.is_empty());
}

/// A waiter that is told to end leaves no key, although etcd revokes no lease with keys for one who
/// does not say who he is.
#[tokio::test]
async fn waiter_leaves_the_queue() {
    let member = with_users(300).await;
    let flags = ["--user", WORKER];
    let holder = Program::spawn(&mut lock(&member, "job", &flags, "sleep 60"));
    member.wait_for_queue("job/", 1, PATIENCE).await;
    let waiter = Program::spawn(&mut lock(&member, "job", &flags, "true"));
    member.wait_for_queue("job/", 2, PATIENCE).await;
    waiter.signal("-TERM");
    let (status, lines) = waiter.ends().await;
    assert_eq!(status, Some(128 + 15), "{lines:?}");
    assert_eq!(member.queue("job/").await.len(), 1, "{lines:?}");
    holder.signal("-TERM");
    let (status, lines) = holder.ends().await;
    assert_eq!(status, Some(128 + 15), "{lines:?}");
    assert!(member.queue("job/").await.is_empty(), "{lines:?}");
}

/// A waiter whose user is gone when its turn comes: status 69, and what etcd says.
#[tokio::test]
async fn waiter_whose_user_is_gone_is_told() {
    let mut member = with_users(1).await;
    let session = member.session(60).await;
    let mutex = leasehold::concurrency::Mutex::new(&session, "job");
    mutex.lock().await.expect("nobody else");
    let waiter = Program::spawn(&mut lock(&member, "job", &["--user", WORKER], "true"));
    member.wait_for_queue("job/", 2, PATIENCE).await;
    member.client.clone().user_delete("worker").await.expect("there");
    sleep(3 * SECOND).await;
    let before = Instant::now();
    mutex.unlock().await.expect("held");
    let (status, lines) = waiter.ends().await;
    assert_eq!(status, Some(69), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("authentication failed")), "{lines:?}");
    assert!(before.elapsed() < 20 * SECOND);
    member.log_in("root", "root").await;
}
