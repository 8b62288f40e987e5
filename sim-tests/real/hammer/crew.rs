//! The processes of a run: eight clients and the storage, stopped, continued, killed and started
//! anew as the seed says. Whatever ends the test, none of them is left.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold::{
    history::{Event, EventKind, FaultAction, NodeName, Phase},
    seed::{Seed, Stream},
    time::{Instant, sleep},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::monotonic_ns;

/// Clients that have been told to end must have ended by then: a lock call takes at most 20 s.
const SETTLE_MAX: Duration = Duration::from_secs(45);
/// Between the check that the lock is held and the write, at most: there a stop does harm.
const LINGER: &str = "80ms";

/// How a run is made.
pub struct Crew {
    pub seed: u64,
    pub guard: &'static str,
    pub token: &'static str,
    pub workload: &'static str,
    pub clients: u8,
    pub traffic: Duration,
    pub endpoints: Vec<String>,
    pub directory: PathBuf,
}

/// What was done to the clients.
#[derive(Debug, Default)]
pub struct Done {
    pub stops: u32,
    /// Of them, those between check and write.
    pub stops_at_check: u32,
    pub kills: u32,
}

/// A process that dies with its owner.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // A failure here means that it is gone already. SIGKILL ends a stopped process too.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Owned {
    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.0.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("it is ours and not yet waited for");
    }

    async fn ended(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self.0.try_wait().expect("it can be waited for") {
                Some(status) => return status.success(),
                None if Instant::now() >= deadline => return false,
                None => sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

struct Client {
    number: u8,
    life: u16,
    process: Owned,
    file: PathBuf,
    /// The index of the fault, and when it ends.
    stopped: Option<(u32, Instant)>,
}

impl Client {
    /// Whether its last word was that it holds the lock: it is about to write.
    fn is_at_check(&self) -> bool {
        let line = last_line(&self.file).unwrap_or_default();
        line.contains("\"held\":{") && line.contains("\"held\":true")
    }
}

fn last_line(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(1000)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    Ok(tail.trim_end().lines().last().unwrap_or_default().to_owned())
}

/// A run that is under way.
pub struct Running {
    crew: Crew,
    storage: Owned,
    storage_url: String,
    clients: Vec<Client>,
    files: Vec<PathBuf>,
    nemesis: Vec<Event>,
    faults: u32,
    pub done: Done,
}

impl Crew {
    pub async fn start(self) -> Running {
        fs::create_dir_all(&self.directory).expect("a directory of its own");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let address = port.local_addr().expect("bound").to_string();
        drop(port);
        let file = self.directory.join("storage.jsonl");
        let mut command = worker("storage", &file);
        command.args(["--listen", &address, "--guard", self.guard]);
        let storage = Owned(command.spawn().expect("the program can be run"));
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "the storage does not listen");
            sleep(Duration::from_millis(10)).await;
        }
        let mut running = Running {
            storage,
            storage_url: format!("http://{address}"),
            clients: Vec::new(),
            files: vec![file],
            nemesis: Vec::new(),
            faults: 0,
            done: Done::default(),
            crew: self,
        };
        running.phase(Phase::Setup);
        running.phase(Phase::Traffic);
        for number in 1..=running.crew.clients {
            running.start_client(number, 1);
        }
        running
    }
}

fn worker(role: &str, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(["worker", role, "--out"]).arg(out).stdin(Stdio::null());
    command
}

impl Running {
    fn note(&mut self, node: NodeName, kind: EventKind) {
        let seq = self.nemesis.len() as u64;
        self.nemesis.push(Event { seq, at_ns: monotonic_ns(), node, kind });
    }

    fn phase(&mut self, phase: Phase) {
        self.note(NodeName::Nemesis, EventKind::Phase(phase));
    }

    fn common(&self, role: &str, file: &Path) -> Command {
        let mut command = worker(role, file);
        command
            .args(["--storage", &self.storage_url, "--workload", self.crew.workload])
            .args(["--endpoints", &self.crew.endpoints.join(",")]);
        command
    }

    fn start_client(&mut self, number: u8, life: u16) {
        let file = self.crew.directory.join(format!("client-{number}-{life}.jsonl"));
        let mut command = self.common("client", &file);
        command.args(["--number", &number.to_string(), "--life", &life.to_string()]).args([
            "--seed",
            &self.crew.seed.to_string(),
            "--linger",
            LINGER,
            "--token",
            self.crew.token,
        ]);
        let process = Owned(command.spawn().expect("the program can be run"));
        self.files.push(file.clone());
        self.clients.push(Client { number, life, process, file, stopped: None });
    }

    /// Does what the seed says until the traffic is over.
    pub async fn strike(&mut self) {
        let mut stream = Seed(self.crew.seed).stream("hammer");
        let end = Instant::now() + self.crew.traffic;
        let mut next = Instant::now() + Duration::from_millis(1500);
        while Instant::now() < end {
            self.resume(|until| until <= Instant::now());
            if Instant::now() >= next {
                self.one(&mut stream).await;
                next = Instant::now() + stream.duration(ms(200), ms(1000));
            }
            sleep(ms(5)).await;
        }
    }

    async fn one(&mut self, stream: &mut Stream) {
        let (kills, at_check) = match stream.below(100) {
            0..50 => (false, true),
            50..70 => (false, false),
            70..85 => (true, true),
            _ => (true, false),
        };
        let length = stream.duration(ms(4000), ms(5000));
        let draw = stream.below(self.clients.len() as u64) as usize;
        let target = match at_check {
            true => self.wait_for_check().await,
            false => Some(draw),
        };
        let Some(at) = target.filter(|at| self.clients[*at].stopped.is_none()) else { return };
        match kills {
            true => self.kill(at),
            false => self.stop(at, length).await,
        }
    }

    /// A client between check and write, if one comes there soon.
    async fn wait_for_check(&self) -> Option<usize> {
        let deadline = Instant::now() + ms(1500);
        while Instant::now() < deadline {
            let there = |client: &Client| client.stopped.is_none() && client.is_at_check();
            if let Some(at) = self.clients.iter().position(there) {
                return Some(at);
            }
            sleep(ms(2)).await;
        }
        None
    }

    async fn stop(&mut self, at: usize, length: Duration) {
        let index = self.faults;
        self.faults += 1;
        let node = NodeName::Client(self.clients[at].number);
        self.note(node, EventKind::Fault { index, action: FaultAction::Begin });
        let client = &mut self.clients[at];
        client.process.signal(Signal::SIGSTOP);
        client.stopped = Some((index, Instant::now() + length));
        // The signal is delivered before the process runs again; what it has written is complete.
        sleep(ms(2)).await;
        self.done.stops += 1;
        self.done.stops_at_check += u32::from(self.clients[at].is_at_check());
    }

    fn resume(&mut self, due: impl Fn(Instant) -> bool) {
        for at in 0..self.clients.len() {
            let client = &mut self.clients[at];
            let Some((index, _)) = client.stopped.take_if(|(_, until)| due(*until)) else {
                continue;
            };
            client.process.signal(Signal::SIGCONT);
            let node = NodeName::Client(client.number);
            self.note(node, EventKind::Fault { index, action: FaultAction::Effect(1) });
            self.note(node, EventKind::Fault { index, action: FaultAction::End });
        }
    }

    fn kill(&mut self, at: usize) {
        let Client { number, life, process, .. } = self.clients.swap_remove(at);
        drop(process);
        self.note(NodeName::Client(number), EventKind::Killed);
        self.note(NodeName::Client(number), EventKind::Restarted);
        self.start_client(number, life + 1);
        self.done.kills += 1;
    }

    /// Heals, lets the clients finish, and reads the final state. The events of this process, and
    /// the files of the others.
    pub async fn settle(mut self) -> (Vec<Event>, Vec<PathBuf>, Done) {
        self.phase(Phase::Heal);
        self.resume(|_| true);
        for client in &self.clients {
            client.process.signal(Signal::SIGTERM);
        }
        self.phase(Phase::Settle);
        for client in &mut self.clients {
            let ended = client.process.ended(SETTLE_MAX).await;
            assert!(ended, "client {} did not end well", client.number);
        }
        self.phase(Phase::FinalReads);
        let file = self.crew.directory.join("final.jsonl");
        let mut reads = Owned(self.common("read", &file).spawn().expect("the program can be run"));
        assert!(reads.ended(SETTLE_MAX).await, "the final reads failed");
        self.files.push(file);
        self.storage.signal(Signal::SIGTERM);
        assert!(self.storage.ended(SETTLE_MAX).await, "the storage did not end well");
        (self.nemesis, self.files, self.done)
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
