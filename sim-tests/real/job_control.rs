//! `leasehold lock` as a job of an interactive shell on a terminal: Ctrl-Z, `fg`, `&`.
//!
//! The terminal is a pseudo terminal whose other side is the test; the shell is bash, in a session
//! of its own. What is typed is echoed, so what is waited for is never typed as it is.

use std::{
    fs::File,
    io::{Read, Write},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::time::{Instant, sleep};
use nix::{pty::openpty, unistd::tcgetpgrp};
use tokio::process::{Child, Command};

use super::{member::Member, program::PATIENCE};

/// A shell at a terminal; killed when dropped.
struct Terminal {
    keys: File,
    seen: Arc<Mutex<String>>,
    _shell: Child,
}

impl Terminal {
    fn open() -> Self {
        let pty = openpty(None, None).expect("a pseudo terminal");
        let (keys, slave) = (File::from(pty.master), File::from(pty.slave));
        let side = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let mut shell = Command::new("setsid");
        shell
            .args(["--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"])
            .env("PS1", "")
            .env("LEASEHOLD", env!("CARGO_BIN_EXE_leasehold"))
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .kill_on_drop(true);
        let shell = shell.spawn().expect("setsid (util-linux) and bash can be run");
        let seen = Arc::new(Mutex::new(String::new()));
        let (mut screen, told) = (keys.try_clone().expect("a descriptor"), seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error when the last one has closed the terminal.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                *told.lock().expect("nobody panics with it") +=
                    &String::from_utf8_lossy(&bytes[..length]);
            }
        });
        Terminal { keys, seen, _shell: shell }
    }

    fn seen(&self) -> String {
        self.seen.lock().expect("nobody panics with it").clone()
    }

    fn type_in(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Types the command line of a job; its command says its process group first.
    async fn start(&mut self, member: &Member, ttl: &str, script: &str, tail: &str) -> i32 {
        let endpoint = member.endpoint();
        self.type_in(&format!(
            "$LEASEHOLD lock job --ttl {ttl} --endpoints {endpoint} -- \
             sh -c 'echo gro\"\"up $$ !; {script}' {tail}\n"
        ));
        let line = self.shows("group ", " !").await;
        line.parse().expect("a process id")
    }

    /// Waits for a text, and gives what is between it and another one behind it.
    async fn shows(&self, text: &str, end: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.seen();
            if let Some((_, rest)) = seen.split_once(text)
                && let Some((between, _)) = rest.split_once(end)
            {
                return between.to_owned();
            }
            assert!(Instant::now() < deadline, "no {text:?} on the terminal:\n{seen}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the shell says that its job has stopped, and takes commands again. Of one in the
    /// background it says so when it is asked.
    async fn job_stops(&mut self, background: bool) {
        let deadline = Instant::now() + PATIENCE;
        while !self.seen().contains("Stopped") {
            assert!(Instant::now() < deadline, "the job does not stop:\n{}", self.seen());
            if background {
                self.type_in("jobs\n");
            }
            sleep(Duration::from_millis(50)).await;
        }
        self.type_in("echo the shell is ba\"\"ck\n");
        self.shows("the shell is back", "\n").await;
    }

    /// Waits until a process group has the terminal.
    async fn is_given_to(&self, group: i32) {
        let deadline = Instant::now() + PATIENCE;
        while tcgetpgrp(&self.keys).map(|group| group.as_raw()) != Ok(group) {
            assert!(Instant::now() < deadline, "{group} has no terminal:\n{}", self.seen());
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// The exit status of the job that was in the foreground last.
    async fn status(&mut self) -> String {
        self.type_in("echo stat\"\"us $? !\n");
        self.shows("status ", " !").await
    }
}

/// Ctrl-Z gives the shell its terminal back, and `fg` gives it to the command again, with the lock
/// still held. Nothing of the session's time is left out: it is over in less than the TTL.
#[tokio::test]
async fn suspended_and_continued() {
    let member = Member::start().await;
    let mut terminal = Terminal::open();
    let script = "read line; echo g\"\"ot $line; exit 7";
    let group = terminal.start(&member, "2m", script, "").await;
    terminal.is_given_to(group).await;
    terminal.type_in("\u{1a}");
    terminal.job_stops(false).await;
    assert_eq!(member.queue("job/").await.len(), 1);
    terminal.type_in("fg\n");
    terminal.is_given_to(group).await;
    terminal.type_in("hello\n");
    terminal.shows("got hello", "\n").await;
    assert_eq!(terminal.status().await, "7");
    assert!(member.queue("job/").await.is_empty());
}

/// A job that was suspended for longer than its lease lived has lost its lock, to whomever: it is
/// killed where it stands, and does not run on.
#[tokio::test]
async fn suspended_for_too_long() {
    let member = Member::start().await;
    let mut terminal = Terminal::open();
    let group = terminal.start(&member, "2s", "while echo ti\"\"ck; do sleep 0.01; done", "").await;
    terminal.is_given_to(group).await;
    terminal.shows("tick", "\n").await;
    terminal.type_in("\u{1a}");
    terminal.job_stops(false).await;
    member.wait_for_queue("job/", 0, PATIENCE).await;
    let before = terminal.seen().matches("tick").count();
    terminal.type_in("fg\n");
    terminal.shows("the command was stopped", "\n").await;
    let after = terminal.seen().matches("tick").count();
    assert_eq!(before, after, "{}", terminal.seen());
    assert_eq!(terminal.status().await, "75");
}

/// In the background a command that reads from the terminal stops the job, as any job; `fg` gives
/// it the terminal.
#[tokio::test]
async fn reads_from_the_background() {
    let member = Member::start().await;
    let mut terminal = Terminal::open();
    let script = "read line; echo g\"\"ot $line; exit 7";
    let group = terminal.start(&member, "2m", script, "&").await;
    terminal.job_stops(true).await;
    terminal.type_in("fg\n");
    terminal.is_given_to(group).await;
    terminal.type_in("hello\n");
    terminal.shows("got hello", "\n").await;
    assert_eq!(terminal.status().await, "7");
}

/// With its input from elsewhere the command does not get the terminal; Ctrl-Z stops it all the
/// same, together with the job. When it wants the terminal nevertheless, it gets it.
#[tokio::test]
async fn input_from_elsewhere() {
    let member = Member::start().await;
    let mut terminal = Terminal::open();
    let script = "read line </dev/tty; echo g\"\"ot $line; exit 7";
    let group = terminal.start(&member, "2m", script, "</dev/null").await;
    terminal.is_given_to(group).await;
    terminal.type_in("hello\n");
    terminal.shows("got hello", "\n").await;
    assert_eq!(terminal.status().await, "7");

    let mut terminal = Terminal::open();
    let script = "trap \"echo go\"\"ne on\" CONT; while :; do sleep 0.05; done";
    let group = terminal.start(&member, "2m", script, "</dev/null").await;
    terminal.type_in("\u{1a}");
    terminal.job_stops(false).await;
    let stat = std::fs::read_to_string(format!("/proc/{group}/stat")).expect("it is there");
    assert!(stat.contains(") T "), "the command runs while its job is stopped: {stat}");
    terminal.type_in("fg\n");
    terminal.shows("gone on", "\n").await;
    terminal.type_in("\u{3}");
    assert_eq!(terminal.status().await, "130");
    assert!(member.queue("job/").await.is_empty());
}
