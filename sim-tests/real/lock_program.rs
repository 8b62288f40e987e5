//! `leasehold lock`, the program, against a real etcd: real processes and real signals.

use std::{
    fs,
    path::PathBuf,
    process::Stdio,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use leasehold::{
    concurrency::Mutex,
    time::{Instant, sleep, timeout},
};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
};

use super::member::Member;

const SECOND: Duration = Duration::from_secs(1);
/// Nothing here takes longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

fn lock(member: &Member, options: &[&str], command: &[&str]) -> Command {
    lock_at(member.endpoint(), options, command)
}

fn lock_at(endpoint: &str, options: &[&str], command: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    program
        .args(["lock", "job", "--endpoints", endpoint])
        .args(options)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    program
}

/// The exit status, and what was printed.
async fn outcome(child: Child) -> (Option<i32>, String, String) {
    let output = timeout(PATIENCE, child.wait_with_output()).await.expect("it ends");
    let output = output.expect("it can be waited for");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

async fn ends(command: &mut Command) -> (Option<i32>, String, String) {
    outcome(command.spawn().expect("the program can be run")).await
}

/// A file for what a command writes.
fn scratch(name: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64()
}

/// The lines of a file of times, in seconds.
fn times(path: &PathBuf) -> Vec<f64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

async fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The command has the token, the standard input and its own exit status, and afterwards nothing is
/// left in etcd.
#[tokio::test]
async fn runs_the_command_under_the_lock() {
    let member = Member::start().await;
    let script = "echo $LEASEHOLD_LOCK $LEASEHOLD_TOKEN; cat; exit 7";
    let mut child = lock(&member, &[], &["sh", "-c", script])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    member.wait_for_queue("job/", 1, PATIENCE).await;
    let (_, token) = member.queue("job/").await[0].clone();
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"through\n").await.expect("written");
    drop(stdin);
    let (status, printed, _) = outcome(child).await;
    assert_eq!((status, printed.as_str()), (Some(7), &*format!("job {token}\nthrough\n")));
    assert!(member.queue("job/").await.is_empty());
}

/// The statuses of shells, and those of its own.
#[tokio::test]
async fn exit_statuses() {
    let member = Member::start().await;
    let status = async |command: &[&str]| ends(&mut lock(&member, &[], command)).await.0;
    assert_eq!(status(&["true"]).await, Some(0));
    assert_eq!(status(&["no-such-command-at-all"]).await, Some(127));
    assert_eq!(status(&["/"]).await, Some(126));
    assert_eq!(status(&["sh", "-c", "kill -9 $$"]).await, Some(137));
    let usage = ends(&mut lock(&member, &["--ttl", "3s", "--grace", "2s"], &["true"])).await;
    assert_eq!(usage.0, Some(2));
    assert!(usage.2.contains("--grace 2s"), "{}", usage.2);
    let unit = ends(&mut lock(&member, &["--ttl", "3"], &["true"])).await;
    assert_eq!(unit.0, Some(2));
    assert!(unit.2.contains("unit"), "{}", unit.2);
    let asked = Instant::now();
    let nobody = ends(&mut lock_at("127.0.0.1:1", &["--wait", "1s"], &["true"])).await;
    assert_eq!(nobody.0, Some(69));
    assert!(nobody.2.contains("127.0.0.1:1"), "{}", nobody.2);
    assert!(asked.elapsed() >= SECOND, "it was asked again: {:?}", asked.elapsed());
    assert!(member.queue("job/").await.is_empty());
}

/// While somebody holds the lock the command does not run, and `--wait` bounds the waiting.
#[tokio::test]
async fn excludes_others() {
    let member = Member::start().await;
    let session = member.session(10).await;
    let mutex = Mutex::new(&session, "job");
    mutex.lock().await.expect("nobody else");
    let refused = ends(&mut lock(&member, &["--wait", "300ms"], &["echo", "inside"])).await;
    assert_eq!((refused.0, refused.1.as_str()), (Some(75), ""));
    assert!(refused.2.contains("300ms"), "{}", refused.2);
    let waiting = lock(&member, &[], &["echo", "inside"]).spawn().expect("it can be run");
    member.wait_for_queue("job/", 2, PATIENCE).await;
    mutex.unlock().await.expect("held");
    let (status, printed, _) = outcome(waiting).await;
    assert_eq!((status, printed.as_str()), (Some(0), "inside\n"));
}

/// `--wait 0s` takes a lock that is free and does not wait for one that is not; a loser leaves no
/// key.
#[tokio::test]
async fn waiting_for_no_time_takes_a_free_lock() {
    let member = Member::start().await;
    let free = ends(&mut lock(&member, &["--wait", "0s"], &["echo", "inside"])).await;
    assert_eq!((free.0, free.1.as_str()), (Some(0), "inside\n"), "{}", free.2);
    let session = member.session(10).await;
    Mutex::new(&session, "job").lock().await.expect("nobody else");
    let held = ends(&mut lock(&member, &["--wait", "0s"], &["echo", "inside"])).await;
    assert_eq!((held.0, held.1.as_str()), (Some(75), ""));
    assert!(held.2.contains("held by another"), "{}", held.2);
    assert_eq!(member.queue("job/").await.len(), 1);
}

/// As for etcdctl, a variable that is set to nothing is not set.
#[tokio::test]
async fn empty_variables_count_as_not_set() {
    let member = Member::start().await;
    let names = ["CACERT", "CERT", "KEY", "USER", "PASSWORD", "DIAL_TIMEOUT", "ENDPOINTS"];
    let variables = names.map(|name| (format!("ETCDCTL_{name}"), ""));
    let (status, printed, said) =
        ends(lock(&member, &[], &["echo", "inside"]).envs(variables)).await;
    assert_eq!((status, printed.as_str()), (Some(0), "inside\n"), "{said}");
}

/// X03: etcd does not answer any more. The command is asked to end, and does not; it is killed
/// before the lease can expire, counted from the last renewal, and the status says that the lock
/// was lost.
#[tokio::test]
async fn x03_stops_the_command_before_the_lease_can_expire() {
    let member = Member::start().await;
    let (beats, asked) = (scratch("beats"), scratch("asked"));
    let script = format!(
        "trap 'date +%s.%N >>{}' TERM; while :; do date +%s.%N >>{}; sleep 0.05; done",
        asked.display(),
        beats.display()
    );
    let options = ["--ttl", "4s", "--grace", "1s"];
    let child = lock(&member, &options, &["sh", "-c", &script]).spawn().expect("it can be run");
    wait_for("the command runs", || !times(&beats).is_empty()).await;
    let frozen = unix_time();
    member.freeze();
    let (status, _, said) = outcome(child).await;
    member.thaw();
    assert_eq!(status, Some(75), "{said}");
    assert!(said.contains("lost"), "{said}");
    let (last, asked_at) = (*times(&beats).last().expect("beats"), times(&asked));
    // Every renewal was sent before the freeze.
    assert!(last < frozen + 4.0, "ran {} s after the freeze", last - frozen);
    assert!(last > frozen + 1.0, "ended {} s after the freeze", last - frozen);
    assert_eq!(asked_at.len(), 1);
    assert!(asked_at[0] < last - 0.5, "asked {} s before the end", last - asked_at[0]);
}

/// The grace is for all that the command has started: a shell ends at once when it is asked to, and
/// what it runs has its time nevertheless.
#[tokio::test]
async fn grace_is_for_the_whole_group() {
    let member = Member::start().await;
    let (ready, cleaned) = (scratch("group-ready"), scratch("group-cleaned"));
    let worker = format!(
        "trap 'sleep 0.5; date +%s.%N >>{}; exit' TERM; \
         date +%s.%N >>{}; while :; do sleep 0.05; done",
        cleaned.display(),
        ready.display()
    );
    // The second command keeps the shell from becoming the first.
    let command = ["sh", "-c", "sh -c \"$0\"; true", &worker];
    let options = ["--ttl", "6s", "--grace", "2s"];
    let child = lock(&member, &options, &command).spawn().expect("it can be run");
    wait_for("the worker runs", || !times(&ready).is_empty()).await;
    member.freeze();
    let (status, _, said) = outcome(child).await;
    member.thaw();
    assert_eq!(status, Some(75), "{said}");
    assert_eq!(times(&cleaned).len(), 1, "{said}");
}

/// A lease that is revoked from outside, or a key that is deleted, is known at once, long before
/// the next renewal. The command has its grace, and not more; the lease does not stay behind.
#[tokio::test]
async fn lost_lock_stops_the_command_at_once() {
    let member = Member::start().await;
    for revoke in [true, false] {
        let (ready, asked) = (scratch("lost-ready"), scratch("lost-asked"));
        let script = format!(
            "trap 'date +%s.%N >>{}; exit 3' TERM; date +%s.%N >>{}; while :; do sleep 0.05; done",
            asked.display(),
            ready.display()
        );
        let options = ["--ttl", "60s", "--grace", "10s"];
        let child = lock(&member, &options, &["sh", "-c", &script]).spawn().expect("it can be run");
        wait_for("the command runs", || !times(&ready).is_empty()).await;
        let mut client = member.another_client().await;
        let lease = client.leases().await.expect("readable").leases()[0].id();
        let begun = Instant::now();
        if revoke {
            client.lease_revoke(lease).await.expect("revoked");
        } else {
            let (key, _) = member.queue("job/").await[0].clone();
            client.delete(key, None).await.expect("deleted");
        }
        let (status, _, said) = outcome(child).await;
        assert_eq!(status, Some(75), "{said}");
        assert!(said.contains("lost") && said.contains("deleted"), "{said}");
        assert_eq!(times(&asked).len(), 1, "{said}");
        // A renewal would have told it after 20 s, or never.
        assert!(begun.elapsed() < 5 * SECOND, "{:?}", begun.elapsed());
        assert!(!member.has_lease(lease).await);
    }
}

/// A command that does not end when it is asked to is killed at the end of the grace, also when the
/// lock is lost by a delete.
#[tokio::test]
async fn lost_lock_kills_after_the_grace() {
    let member = Member::start().await;
    let ready = scratch("stubborn-ready");
    let script =
        format!("trap '' TERM; date +%s.%N >>{}; while :; do sleep 0.05; done", ready.display());
    let options = ["--ttl", "60s", "--grace", "1s"];
    let child = lock(&member, &options, &["sh", "-c", &script]).spawn().expect("it can be run");
    wait_for("the command runs", || !times(&ready).is_empty()).await;
    let begun = Instant::now();
    let (key, _) = member.queue("job/").await[0].clone();
    member.another_client().await.delete(key, None).await.expect("deleted");
    let (status, _, said) = outcome(child).await;
    assert_eq!(status, Some(75), "{said}");
    let took = begun.elapsed();
    assert!(took >= SECOND && took < 8 * SECOND, "{took:?}");
}

/// A stopped command cannot hear that its lock is lost: it is woken to be asked, and the program
/// ends in time, whether the lock was taken away or its lease is about to run out.
#[tokio::test]
async fn lost_lock_ends_a_stopped_command() {
    let member = Member::start().await;
    for deleted in [true, false] {
        let (ready, asked) = (scratch("stopped-ready"), scratch("stopped-asked"));
        let script = format!(
            "trap 'date +%s.%N >>{}; exit 3' TERM; echo $$ >>{}; while :; do sleep 0.05; done",
            asked.display(),
            ready.display()
        );
        let options = ["--ttl", "5s", "--grace", "2s"];
        let child = lock(&member, &options, &["sh", "-c", &script]).spawn().expect("it can be run");
        let group = || fs::read_to_string(&ready).unwrap_or_default().trim().to_owned();
        wait_for("the command runs", || !group().is_empty()).await;
        let group = group();
        let mut stop = std::process::Command::new("kill");
        stop.args(["-STOP", "--", &format!("-{group}")]);
        assert!(stop.status().expect("kill can be run").success());
        let stat = format!("/proc/{group}/stat");
        wait_for("it is stopped", || fs::read_to_string(&stat).is_ok_and(|s| s.contains(") T ")))
            .await;
        // Longer than the lease: it is renewed all the same.
        sleep(7 * SECOND).await;
        assert_eq!(member.queue("job/").await.len(), 1);
        let begun = Instant::now();
        if deleted {
            let (key, _) = member.queue("job/").await[0].clone();
            member.another_client().await.delete(key, None).await.expect("deleted");
        } else {
            member.freeze();
        }
        let (status, _, said) = outcome(child).await;
        member.thaw();
        assert_eq!(status, Some(75), "{said}");
        assert_eq!(times(&asked).len(), 1, "{said}");
        assert!(begun.elapsed() < 6 * SECOND, "{:?}", begun.elapsed());
    }
}

/// Signals go to the command, and while waiting for the lock they end the waiting.
#[tokio::test]
async fn signals_are_passed_on() {
    let member = Member::start().await;
    let ready = scratch("ready");
    let script = format!(
        "trap 'exit 9' TERM; date +%s.%N >>{}; while :; do sleep 0.05; done",
        ready.display()
    );
    let holder = lock(&member, &[], &["sh", "-c", &script]).spawn().expect("it can be run");
    wait_for("the command runs", || !times(&ready).is_empty()).await;
    let waiter = lock(&member, &[], &["echo", "inside"]).spawn().expect("it can be run");
    member.wait_for_queue("job/", 2, PATIENCE).await;
    let terminate = |child: &Child| {
        let id = child.id().expect("it runs").to_string();
        let killed = std::process::Command::new("kill").args(["-TERM", &id]).status();
        assert!(killed.expect("kill can be run").success());
    };
    terminate(&waiter);
    let (status, printed, _) = outcome(waiter).await;
    assert_eq!((status, printed.as_str()), (Some(128 + 15), ""));
    assert_eq!(member.queue("job/").await.len(), 1);
    terminate(&holder);
    assert_eq!(outcome(holder).await.0, Some(9));
    assert!(member.queue("job/").await.is_empty());
}

/// Under `nohup` neither the program nor its command ends by a SIGHUP.
#[tokio::test]
async fn ignored_signals_stay_ignored() {
    let member = Member::start().await;
    let (ready, go) = (scratch("nohup-ready"), scratch("nohup-go"));
    let script = format!(
        "date +%s.%N >>{}; until [ -e {} ]; do sleep 0.05; done; exit 5",
        ready.display(),
        go.display()
    );
    let inner = lock(&member, &[], &["sh", "-c", &script]);
    let mut outer = Command::new("sh");
    outer
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(inner.as_std().get_program())
        .args(inner.as_std().get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let holder = outer.spawn().expect("it can be run");
    wait_for("the command runs", || !times(&ready).is_empty()).await;
    let id = holder.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args(["-HUP", &id]).status();
    assert!(sent.expect("kill can be run").success());
    // Had it been passed on, the command would be gone before its next look for the file.
    sleep(SECOND / 2).await;
    fs::write(&go, "").expect("written");
    let (status, _, said) = outcome(holder).await;
    assert_eq!(status, Some(5), "{said}");
}
