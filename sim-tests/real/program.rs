//! The program under test as a process: its lines on standard error, its input, signals, its end.

use std::{
    ffi::OsStr,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::time::{Instant, sleep, timeout};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    task::JoinHandle,
};

/// Nothing that is waited for takes longer than this.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running `leasehold`; killed when dropped.
pub struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reading: JoinHandle<()>,
}

/// The program with these arguments, not yet started.
pub fn leasehold<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

impl Program {
    pub fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Program::spawn(&mut leasehold(arguments))
    }

    pub fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("the program can be run");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = lines.clone();
        let reading = tokio::spawn(async move {
            let mut stderr = stderr.lines();
            while let Ok(Some(line)) = stderr.next_line().await {
                heard.lock().expect("nobody panics with it").push(line);
            }
        });
        Program { child, lines, reading }
    }

    /// What it has printed so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("nobody panics with it").clone()
    }

    /// Waits for a line that contains this.
    pub async fn line(&self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.lines();
            if let Some(line) = lines.iter().find(|line| line.contains(part)) {
                return line.clone();
            }
            assert!(Instant::now() < deadline, "no line with {part:?}: {lines:?}");
            assert!(!self.reading.is_finished(), "it ended without {part:?}: {lines:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Types a key.
    pub async fn press(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(b"\n").await.expect("it reads");
    }

    /// Sends a signal, such as `-TERM`.
    pub fn signal(&self, signal: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = std::process::Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill can be run").success());
    }

    /// Kills it where it is, and waits until it is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// Waits for its end: the exit status, and all that it printed.
    pub async fn ends(mut self) -> (Option<i32>, Vec<String>) {
        drop(self.child.stdin.take());
        let status = timeout(PATIENCE, self.child.wait()).await;
        let lines = self.lines();
        let status = status.unwrap_or_else(|_| panic!("it does not end: {lines:?}"));
        timeout(PATIENCE, &mut self.reading).await.expect("its output ends").expect("no panic");
        (status.expect("it can be waited for").code(), self.lines())
    }
}

/// `leasehold storage` that listens.
pub struct Storage {
    pub program: Program,
    /// Where, as `host:port`.
    pub address: String,
}

impl Storage {
    /// Starts it with these arguments, on a port of the system's choice unless they name one.
    pub async fn start(arguments: &[&str]) -> Self {
        let named = arguments.contains(&"--listen");
        let listen: &[&str] = if named { &[] } else { &["--listen", "127.0.0.1:0"] };
        let program = Program::start([&["storage"], listen, arguments].concat());
        let line = program.line("listening on ").await;
        let (_, rest) = line.split_once("listening on ").expect("just found");
        let address = rest.split(';').next().expect("at least one part").to_owned();
        Storage { program, address }
    }
}
