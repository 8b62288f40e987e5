//! Three etcd members on loopback, one of which can be killed and started again on its data.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use leasehold::{
    etcd::Client,
    time::{Instant, sleep, timeout},
};

const START_MAX: Duration = Duration::from_secs(40);

/// A cluster of three, and a client of all.
pub struct Trio {
    children: Vec<Child>,
    ports: Vec<[u16; 2]>,
    directory: PathBuf,
    pub client: Client,
}

impl Drop for Trio {
    fn drop(&mut self) {
        for child in &mut self.children {
            // A failure here means that it is gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Trio {
    pub async fn start() -> Trio {
        // All are open at once, so that they differ.
        let open: Vec<TcpListener> = (0..6)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback"))
            .collect();
        let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
        let ports: Vec<[u16; 2]> =
            open.chunks(2).map(|two| [port(&two[0]), port(&two[1])]).collect();
        drop(open);
        let directory = std::env::temp_dir().join(format!(
            "leasehold-trio-{}-{}",
            std::process::id(),
            ports[0][0]
        ));
        fs::create_dir_all(&directory).expect("a directory of its own");
        let endpoints: Vec<String> = ports.iter().map(|[port, _]| url(*port)).collect();
        let client = Client::connect(&endpoints, None).await.expect("well formed");
        let mut trio = Trio { children: Vec::new(), ports, directory, client };
        for member in 0..3 {
            let child = trio.spawn(member);
            trio.children.push(child);
        }
        trio.wait_until_it_serves().await;
        trio
    }

    fn spawn(&self, member: usize) -> Child {
        let program = std::env::var_os("LEASEHOLD_ETCD").unwrap_or_else(|| "etcd".into());
        let [client, peer] = self.ports[member].map(url);
        let named = |(name, [_, peer]): (usize, &[u16; 2])| format!("m{name}={}", url(*peer));
        let cluster: Vec<String> = self.ports.iter().enumerate().map(named).collect();
        let log = self.directory.join(format!("log-{member}"));
        let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        Command::new(program)
            .arg("--data-dir")
            .arg(self.directory.join(format!("data-{member}")))
            .args(["--name", &format!("m{member}"), "--initial-cluster", &cluster.join(",")])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("etcd can be run (LEASEHOLD_ETCD, or etcd in PATH)")
    }

    async fn wait_until_it_serves(&self) {
        let deadline = Instant::now() + START_MAX;
        let mut client = self.client.clone();
        loop {
            let asked = timeout(Duration::from_secs(1), client.get("health", None)).await;
            if matches!(asked, Ok(Ok(_))) {
                return;
            }
            assert!(Instant::now() < deadline, "three members of etcd do not serve");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Where the members listen for clients.
    pub fn endpoints(&self) -> Vec<String> {
        self.ports.iter().map(|[port, _]| url(*port)).collect()
    }

    /// Kills one member after a while, and starts it again some seconds later.
    pub async fn kill_and_restart(&mut self) {
        sleep(Duration::from_secs(4)).await;
        self.kill(0);
        sleep(Duration::from_secs(4)).await;
        self.start_again(0);
    }

    /// Kills one member.
    pub fn kill(&mut self, member: usize) {
        self.children[member].kill().expect("it runs");
        self.children[member].wait().expect("it was killed");
    }

    /// Starts one that was killed, on its data.
    pub fn start_again(&mut self, member: usize) {
        self.children[member] = self.spawn(member);
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
