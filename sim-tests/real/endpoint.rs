//! What is no endpoint, as every program that wants one says it.

use super::program::{Program, leasehold};

const MALFORMED: [&str; 6] = ["foo bar", "http://", "ftp://x", "", "127.0.0.1:2379,", "localhost"];

/// A usage error that names the flag, the value and what to write, not a server that is down.
#[tokio::test]
async fn malformed_endpoints_are_usage_errors() {
    for endpoint in MALFORMED {
        for program in [&["lock", "job"][..], &["client", "1"]] {
            let command: &[&str] = if program[0] == "lock" { &["--", "true"] } else { &[] };
            let arguments = [program, &["--endpoints", endpoint], command].concat();
            let (status, lines) = Program::start(arguments).ends().await;
            let bad = endpoint.rsplit(',').next().unwrap_or_default();
            assert_eq!((status, lines.len()), (Some(2), 1), "{endpoint:?}: {lines:?}");
            for part in ["--endpoints", bad, "HOST:PORT"] {
                assert!(lines[0].contains(part), "{endpoint:?}: {lines:?}");
            }
        }
    }
    let mut command = leasehold(["lock", "job", "--", "true"]);
    let program = Program::spawn(command.env("ETCDCTL_ENDPOINTS", "http://a:1 http://b:1"));
    let (status, lines) = program.ends().await;
    assert_eq!(status, Some(2), "{lines:?}");
    assert!(lines[0].contains("http://a:1 http://b:1"), "{lines:?}");
}
