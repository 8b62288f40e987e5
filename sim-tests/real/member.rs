//! One real etcd member: started for a test, killed by its process id when dropped.
//!
//! It can be frozen (SIGSTOP): requests then stay without an answer and may still be served later,
//! which is the nearest that a real server comes to "outcome unknown".

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold::{
    concurrency::{Session, SessionOptions},
    etcd::{Client, ConnectOptions, GetOptions},
    time::{Instant, sleep, timeout},
};

/// A member that does not answer by then counts as broken. A fresh one takes about a second.
const START_MAX: Duration = Duration::from_secs(30);
/// Another process may take a port between our look and etcd's bind.
const START_ATTEMPTS: u32 = 3;

/// How a member is started, and what it wants of its clients.
#[derive(Default)]
pub struct Setting {
    /// Listens with TLS; `arguments` must say with which files.
    pub secure: bool,
    pub arguments: Vec<String>,
    pub options: ConnectOptions,
}

/// A running etcd of one member, and a client of it.
pub struct Member {
    child: Child,
    directory: PathBuf,
    endpoint: String,
    options: ConnectOptions,
    pub client: Client,
}

impl Member {
    /// Starts a member and waits until it serves.
    pub async fn start() -> Member {
        Member::start_as(&Setting::default()).await
    }

    /// The same, not with etcd's defaults.
    pub async fn start_as(setting: &Setting) -> Member {
        let mut last = String::new();
        for _ in 0..START_ATTEMPTS {
            match Member::try_start(setting).await {
                Ok(member) => return member,
                Err(why) => last = why,
            }
        }
        panic!("no etcd to test against (set LEASEHOLD_ETCD, or put etcd in PATH): {last}");
    }

    async fn try_start(setting: &Setting) -> Result<Member, String> {
        let program = std::env::var_os("LEASEHOLD_ETCD").unwrap_or_else(|| "etcd".into());
        let [client_port, peer_port] = free_ports();
        let scheme = if setting.secure { "https" } else { "http" };
        let endpoint = format!("{scheme}://127.0.0.1:{client_port}");
        let peer = format!("http://127.0.0.1:{peer_port}");
        let directory = std::env::temp_dir()
            .join(format!("leasehold-real-{}-{client_port}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let log = fs::File::create(directory.join("log")).map_err(|error| error.to_string())?;
        let child = Command::new(&program)
            .arg("--data-dir")
            .arg(directory.join("data"))
            .args(["--name", "default", "--initial-cluster", &format!("default={peer}")])
            .args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(&setting.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.to_string_lossy()))?;
        let options = setting.options.clone();
        let client = Client::connect([&endpoint], Some(options.clone())).await;
        let client = client.map_err(|error| error.to_string())?;
        let mut member = Member { child, directory, endpoint, options, client };
        member.wait_until_it_serves().await?;
        Ok(member)
    }

    async fn wait_until_it_serves(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + START_MAX;
        let mut client = self.client.clone();
        loop {
            let asked = timeout(Duration::from_secs(1), client.get("health", None)).await;
            if matches!(asked, Ok(Ok(_))) {
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || Instant::now() >= deadline {
                let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                return Err(format!("etcd does not serve (ended: {ended:?}); its log:\n{log}"));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Where it listens for clients.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A client with a connection of its own.
    pub async fn another_client(&self) -> Client {
        let options = Some(self.options.clone());
        Client::connect([&self.endpoint], options).await.expect("the endpoint is well formed")
    }

    /// From now on its clients are of this user. Once more: with a fresh token.
    pub async fn log_in(&mut self, user: &str, password: &str) {
        self.options = self.options.clone().with_user(user, password);
        self.client = self.another_client().await;
    }

    /// A session with this TTL in seconds, its requests bounded by one second.
    pub async fn session(&self, ttl_s: i64) -> Session {
        let options = SessionOptions {
            ttl_s,
            request_timeout: Duration::from_secs(1),
            ..SessionOptions::default()
        };
        Session::new(&self.client, options).await.expect("etcd serves")
    }

    /// The keys under this prefix with their create revisions, oldest first.
    pub async fn queue(&self, prefix: &str) -> Vec<(String, i64)> {
        let options = Some(GetOptions::new().with_prefix());
        let reply = self.client.clone().get(prefix, options).await.expect("etcd serves");
        let mut keys: Vec<_> = reply
            .kvs()
            .iter()
            .map(|kv| (String::from_utf8_lossy(kv.key()).into_owned(), kv.create_revision()))
            .collect();
        keys.sort_by_key(|(_, revision)| *revision);
        keys
    }

    /// Waits until that many keys are under the prefix.
    pub async fn wait_for_queue(&self, prefix: &str, length: usize, limit: Duration) {
        let reached = timeout(limit, async {
            while self.queue(prefix).await.len() != length {
                sleep(Duration::from_millis(10)).await;
            }
        });
        if reached.await.is_err() {
            panic!("not {length} keys under {prefix}: {:?}", self.queue(prefix).await);
        }
    }

    /// The store's revision.
    pub async fn revision(&self) -> i64 {
        let reply = self.client.clone().get("revision", None).await.expect("etcd serves");
        reply.header().expect("a header").revision()
    }

    /// Whether etcd has this lease.
    pub async fn has_lease(&self, lease: i64) -> bool {
        let reply = self.client.clone().lease_time_to_live(lease, None).await;
        reply.expect("etcd serves").ttl() >= 0
    }

    /// Stops the process where it is.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.expect("kill can be run").success());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // A failure here means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn free_ports() -> [u16; 2] {
    // Both are open at once, so that they differ.
    let open = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback"));
    open.map(|listener| listener.local_addr().expect("bound").port())
}
