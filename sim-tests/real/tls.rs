//! The programs and an etcd that speaks TLS only and wants certificates of its clients.

use std::{fs, time::Duration};

use super::{
    certificates::Certificates,
    member::Member,
    program::{Program, Storage, leasehold},
};

/// The arguments of `lock job … -- true`.
fn lock<'a>(endpoint: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    let head = ["lock", "job", "--dial-timeout", "2s", "--wait", "1s", "--endpoints", endpoint];
    [&head, flags, &["--", "true"]].concat()
}

async fn ends(arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    Program::start(arguments).ends().await
}

/// `lock` with its flags, with or without the scheme, and with the variables of etcdctl; the lock
/// is taken and given back.
#[tokio::test]
async fn lock_over_tls() {
    let files = Certificates::new("lock");
    let member = Member::start_as(&files.setting()).await;
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| files.path(name));
    let flags = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    let bare = member.endpoint().trim_start_matches("https://");
    for endpoint in [member.endpoint(), bare] {
        let before = member.revision().await;
        let (status, lines) = ends(&lock(endpoint, &flags)).await;
        assert_eq!((status, lines), (Some(0), vec![]));
        assert_eq!(member.revision().await, before + 2);
    }
    let mut command = leasehold(lock(member.endpoint(), &[]));
    command.env("ETCDCTL_CACERT", &ca).env("ETCDCTL_CERT", &cert).env("ETCDCTL_KEY", &key);
    let (status, lines) = Program::spawn(&mut command).ends().await;
    assert_eq!((status, lines), (Some(0), vec![]));
    assert!(member.queue("job/").await.is_empty());
}

/// contrib/lock's pair: client 1 holds the lock, loses its lease, and is refused after client 2.
#[tokio::test]
async fn contrib_pair_over_tls() {
    let files = Certificates::new("pair");
    let member = Member::start_as(&files.setting()).await;
    let storage = Storage::start(&[]).await;
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| files.path(name));
    let url = format!("http://{}", storage.address);
    let client = |number: &'static str| {
        let mut command = leasehold(["client", number, "--endpoints", member.endpoint()]);
        command.args(["--storage", &url, "--ttl", "60"]);
        command.args(["--cacert", &ca, "--cert", &cert, "--key", &key]);
        Program::spawn(&mut command)
    };
    let mut first = client("1");
    first.line("please manually revoke").await;
    let leases = member.client.clone().leases().await.expect("readable");
    member.client.clone().lease_revoke(leases.leases()[0].id()).await.expect("revoked");
    let (status, lines) = client("2").ends().await;
    assert_eq!(status, Some(0), "{lines:?}");
    first.press().await;
    let (status, lines) = first.ends().await;
    assert!(
        lines.iter().any(|line| line.contains("expected fail to write")),
        "{status:?} {lines:?}"
    );
}

/// Whoever cannot be let in is told why, with status 69; etcd hears nothing of the lock.
#[tokio::test]
async fn refused_connections_are_explained() {
    let (files, others) = (Certificates::new("refused"), Certificates::new("others"));
    let member = Member::start_as(&files.setting()).await;
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| files.path(name));
    let [other_ca, other_cert, other_key] =
        ["ca.pem", "client.pem", "client.key"].map(|name| others.path(name));
    let before = member.revision().await;
    // What is heard of a handshake that failed depends on who closes first; the hint does not.
    let cases: [(&[&str], &str); 4] = [
        (&["--cacert", &ca], "--cert and --key"),
        (&["--cacert", &other_ca, "--cert", &cert, "--key", &key], "see --cacert"),
        (&["--cacert", &ca, "--cert", &other_cert, "--key", &other_key], "certificate of --cert"),
        // Of no authority that the system knows.
        (&["--cert", &cert, "--key", &key], "see --cacert"),
    ];
    for (flags, expected) in cases {
        let (status, lines) = ends(&lock(member.endpoint(), flags)).await;
        assert_eq!(status, Some(69), "{flags:?}: {lines:?}");
        // A connection that was just dropped is tried again, and that is said, too.
        assert!((1..=2).contains(&lines.len()), "{flags:?}: {lines:?}");
        for line in &lines {
            assert!(line.contains(expected), "{flags:?}: {lines:?}");
            assert!(line.contains(member.endpoint()), "{lines:?}");
        }
    }
    let plain = member.endpoint().replace("https://", "http://");
    let (status, lines) = ends(&lock(&plain, &[])).await;
    assert_eq!(status, Some(69), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("https://")), "{lines:?}");
    assert_eq!(member.revision().await, before);
}

/// A file that is not there, or not what its flag wants, is a usage error that names the flag; so
/// is encryption that is wanted of an endpoint that says `http`. Nobody is asked.
#[tokio::test]
async fn bad_files_name_their_flag() {
    let files = Certificates::new("bad");
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| files.path(name));
    let absent = files.path("absent.pem");
    let empty = files.path("empty.pem");
    fs::write(&empty, "not a certificate\n").expect("written");
    let endpoint = "https://127.0.0.1:1";
    let cases: [(&str, &[&str], &str); 7] = [
        (endpoint, &["--cacert", &absent], "--cacert"),
        (endpoint, &["--cacert", &empty], "--cacert"),
        (endpoint, &["--cert", &absent, "--key", &key], "--cert"),
        (endpoint, &["--cert", &cert, "--key", &absent], "--key"),
        (endpoint, &["--cert", &cert, "--key", &cert], "--key"),
        (endpoint, &["--cert", &cert], "--key"),
        ("http://127.0.0.1:1", &["--cacert", &ca], "http://127.0.0.1:1"),
    ];
    for (endpoint, flags, expected) in cases {
        let (status, lines) = ends(&lock(endpoint, flags)).await;
        assert_eq!((status, lines.len()), (Some(2), 1), "{flags:?}: {lines:?}");
        assert!(lines[0].contains(expected), "{flags:?}: {lines:?}");
    }
    // What is seen only when connecting has the status of that.
    let other = files.path("server.key");
    let (status, lines) = ends(&lock(endpoint, &["--cert", &cert, "--key", &other])).await;
    assert_eq!((status, lines.len()), (Some(69), 1), "{lines:?}");
    assert!(lines[0].contains("--key is not the key of --cert"), "{lines:?}");
}

/// A member that is frozen and thawed breaks no session over TLS: renewals go on.
#[tokio::test]
async fn session_over_tls_outlives_an_outage() {
    let files = Certificates::new("outage");
    let member = Member::start_as(&files.setting()).await;
    let session = member.session(4).await;
    leasehold::time::sleep(Duration::from_secs(1)).await;
    member.freeze();
    leasehold::time::sleep(Duration::from_secs(2)).await;
    member.thaw();
    leasehold::time::sleep(Duration::from_secs(4)).await;
    assert!(session.is_live());
}
